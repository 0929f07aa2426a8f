"""The data plane under test, on stores of each sort, every one behind a switch and under watch."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dataplane.adapters.edge.text import EdgeTextIndex
from dataplane.adapters.edge.vector import EdgeVectorIndex
from dataplane.adapters.inmemory.embedder import HashEmbedder
from dataplane.adapters.inmemory.record_store import InMemoryRecordStore
from dataplane.adapters.inmemory.text_index import InMemoryTextIndex
from dataplane.adapters.inmemory.vector_index import InMemoryVectorIndex
from dataplane.adapters.inmemory.write_queue import InMemoryWriteQueue
from dataplane.adapters.inprocess_cache import InProcessCache
from dataplane.adapters.postgres.options import PostgresOptions
from dataplane.adapters.postgres.text import PostgresTextIndex
from dataplane.adapters.postgres.vector import PostgresVectorIndex
from dataplane.adapters.redis.cache import RedisCache
from dataplane.adapters.redis.options import RedisCacheOptions, RedisOptions
from dataplane.adapters.sqlite.connection import SqliteOptions
from dataplane.adapters.sqlite.store import SqliteRecordStore
from dataplane.codec import fields_of
from dataplane.logic.tokens import TOKENIZER
from memplane.process import SystemClock
from tests.deadline import eventually_async
from tests.integration.faulty import BACKENDS, Faulty
from tests.integration.harness import CACHE_BYTES, Plane, running_plane
from tests.leak.truth import Truth
from tests.leak.watched import Report, WatchedPort
from tests.postgres import open_store

NEVER_S = 1e12
Ports = Mapping[str, Any]
Open = Callable[[AsyncExitStack], Any]
"""Opens the ports, by the names of `BACKENDS`."""


@dataclass(frozen=True)
class WatchedPlane:
    """A plane, the switches of its ports, and the watchers behind them."""

    plane: Plane
    switches: Mapping[str, Faulty]
    watched: Mapping[str, WatchedPort]

    def mend(self) -> None:
        """All is well again."""
        for switch in self.switches.values():
            switch.down = set()


async def in_memory(_stack: AsyncExitStack) -> dict[str, Any]:
    """Ports in memory."""
    return {
        "records": InMemoryRecordStore(fields_of),
        "vectors": InMemoryVectorIndex(384),
        "texts": InMemoryTextIndex(),
        "cache": InProcessCache(CACHE_BYTES, asyncio.get_running_loop().time),
        "embedder": HashEmbedder(),
    }


def embedded(folder: Path) -> Open:
    """SQLite and Qdrant Edge in a folder."""

    async def opened(stack: AsyncExitStack) -> dict[str, Any]:
        embedder = HashEmbedder()
        records = await SqliteRecordStore.open(folder / "records.sqlite3", options=SqliteOptions(), fields_of=fields_of)
        vectors = EdgeVectorIndex.open(folder / "vectors", embedder.dimension, embedder.model)
        texts = EdgeTextIndex.open(folder / "texts", TOKENIZER)
        for each in (records, vectors, texts):
            stack.push_async_callback(each.close)
        return {**await in_memory(stack), "records": records, "vectors": vectors, "texts": texts, "embedder": embedder}

    return opened


def company(postgres: PostgresOptions, redis_address: tuple[str, int]) -> Open:
    """PostgreSQL with row-level security, its own indexes beside it, and Redis."""

    async def opened(stack: AsyncExitStack) -> dict[str, Any]:
        deadline_s, embedder = asyncio.get_running_loop().time() + 60, HashEmbedder()
        records = await open_store(postgres, fields_of)
        vectors = await PostgresVectorIndex.open(postgres, embedder.model, embedder.dimension, deadline_s)
        texts = await PostgresTextIndex.open(postgres, TOKENIZER, deadline_s)
        redis = RedisOptions(addresses=(redis_address,), prefix="leak")
        cache = await RedisCache.open(redis, RedisCacheOptions(timeout_s=2), SystemClock(), deadline_s)
        for each in (records, vectors, texts, cache):
            stack.push_async_callback(each.close)
        return {"records": records, "vectors": vectors, "texts": texts, "cache": cache, "embedder": embedder}

    return opened


@asynccontextmanager
async def watched_plane(
    opened: Open, truth: Truth, report: Report, spoil: Callable[[dict[str, Any]], None], policy: Mapping[str, Any]
) -> AsyncIterator[WatchedPlane]:
    """A plane over these ports; `spoil` may put faulty ones in their place."""
    async with AsyncExitStack() as stack:
        inner = await opened(stack)
        spoil(inner)
        watched = {name: WatchedPort(port, name, truth, report) for name, port in inner.items() if name != "embedder"}
        switches = {name: Faulty(watched.get(name, port), BACKENDS[name]) for name, port in inner.items()}
        queue = InMemoryWriteQueue(SystemClock())
        plane = await stack.enter_async_context(running_plane(policy=policy, queue=queue, **switches))
        await eventually_async(lambda: switches["cache"].is_vouched(NEVER_S), bool)
        made = WatchedPlane(plane, switches, watched)
        try:
            yield made
        finally:
            made.mend()
