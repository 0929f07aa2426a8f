"""Who the peer of a connection with a client certificate is, on real connections."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509

from memplane.process import SystemClock
from memplane.rpc.certificate_watch import CertificateWatch
from memplane.rpc.certificates import TlsFiles
from memplane.rpc.tls import peer_spiffe_ids, server_credentials
from tests.certificates import Authority, Pair, write_pair

AUTHORITY = Authority()
SPIFFE = "spiffe://corp.example/agent/sales-1"


async def tell_ids(_request: bytes, context: grpc.aio.ServicerContext[Any, Any]) -> bytes:
    return "\n".join(peer_spiffe_ids(context)).encode()


@asynccontextmanager
async def serving(folder: Path, *, require_client: bool) -> AsyncIterator[int]:
    server = grpc.aio.server()
    handler: Any = grpc.unary_unary_rpc_method_handler(tell_ids)
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test", {"Who": handler}),))
    (folder / "ca.crt").write_bytes(AUTHORITY.pem)
    certificate, key = write_pair(folder, AUTHORITY.sign())
    watch = CertificateWatch(TlsFiles(certificate, key, folder / "ca.crt"), "server", SystemClock())
    watch.load()
    port = server.add_secure_port("127.0.0.1:0", server_credentials(watch, require_client=require_client))
    await server.start()
    try:
        yield port
    finally:
        await server.stop(0)


async def ids_of(port: int, pair: Pair | None) -> Sequence[str]:
    shown = (pair.key, pair.certificate) if pair else (None, None)
    credentials = grpc.ssl_channel_credentials(AUTHORITY.pem, *shown)
    options = [("grpc.use_local_subchannel_pool", 1)]
    async with grpc.aio.secure_channel(f"127.0.0.1:{port}", credentials, options) as channel:
        call: Any = channel.unary_unary("/test/Who")
        answer: bytes = await call(b"", timeout=10)
    return answer.decode().split()


@pytest.mark.parametrize(
    ("uris", "found"),
    [
        ([SPIFFE], [SPIFFE]),
        (["spiffe://corp.example"], ["spiffe://corp.example"]),
        ([], []),
        (["https://corp.example/agent"], []),
        ([SPIFFE, "spiffe://corp.example/agent/other"], []),
        ([SPIFFE, "https://corp.example"], []),
        (["spiffe://"], []),
        (["spiffe:///agent"], []),
        (["spiffe://Corp.example/agent"], []),
        (["SPIFFE://corp.example/agent"], []),
        (["spiffe://corp.example/agent/"], []),
        (["spiffe://corp.example/a/../b"], []),
        (["spiffe://corp.example/a?b"], []),
        (["spiffe://corp.example/a#b"], []),
        (["spiffe://user@corp.example/a"], []),
        (["spiffe://corp.example:1/a"], []),
        (["spiffe://corp.example/a%2fb"], []),
    ],
)
async def test_a_peer_is_known_by_the_one_spiffe_id_of_its_certificate(
    uris: Sequence[str], found: Sequence[str], tmp_path: Path
) -> None:
    async with serving(tmp_path, require_client=True) as port:
        assert await ids_of(port, AUTHORITY.agent(*uris)) == found


async def test_an_id_that_stands_among_dns_names_is_none(tmp_path: Path) -> None:
    async with serving(tmp_path, require_client=True) as port:
        assert await ids_of(port, AUTHORITY.sign("agent", [x509.DNSName(SPIFFE)])) == []


async def test_a_certificate_that_was_not_asked_for_says_nothing(tmp_path: Path) -> None:
    async with serving(tmp_path, require_client=False) as port:
        assert await ids_of(port, AUTHORITY.agent(SPIFFE)) == []
        assert await ids_of(port, None) == []
