"""TLS of a server on real connections: whom it lets in, whom clients believe, and files that change under load."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from operator import ge
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509

from memplane.client.errors import from_call
from memplane.client.tls import ClientTls, FollowingChannel, async_channel
from memplane.process import SystemClock
from memplane.rpc.certificate_watch import CertificateWatch
from memplane.rpc.certificates import TlsFiles
from memplane.rpc.server import new_server
from memplane.rpc.tls import bind_with
from memplane.rpc.tls_settings import ServerTls
from tests.certificates import DAY, LOCAL, Authority, Pair, write_pair
from tests.deadline import eventually
from tests.servers.process import free_port

AUTHORITY = Authority()
SPREAD = '{"loadBalancingConfig": [{"round_robin": {}}]}'
OPTIONS = (("grpc.use_local_subchannel_pool", 1), ("grpc.service_config", SPREAD))
CALLERS = 8
ROTATIONS = 20


async def echo(request: bytes, _context: grpc.aio.ServicerContext[Any, Any]) -> bytes:
    return request


@dataclass
class Served:
    """A server with certificates in a folder, and the folders of its clients."""

    folder: Path
    port: int
    watch: CertificateWatch | None

    def client(self, pair: Pair | None = None, authorities: bytes = AUTHORITY.pem, server_name: str = "") -> ClientTls:
        """TLS of a client with a folder of its own."""
        home = self.folder / f"client-{len(list(self.folder.iterdir()))}"
        home.mkdir()
        (home / "ca.crt").write_bytes(authorities)
        certificate, key = write_pair(home, pair) if pair else (None, None)
        return ClientTls(home / "ca.crt", certificate, key, server_name)


@asynccontextmanager
async def served(
    folder: Path, pair: Pair | None, client_authorities: bytes = b"", options: tuple[tuple[str, int], ...] = ()
) -> AsyncIterator[Served]:
    """With `client_authorities`, clients must show a certificate; without `pair` all is in clear."""
    tls = None
    if pair is not None:
        (folder / "server").mkdir()
        (folder / "server" / "ca.crt").write_bytes(client_authorities)
        authorities = folder / "server" / "ca.crt" if client_authorities else None
        files = TlsFiles(*write_pair(folder / "server", pair), authorities)
        tls = ServerTls(files, require_client=bool(client_authorities))
    server = new_server([], options)
    handler: Any = grpc.unary_unary_rpc_method_handler(echo)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test", {"Echo": handler}),))
    port, watch = bind_with(server, "127.0.0.1:0", tls, SystemClock())
    await server.start()
    try:
        yield Served(folder, port, watch)
    finally:
        await server.stop(0)


async def call_once(port: int, tls: ClientTls | None) -> str:
    """ "": it was answered; else what the client's error says."""
    async with async_channel(f"127.0.0.1:{port}", tls, OPTIONS) as channel:
        call: Any = channel.unary_unary("/test/Echo")
        try:
            assert await call(b"word", timeout=10) == b"word"
        except grpc.aio.AioRpcError as error:
            return from_call(error).message
    return ""


async def test_a_certificate_of_an_authority_that_is_trusted_is_believed(tmp_path: Path) -> None:
    async with served(tmp_path, AUTHORITY.sign()) as plane:
        assert await call_once(plane.port, plane.client()) == ""


@pytest.mark.parametrize(
    ("pair", "says"),
    [
        (Authority("other").sign(), "none of the authorities given has signed its certificate"),
        (AUTHORITY.sign(names=[x509.DNSName("other.example")]), "its certificate is for another name"),
        (None, "it does not speak TLS on this port"),
    ],
    ids=["other authority", "other name", "in clear"],
)
async def test_another_certificate_is_not_believed_and_the_error_says_why(
    pair: Pair | None, says: str, tmp_path: Path
) -> None:
    async with served(tmp_path, pair) as plane:
        message = await call_once(plane.port, plane.client())
        assert message == f"no connection to 127.0.0.1:{plane.port}: {says}"


async def test_a_server_that_goes_by_another_name_is_believed_when_that_is_asked_for(tmp_path: Path) -> None:
    async with served(tmp_path, AUTHORITY.sign(names=[x509.DNSName("plane.example")])) as plane:
        assert await call_once(plane.port, plane.client(server_name="plane.example")) == ""
        assert "another name" in await call_once(plane.port, plane.client(server_name="other.example"))


async def test_an_expired_certificate_is_not_believed(tmp_path: Path) -> None:
    server = grpc.aio.server()
    pair = AUTHORITY.sign(begin=-2 * DAY, end=-DAY)
    port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(pair.key, pair.certificate)]))
    await server.start()
    message = await call_once(port, Served(tmp_path, port, None).client())
    await server.stop(0)
    assert message.endswith("its certificate has expired")


async def test_where_certificates_are_required_only_those_of_the_authorities_get_in(tmp_path: Path) -> None:
    async with served(tmp_path, AUTHORITY.sign(), AUTHORITY.pem) as plane:
        assert await call_once(plane.port, plane.client(AUTHORITY.agent("spiffe://corp.example/agent"))) == ""
        for refused in (None, Authority("other").agent("spiffe://corp.example/agent")):
            assert "it hung up; it may want TLS, or a certificate" in await call_once(plane.port, plane.client(refused))


async def test_a_second_port_is_for_clients_with_certificates_while_the_first_asks_for_none(tmp_path: Path) -> None:
    second = free_port()
    (tmp_path / "authorities.crt").write_bytes(AUTHORITY.pem)
    files = TlsFiles(*write_pair(tmp_path / "server", AUTHORITY.sign()), tmp_path / "authorities.crt")
    server = new_server([])
    handler: Any = grpc.unary_unary_rpc_method_handler(echo)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test", {"Echo": handler}),))
    tls = ServerTls(files, require_client=False, mtls_listen=f"127.0.0.1:{second}")
    first, watch = bind_with(server, "127.0.0.1:0", tls, SystemClock())
    await server.start()
    plane = Served(tmp_path, first, watch)
    without, own = plane.client(), plane.client(AUTHORITY.agent("spiffe://corp.example/agent"))
    answers = [await call_once(port, tls) for port in (first, second) for tls in (without, own)]
    await server.stop(0)
    assert [answer[:11] for answer in answers] == ["", "", "no connecti", ""]


async def test_an_expired_certificate_of_a_client_does_not_get_in(tmp_path: Path) -> None:
    pair = AUTHORITY.sign(begin=-2 * DAY, end=-DAY)
    async with served(tmp_path, AUTHORITY.sign(), AUTHORITY.pem) as plane:
        credentials = grpc.ssl_channel_credentials(AUTHORITY.pem, pair.key, pair.certificate)
        async with grpc.aio.secure_channel(f"127.0.0.1:{plane.port}", credentials) as channel:
            call: Any = channel.unary_unary("/test/Echo")
            with pytest.raises(grpc.aio.AioRpcError, match="UNAVAILABLE"):
                await call(b"word", timeout=10)


async def test_a_client_in_clear_gets_nothing_from_a_server_with_tls(tmp_path: Path) -> None:
    async with served(tmp_path, AUTHORITY.sign()) as plane:
        assert "it may want TLS" in await call_once(plane.port, None)


@pytest.mark.parametrize(
    ("version", "taken"),
    [(ssl.TLSVersion.TLSv1_3, True), (ssl.TLSVersion.TLSv1_2, True), (ssl.TLSVersion.TLSv1_1, False)],
)
@pytest.mark.filterwarnings("ignore:ssl.TLSVersion.TLSv1_1 is deprecated:DeprecationWarning")
async def test_nothing_older_than_tls_1_2_is_spoken(version: ssl.TLSVersion, taken: bool, tmp_path: Path) -> None:
    context = ssl.create_default_context(cadata=AUTHORITY.pem.decode())
    context.minimum_version = context.maximum_version = version
    context.set_ciphers("ALL:@SECLEVEL=0")
    context.set_alpn_protocols(["h2"])
    async with served(tmp_path, AUTHORITY.sign()) as plane:
        opening = asyncio.open_connection("127.0.0.1", plane.port, ssl=context)
        if taken:
            _, writer = await opening
            assert writer.get_extra_info("ssl_object").version() == version.name.replace("_", ".")
            writer.close()
        else:
            with pytest.raises((ssl.SSLError, ConnectionError)):
                await opening


@dataclass
class Load:
    """Callers that never pause; a step of a rotation lasts until each has begun and ended two calls in it."""

    plane: Served
    tls: ClientTls
    ended: list[int] = field(default_factory=lambda: [0] * CALLERS)
    failures: list[str] = field(default_factory=list)
    channels: int = 0

    async def call_anew(self, number: int) -> None:
        """A new connection for each call."""
        while True:
            await self._count(number, self._one_channel)

    async def call_on(self, number: int) -> None:
        """One client whose channel follows its files; the server ends connections now and then."""
        channel = FollowingChannel(f"127.0.0.1:{self.plane.port}", self.tls, poll_s=0.0)
        call: Any = channel.unary_unary("/test/Echo")

        async def one() -> None:
            await channel.follow()
            await call(b"word", timeout=20)

        try:
            while True:
                await self._count(number, one)
        finally:
            await channel.close()

    async def _one_channel(self) -> None:
        self.channels += 1
        async with FollowingChannel(f"127.0.0.1:{self.plane.port}", self.tls) as channel:
            call: Any = channel.unary_unary("/test/Echo")
            await call(b"word", timeout=20)

    async def _count(self, number: int, work: Callable[[], Awaitable[None]]) -> None:
        try:
            await work()
        except grpc.aio.AioRpcError as error:
            self.failures.append(f"{error.code()}: {error.details()}")
        self.ended[number] += 1

    async def step(self) -> None:
        """The server looks at its files; then until everybody has made calls with what is on disk now."""
        assert self.plane.watch is not None
        await self.plane.watch.look()
        assert self.plane.watch.problem == ""
        goals = [count + 2 for count in self.ended]
        await eventually(lambda: all(map(ge, self.ended, goals)), bool, 60)


@pytest.mark.slow
async def test_everything_is_rotated_20_times_under_load_without_a_failed_call(tmp_path: Path) -> None:
    """The order that an administrator follows: trust both authorities, use the new one, trust it alone."""
    age = (("grpc.max_connection_age_ms", 300), ("grpc.max_connection_age_grace_ms", 20_000))
    async with served(tmp_path, AUTHORITY.sign(), AUTHORITY.pem, age) as plane:
        load = Load(plane, plane.client(AUTHORITY.agent("spiffe://corp.example/agent")))
        server, client = tmp_path / "server", Path(load.tls.ca_file).parent
        callers = [
            asyncio.create_task((load.call_on if number % 2 else load.call_anew)(number)) for number in range(CALLERS)
        ]
        before = AUTHORITY
        for number in range(ROTATIONS):
            after = Authority(f"authority-{number}")
            for authorities in (before.pem + after.pem, after.pem):
                for folder in (server, client):
                    (folder / "ca.crt").write_bytes(authorities)
                await load.step()
                if authorities != after.pem:
                    write_pair(server, after.sign(names=LOCAL))
                    write_pair(client, after.agent("spiffe://corp.example/agent"))
                    await load.step()
            before = after
        for caller in callers:
            caller.cancel()
        await asyncio.gather(*callers, return_exceptions=True)
    assert load.failures == []
    assert plane.watch is not None
    assert plane.watch.renewal_count == 3 * ROTATIONS
    assert min(load.ended) >= 6 * ROTATIONS
