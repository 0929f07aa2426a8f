"""Looks for texts of erased memories in the stores themselves, past MemPlane: rows, keys, documents, payloads.

The whole files of embedded stores are read. Of servers what their own interfaces show is read: what they purge from
their files when they see fit is not in the contract.
"""

import asyncio
import base64
import json
import re
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import grpc
import psycopg
import redis
from psycopg import sql
from qdrant_client import grpc as wire

from tests.chaos.history import MARKER

PURGED_WITHIN_S = 90.0
"""The contract says that files are rewritten within seconds to about a minute."""

LOOK_S = 2.0
BASE64 = re.compile(rb"[A-Za-z0-9+/]{40,}={0,2}")
CHUNK_BYTES = 1 << 20
PAGE_SIZE = 1_000


class Places(Protocol):
    """Where raw bytes lie; what a stack has not is None."""

    @property
    def data_dirs(self) -> Sequence[Path]: ...
    @property
    def postgres_dsn(self) -> str | None: ...
    @property
    def redis_url(self) -> str | None: ...
    @property
    def elasticsearch_url(self) -> str | None: ...
    @property
    def qdrant_url(self) -> str | None: ...


async def leftovers(places: Places, erased: Sequence[str]) -> tuple[str, ...]:
    """`where: marker` for each marker of an erased memory that is still somewhere after PURGED_WITHIN_S."""
    loop = asyncio.get_running_loop()
    until_s = loop.time() + PURGED_WITHIN_S
    while True:
        found = await asyncio.to_thread(_leftovers, places, frozenset(erased))
        if not found or loop.time() > until_s:
            return found
        await asyncio.sleep(LOOK_S)


def _leftovers(places: Places, erased: frozenset[str]) -> tuple[str, ...]:
    found = {(where, word) for where, content in _contents(places) for word in _words(content) if word in erased}
    return tuple(f"{where}: {word}" for where, word in sorted(found))


def _words(content: bytes) -> Iterator[str]:
    """The markers in it, and in what stands in it as base64: indexes keep rows of memories so."""
    packed = (match[0][start:] for match in BASE64.finditer(content) for start in range(4))
    for part in (content, *(_decoded(text) for text in packed)):
        yield from (match[0] for match in MARKER.finditer(part.decode("latin-1")))


def _decoded(text: bytes) -> bytes:
    """What is whole of it: a file is read in chunks, which may cut a text, and a length before it may look like it."""
    bare = text.rstrip(b"=")
    whole = bare[: len(bare) - (len(bare) % 4 == 1)]
    return base64.b64decode(whole + b"=" * (-len(whole) % 4))


def _contents(places: Places) -> Iterator[tuple[str, bytes]]:
    for folder in places.data_dirs:
        yield from _files(folder)
    if places.postgres_dsn:
        yield from _tables(places.postgres_dsn)
    if places.redis_url:
        yield from _keys(places.redis_url)
    if places.elasticsearch_url:
        yield from _documents(places.elasticsearch_url)
    if places.qdrant_url:
        yield from _payloads(places.qdrant_url)


def _files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """What is in each file; a purge may take one away before it is read."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        tail = b""
        with suppress(FileNotFoundError), path.open("rb") as file:
            while chunk := file.read(CHUNK_BYTES):
                yield str(path.relative_to(folder.parent)), tail + chunk
                tail = chunk[-64:]


def _tables(dsn: str) -> Iterator[tuple[str, bytes]]:
    """Every row of every table as text, bytea as it is."""
    with psycopg.connect(dsn) as connection:
        names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'memplane'").fetchall()
        for (name,) in names:
            query = sql.SQL("SELECT * FROM {}").format(sql.Identifier("memplane", name))
            with connection.cursor(f"all_{name}") as rows:
                rows.execute(query)
                for row in rows:
                    yield f"postgresql {name}", b" ".join(_bytes(value) for value in row)


def _bytes(value: object) -> bytes:
    return bytes(value) if isinstance(value, bytes | memoryview) else str(value).encode()


def _keys(url: str) -> Iterator[tuple[str, bytes]]:
    with redis.Redis.from_url(url) as client:
        reads: dict[str, Callable[[bytes], object]] = {
            "string": client.get,
            "hash": client.hgetall,
            "stream": client.xrange,
            "list": lambda key: client.lrange(key, 0, -1),
            "set": client.smembers,
            "zset": lambda key: client.zrange(key, 0, -1),
        }
        for key in client.scan_iter(count=PAGE_SIZE):
            kind = client.type(key).decode()
            value = reads[kind](key) if kind != "none" else ""  # expired meanwhile
            yield f"redis {key.decode(errors='replace')[:80]}", repr(value).encode()


def _documents(url: str) -> Iterator[tuple[str, bytes]]:
    names = json.loads(_get(f"{url}/_cat/indices?format=json&h=index"))
    for name in (entry["index"] for entry in names):
        after: Any = None
        while True:
            asked = {"size": PAGE_SIZE, "sort": ["_doc"], "query": {"match_all": {}}}
            if after is not None:
                asked["search_after"] = after
            hits = json.loads(_get(f"{url}/{name}/_search", asked))["hits"]["hits"]
            yield f"elasticsearch {name}", json.dumps(hits).encode()
            if len(hits) < PAGE_SIZE:
                break
            after = hits[-1]["sort"]


def _payloads(url: str) -> Iterator[tuple[str, bytes]]:
    """Every point of every collection, over gRPC, which the peer speaks alone."""
    with grpc.insecure_channel(url.removeprefix("http://")) as channel:
        collections = wire.CollectionsStub(channel)  # type: ignore[no-untyped-call]
        points = wire.PointsStub(channel)  # type: ignore[no-untyped-call]
        names = collections.List(wire.ListCollectionsRequest()).collections
        for name in (collection.name for collection in names):
            asked = wire.ScrollPoints(collection_name=name, limit=PAGE_SIZE)
            asked.with_payload.enable = True
            while True:
                answer = points.Scroll(asked)
                yield f"qdrant {name}", answer.SerializeToString()
                if not answer.HasField("next_page_offset"):
                    break
                asked.offset.CopyFrom(answer.next_page_offset)


def _get(url: str, body: dict[str, Any] | None = None) -> bytes:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as response:
        return bytes(response.read())
