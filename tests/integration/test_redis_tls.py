"""TLS to Redis, through a terminator: trusted, not trusted, for another name, with and without a client certificate."""

import asyncio
import contextlib
import datetime
import ipaddress
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from dataplane.adapters.redis.connection import RedisConnection
from dataplane.adapters.redis.options import RedisOptions, RedisTls
from dataplane.errors import Misconfigured
from tests.servers.redis import RedisServer

Address = tuple[str, int]


def certificate(folder: Path, name: str, host: str) -> Path:
    """A file with a key and a certificate that signs itself, for an IP address."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    begin = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + datetime.timedelta(days=36_500))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(host))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path = folder / f"{name}.pem"
    path.write_bytes(pem + signed.public_bytes(serialization.Encoding.PEM))
    return path


@contextlib.asynccontextmanager
async def terminator(server: RedisServer, own: Path, clients: Path | None = None) -> AsyncIterator[Address]:
    """TLS in front of a Redis; `clients` is whom it asks to be signed by."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(own)
    if clients is not None:
        context.load_verify_locations(clients)
        context.verify_mode = ssl.CERT_REQUIRED

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind_reader, behind_writer = await asyncio.open_connection(*server.address)
        await asyncio.gather(_pour(reader, behind_writer), _pour(behind_reader, writer))

    listening = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield listening.sockets[0].getsockname()
    finally:
        listening.close()
        await asyncio.sleep(0.05)


async def _pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
        writer.close()
        await writer.wait_closed()


async def works(address: Address, tls: RedisTls) -> bool:
    """Opens, calls and closes; Misconfigured comes through."""
    deadline_s = asyncio.get_running_loop().time() + 10
    connection = await RedisConnection.open(RedisOptions(addresses=(address,), tls=tls), "cache", deadline_s)
    async with connection.calling(deadline_s):
        answered = bool(await connection.client.ping())
    await connection.close()
    return answered


@pytest.fixture
def made(tmp_path: Path) -> Callable[[str, str], Path]:
    return lambda name, host: certificate(tmp_path, name, host)


async def test_a_trusted_certificate_opens_and_another_is_told(
    redis_server: RedisServer, made: Callable[[str, str], Path]
) -> None:
    own, other = made("own", "127.0.0.1"), made("other", "127.0.0.1")
    async with terminator(redis_server, own) as address:
        assert await works(address, RedisTls(ca_file=own))
        for tls in (RedisTls(), RedisTls(ca_file=other)):
            with pytest.raises(Misconfigured, match="certificate"):
                await works(address, tls)


async def test_a_certificate_for_another_host_is_refused_unless_that_does_not_matter(
    redis_server: RedisServer, made: Callable[[str, str], Path]
) -> None:
    elsewhere = made("elsewhere", "10.0.0.1")
    async with terminator(redis_server, elsewhere) as address:
        with pytest.raises(Misconfigured, match="name"):
            await works(address, RedisTls(ca_file=elsewhere))
        assert await works(address, RedisTls(ca_file=elsewhere, check_hostname=False))


async def test_a_server_that_asks_for_a_certificate_gets_it(
    redis_server: RedisServer, made: Callable[[str, str], Path]
) -> None:
    own, mine = made("own", "127.0.0.1"), made("mine", "127.0.0.1")
    async with terminator(redis_server, own, clients=mine) as address:
        assert await works(address, RedisTls(ca_file=own, cert_file=mine, key_file=mine))
