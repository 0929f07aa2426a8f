import asyncio
import ssl
import time
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from dataplane.adapters.elasticsearch.options import ElasticsearchOptions
from dataplane.adapters.elasticsearch.text import ElasticsearchTextIndex
from dataplane.errors import BackendUnavailable, Misconfigured
from memplane.settings import Secret
from tests.unit.dataplane.adapters.elasticsearch.scripted import SECRET, error, scripted

NODES = {"nodes": {"a": {"version": "8.19.7"}}}
META = {"memplane_format": 2, "tokenizer": "Rule_1"}


def index(meta: object = META, **blocks: str) -> dict[str, object]:
    settings = {"index": {"blocks": blocks}}
    return {"memplane-text-rule-1.g000001": {"mappings": {"_meta": meta}, "settings": settings}}


@pytest.mark.parametrize(
    ("answers", "problem"),
    [
        ([(401, error("security_exception"))], "check api_key, or username and password"),
        ([(403, error("security_exception"))], "grant the cluster privileges monitor"),
        ([(404, {})], "is not Elasticsearch 8 or 9"),
        ([(200, {"nodes": {"a": {"version": "7.17.9"}}})], "Elasticsearch 7.17.9 is not supported; take one of 8 or 9"),
        ([(200, {"nodes": {"a": {"version": "8.1.0"}, "b": {"version": "10.0.0"}}})], "10.0.0 is not supported"),
        ([(200, NODES), (200, index({"other": 1}))], "made by another program or release; delete it"),
        ([(200, NODES), (200, index({**META, "tokenizer": "rule-1"}))], "made by another program"),
        ([(200, NODES), (200, index(read_only_allow_delete="true"))], "takes no writes; the disk of a node"),
        ([(200, NODES), (200, index(write="true"))], "index.blocks.write: take it back"),
        ([(200, NODES), (404, {}), (403, error("security_exception"))], "manage_index_templates"),
    ],
)
async def test_what_cannot_be_used_is_told_with_what_to_do(answers: list[tuple[int, object]], problem: str) -> None:
    async with scripted(*answers) as server:
        with pytest.raises(Misconfigured, match=problem) as failure:
            await ElasticsearchTextIndex.open(ElasticsearchOptions(hosts=(server.url,)), "Rule_1")
    assert SECRET not in str(failure.value)


@pytest.mark.parametrize("answers", [[(503, error("cluster_block_exception"))], [(200, NODES), (429, {})]])
async def test_a_server_in_trouble_is_unavailable(answers: list[tuple[int, object]]) -> None:
    async with scripted(*answers) as server:
        with pytest.raises(BackendUnavailable, match=r"\((503|429)"):
            await ElasticsearchTextIndex.open(ElasticsearchOptions(hosts=(server.url,)), "Rule_1")


@pytest.mark.parametrize(
    ("status", "unassigned", "initializing", "told"),
    [
        ("green", 0, 0, ""),
        ("yellow", 0, 1, ""),
        ("yellow", 1, 0, "copies are missing: 1 of its shards lie on no node; add nodes"),
        ("red", 2, 0, "2 of its shards lie on no node; bring those nodes back"),
        ("red", 0, 1, "1 of its shards are starting; wait"),
    ],
)
async def test_shards_that_only_start_are_not_called_lost(
    status: str, unassigned: int, initializing: int, told: str
) -> None:
    health = {"status": status, "unassigned_shards": unassigned, "initializing_shards": initializing}
    async with scripted(*2 * [(200, NODES), (200, index())], (200, health)) as server:
        opened = await ElasticsearchTextIndex.open(ElasticsearchOptions(hosts=(server.url,)), "Rule_1")
        problems = (await opened.examine(asyncio.get_running_loop().time() + 30)).problems
        await opened.close()
    assert [told in problem.message for problem in problems] == ([True] if told else [])


async def test_nobody_there_is_unavailable() -> None:
    async with scripted((200, {})) as server:
        url = server.url
    with pytest.raises(BackendUnavailable, match="cannot be reached"):
        await ElasticsearchTextIndex.open(ElasticsearchOptions(hosts=(url,)), "Rule_1")


async def test_a_node_that_is_down_is_passed_over() -> None:
    async with scripted((200, {})) as gone:
        down = gone.url
    async with scripted((200, NODES), (200, index())) as server:
        options = ElasticsearchOptions(hosts=(down, server.url), api_key=Secret("key"))
        opened = await ElasticsearchTextIndex.open(options, "Rule_1")
        assert not opened.recreated
        await opened.close()


async def test_another_product_is_told() -> None:
    async with scripted((200, NODES)) as server:
        server.headers.clear()
        with pytest.raises(Misconfigured, match="is not Elasticsearch 8 or 9; check hosts"):
            await ElasticsearchTextIndex.open(ElasticsearchOptions(hosts=(server.url,)), "Rule_1")


@pytest.mark.parametrize(
    "answer",
    [
        b"-ERR wrong number of arguments\r\n",
        b"\0\0\x18\4\0\0\0\0\0\0\5\0\x10\0\0",  # HTTP/2, as gRPC begins
        b"\x15\3\3\0\2\2\x46",  # TLS
        b"SSH-2.0-OpenSSH_9\r\n",
    ],
)
async def test_what_does_not_speak_http_is_told_with_its_host(answer: bytes) -> None:
    async with answering(answer) as url:
        with pytest.raises(Misconfigured, match=f"{url} does not speak HTTP, or only over TLS; check hosts"):
            await ElasticsearchTextIndex.open(ElasticsearchOptions(hosts=(url,)), "Rule_1")


async def test_what_hangs_up_without_an_answer_is_told_with_its_host_and_tried_again() -> None:
    async with answering(b"") as url:
        with pytest.raises(BackendUnavailable, match=f"{url} hangs up without an answer"):
            await ElasticsearchTextIndex.open(ElasticsearchOptions(hosts=(url,)), "Rule_1")


@asynccontextmanager
async def answering(answer: bytes) -> AsyncIterator[str]:
    """The URL of something that answers any request with this and hangs up."""

    async def answer_and_hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(answer)
        writer.close()

    async with await asyncio.start_server(answer_and_hang_up, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_a_certificate_counts_only_when_its_authority_is_known(tmp_path: Path) -> None:
    ca_file = tmp_path / "ca.pem"
    async with scripted((200, NODES), (200, index()), tls=self_signed(ca_file)) as server:
        with pytest.raises(Misconfigured, match="check ca_file"):
            await ElasticsearchTextIndex.open(ElasticsearchOptions(hosts=(server.url,)), "Rule_1")
        for options in ({"ca_file": ca_file}, {"verify_certificates": False}):
            server.answers = deque([(200, NODES), (200, index())])
            known = ElasticsearchOptions(hosts=(server.url,), **options)
            await (await ElasticsearchTextIndex.open(known, "Rule_1")).close()


def self_signed(ca_file: Path) -> ssl.SSLContext:
    """A server's context for 127.0.0.1; its certificate is written to the file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    now = datetime.fromtimestamp(time.time(), UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    ca_file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    key_file = ca_file.with_suffix(".key")
    plain = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    key_file.write_bytes(key.private_bytes(*plain))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(ca_file, key_file)
    return context
