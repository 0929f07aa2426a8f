"""Looks for texts of erased memories in the stores themselves, past MemPlane: rows, keys, documents, payloads.

The whole files of embedded stores are read. Of servers what their own interfaces show is read: what they purge from
their files when they see fit is not in the contract.
"""

import asyncio
import json
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import grpc
import psycopg
import redis
from psycopg import sql
from qdrant_client import grpc as qdrant

from tests.chaos.history import MARKER

PURGED_WITHIN_S = 90.0
"""The contract says that files are rewritten within seconds to about a minute."""

LOOK_S = 2.0
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
    yield from (match[0] for match in MARKER.finditer(content.decode("latin-1")))


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
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        tail = b""
        with path.open("rb") as file:
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
        for key in client.scan_iter(count=PAGE_SIZE):
            yield f"redis {key.decode(errors='replace')[:80]}", bytes(client.dump(key) or b"")


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
    with grpc.insecure_channel(url.removeprefix("http://")) as channel:
        collections = qdrant.CollectionsStub(channel)  # type: ignore[no-untyped-call]  # generated
        points = qdrant.PointsStub(channel)  # type: ignore[no-untyped-call]  # generated
        for found in collections.List(qdrant.ListCollectionsRequest(), timeout=30).collections:
            asked = qdrant.ScrollPoints(collection_name=found.name, limit=PAGE_SIZE)
            asked.with_payload.enable = True
            while True:
                page = points.Scroll(asked, timeout=30)
                yield f"qdrant {found.name}", page.SerializeToString()
                if not page.HasField("next_page_offset"):
                    break
                asked.offset.CopyFrom(page.next_page_offset)


def _get(url: str, body: dict[str, Any] | None = None) -> bytes:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=30) as response:
        return bytes(response.read())
