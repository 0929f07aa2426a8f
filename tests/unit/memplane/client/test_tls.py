import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest

from memplane.client.tls import ClientTls, FollowingChannel, blocking_channel
from memplane.rpc.certificates import BadCertificate
from tests.certificates import Authority, write_pair
from tests.deadline import eventually

AUTHORITY = Authority()


@dataclass
class Peers:
    """A server that asks for certificates, notes whose it sees, and holds calls while `gate` is closed."""

    port: int = 0
    gate: asyncio.Event = field(default_factory=asyncio.Event)
    seen: list[str] = field(default_factory=list)

    async def answer(self, request: bytes, context: grpc.aio.ServicerContext[Any, Any]) -> bytes:
        self.seen.append(b"".join(context.auth_context()["x509_common_name"]).decode())
        await self.gate.wait()
        return request


@asynccontextmanager
async def serving() -> AsyncIterator[Peers]:
    peers, own = Peers(), AUTHORITY.sign()
    server = grpc.aio.server()
    handler: Any = grpc.unary_unary_rpc_method_handler(peers.answer)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test", {"Echo": handler}),))
    credentials = grpc.ssl_server_credentials([(own.key, own.certificate)], AUTHORITY.pem, True)
    peers.port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    try:
        yield peers
    finally:
        await server.stop(0)


def tls_in(folder: Path, name: str) -> ClientTls:
    certificate, key = write_pair(folder, AUTHORITY.agent(name=name))
    (folder / "ca.crt").write_bytes(AUTHORITY.pem)
    return ClientTls(folder / "ca.crt", certificate, key)


async def test_calls_after_a_change_show_the_new_certificate_and_those_before_end_well(tmp_path: Path) -> None:
    async with serving() as peers:
        tls = tls_in(tmp_path, "first")
        async with FollowingChannel(f"127.0.0.1:{peers.port}", tls, poll_s=0.0) as channel:
            call: Any = channel.unary_unary("/test/Echo")
            early = asyncio.ensure_future(call(b"early", timeout=30))
            await eventually(lambda: len(peers.seen), (1).__eq__)
            write_pair(tmp_path, AUTHORITY.agent(name="second"))
            await channel.follow()
            late = asyncio.ensure_future(call(b"late", timeout=30))
            await eventually(lambda: len(peers.seen), (2).__eq__)
            peers.gate.set()
            assert await asyncio.gather(early, late) == [b"early", b"late"]
    assert peers.seen == ["first", "second"]


async def test_files_that_do_not_fit_leave_the_channel_as_it_is(tmp_path: Path) -> None:
    async with serving() as peers:
        peers.gate.set()
        tls = tls_in(tmp_path, "first")
        async with FollowingChannel(f"127.0.0.1:{peers.port}", tls, poll_s=0.0) as channel:
            (tmp_path / "tls.crt").write_bytes(AUTHORITY.agent(name="second").certificate)
            await channel.follow()
            call: Any = channel.unary_unary("/test/Echo")
            assert await call(b"word", timeout=30) == b"word"
    assert peers.seen == ["first"]


async def test_files_are_looked_at_once_in_a_while(tmp_path: Path) -> None:
    channel = FollowingChannel("127.0.0.1:1", tls_in(tmp_path, "first"), poll_s=3600.0)
    await channel.follow()
    before = channel.get_state()
    (tmp_path / "tls.key").unlink()
    await channel.follow()
    assert channel.get_state() is before
    await channel.close()


async def test_a_blocking_channel_shows_the_certificate(tmp_path: Path) -> None:
    async with serving() as peers:
        peers.gate.set()
        with blocking_channel(f"127.0.0.1:{peers.port}", tls_in(tmp_path, "blocking")) as channel:
            call: Any = channel.unary_unary("/test/Echo")
            assert await asyncio.to_thread(call, b"word", timeout=30) == b"word"
    assert peers.seen == ["blocking"]


def test_what_does_not_go_together_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="cert_file goes with key_file"):
        ClientTls("ca.crt", "tls.crt")
    with pytest.raises(BadCertificate, match=r"none\.crt: No such file"):
        blocking_channel("127.0.0.1:1", ClientTls(tmp_path / "none.crt"))
