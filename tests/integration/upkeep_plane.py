"""A data plane of two embedding models in this process, with everything that runs it behind gRPC."""

import asyncio
import json
import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import grpc
from google.longrunning import operations_pb2_grpc

from dataplane.adapters.edge.text import EdgeTextIndex
from dataplane.adapters.edge.vector import EdgeVectorIndex
from dataplane.adapters.inmemory.record_store import InMemoryRecordStore
from dataplane.adapters.inmemory.text_index import InMemoryTextIndex
from dataplane.adapters.inmemory.vector_index import ActiveModel, InMemoryVectorIndex
from dataplane.adapters.inprocess_cache import InProcessCache
from dataplane.adapters.postgres.options import PostgresOptions
from dataplane.adapters.postgres.text import PostgresTextIndex
from dataplane.adapters.postgres.vector import PostgresVectorIndex
from dataplane.adapters.qdrant.options import QdrantOptions
from dataplane.adapters.qdrant.vector import QdrantVectorIndex
from dataplane.adapters.sqlite.connection import SqliteOptions
from dataplane.adapters.sqlite.store import SqliteRecordStore
from dataplane.codec import fields_of
from dataplane.logic.tokens import TOKENIZER
from dataplane.pipelines.projector import ProjectorOptions
from dataplane.pipelines.rebuild import RebuildOptions
from dataplane.pipelines.reindex import ReindexOptions
from dataplane.pipelines.spaces import Spaces, VectorSpace
from dataplane.server.maintenance_service import MaintenanceService
from dataplane.server.memory_service import MemoryService
from dataplane.server.operations import OperationsService
from dataplane.stores import Stores
from dataplane.wiring import Surroundings, Wired, WireOptions, wire
from memplane.client import MemPlaneClient
from memplane.client.maintenance import MaintenanceClient
from memplane.policy.access import AccessIndex, hash_api_key
from memplane.policy.effective import EffectivePolicies
from memplane.policy.model import PolicySet
from memplane.policy.snapshot import PolicySnapshot
from memplane.process import SystemClock
from memplane.rpc.interceptors import ErrorInterceptor
from memplane.rpc.server import bind, new_server
from memplane.v1.maintenance_service_pb2_grpc import add_MaintenanceServiceServicer_to_server
from memplane.v1.memory_service_pb2_grpc import add_MemoryServiceServicer_to_server
from tests.callers import callers_of
from tests.postgres import open_store
from tests.unit.dataplane.pipelines.model_parts import NamedEmbedder

ADMIN_KEY = "mpk_00000000_admin-key-of-the-tests"
AGENT_KEY = "mpk_00000001_agent-key-of-the-tests"
OLD = NamedEmbedder("hash-old", 64)
NEW = NamedEmbedder("hash-new", 48)
POLICY: Mapping[str, Any] = {
    "write_policy": {"threshold": 0.0, "short_term_threshold": 0.0},
    "rbac": {
        "principals": {
            "agent": {
                "api_key_sha256": [hash_api_key(AGENT_KEY)],
                "grants": [{"namespace": "dept", "permissions": ["*"]}],
            }
        }
    },
}


class LastingRecords(InMemoryRecordStore):
    """Stays open when the plane that used it ends."""

    async def close(self) -> None: ...


@dataclass
class UpkeepPlane:
    """The running plane, and how to reach it."""

    address: str
    stores: Stores
    wired: Wired

    def memory(self) -> MemPlaneClient:
        return MemPlaneClient(self.address, ADMIN_KEY)

    def maintenance(self, key: str = ADMIN_KEY) -> MaintenanceClient:
        return MaintenanceClient(self.address, key)


@asynccontextmanager
async def upkeep_plane(
    folder: Path | None,
    models: Sequence[NamedEmbedder] = (OLD, NEW),
    shared: Stores | None = None,
    page_size: int = 250,
) -> AsyncIterator[UpkeepPlane]:
    """A plane on the embedded stores of a folder, or in memory: new ones, or those that it shares with others.

    Rebuilds put `page_size` memories in line at once.
    """
    async with AsyncExitStack() as stack:
        stores = shared or (in_memory(models) if folder is None else await _open(folder, models, stack))
        wired = wire(stores, Surroundings(lambda: SNAPSHOT, SystemClock(), "data-1"), _options(page_size))
        server = new_server([ErrorInterceptor(lambda *_: None)])
        address = f"127.0.0.1:{bind(server, '127.0.0.1:0')}"
        _serve(server, wired, stores)
        await stores.spaces.start()
        await wired.start(paused=False)
        await server.start()
        try:
            yield UpkeepPlane(address, stores, wired)
        finally:
            await server.stop(0.2)
            await stores.spaces.stop()
            await wired.stop()


def _serve(server: grpc.aio.Server, wired: Wired, stores: Stores) -> None:
    def dimension() -> int:
        return stores.spaces.current.embedder.dimension

    callers = callers_of(lambda: SNAPSHOT, SystemClock())
    memory = MemoryService(wired.pipelines, callers, SystemClock(), dimension)
    add_MemoryServiceServicer_to_server(memory, server)
    add_MaintenanceServiceServicer_to_server(MaintenanceService(wired.maintenance, callers), server)
    operations = OperationsService(wired.operations, callers)
    operations_pb2_grpc.add_OperationsServicer_to_server(operations, server)


def _options(page_size: int) -> WireOptions:
    projector = ProjectorOptions(
        owner=f"data-1/{secrets.token_hex(4)}",
        doubt_s=0.2,
        poll_s=0.05,
        retry_s=0.01,
        attempts=2,
        backoff_s=0.01,
        level_wait_s=0.0,
    )
    rebuild = RebuildOptions(page_size=page_size, aside_window=page_size)
    return WireOptions(projector=projector, reindex=ReindexOptions(look_s=0.1, abandoned_s=2.0, rebuild=rebuild))


def _snapshot() -> PolicySnapshot:
    model = PolicySet.model_validate_json(json.dumps(POLICY))
    access = AccessIndex(model.rbac, hash_api_key(ADMIN_KEY))
    return PolicySnapshot("sha256:1", 1, 0, EffectivePolicies(model), access)


SNAPSHOT = _snapshot()


def in_memory(models: Sequence[NamedEmbedder]) -> Stores:
    """Stores in memory, whose indexes count as those of servers."""
    cache = InProcessCache(2**24, asyncio.get_running_loop().time)
    active = ActiveModel()
    spaces = [VectorSpace(each, InMemoryVectorIndex(each.dimension, each.model, active), None) for each in models]
    records, texts = LastingRecords(fields_of), InMemoryTextIndex()
    return Stores(records, Spaces(spaces), texts, cache, own_vectors=False, own_texts=False)


async def over_qdrant(url: str, models: Sequence[NamedEmbedder], stack: AsyncExitStack) -> Stores:
    """Stores in memory, but for the vectors, which lie on a Qdrant server under names of their own."""
    options = QdrantOptions(url, prefix=f"t{secrets.token_hex(8)}", timeout_s=60)
    spaces = []
    for each in models:
        vectors = await QdrantVectorIndex.open(options, each.model, each.dimension)
        stack.push_async_callback(vectors.close)
        spaces.append(VectorSpace(each, vectors, None))
    return replace(in_memory(models), spaces=Spaces(spaces))


def restarted(stores: Stores, models: int) -> Stores:
    """The same stores as a new process finds them that knows so many of the models."""
    return replace(stores, spaces=Spaces(stores.spaces.all[:models]))


async def on_postgres(options: PostgresOptions, models: Sequence[NamedEmbedder], stack: AsyncExitStack) -> Stores:
    """Stores on PostgreSQL alone, as of one process."""
    deadline_s = asyncio.get_running_loop().time() + 30
    spaces = []
    for each in models:
        vectors = await PostgresVectorIndex.open(options, each.model, each.dimension, deadline_s)
        stack.push_async_callback(vectors.close)
        spaces.append(VectorSpace(each, vectors, None))
    texts = await PostgresTextIndex.open(options, TOKENIZER, deadline_s)
    stack.push_async_callback(texts.close)
    cache = InProcessCache(2**24, asyncio.get_running_loop().time)
    records = await open_store(options, fields_of)
    return Stores(records, Spaces(spaces), texts, cache, own_vectors=False, own_texts=False)


async def _open(folder: Path, models: Sequence[NamedEmbedder], stack: AsyncExitStack) -> Stores:
    cache = InProcessCache(2**24, asyncio.get_running_loop().time)
    records = await SqliteRecordStore.open(folder / "records.sqlite3", options=SqliteOptions(), fields_of=fields_of)
    stack.push_async_callback(records.close)
    texts = EdgeTextIndex.open(folder / "texts", TOKENIZER)
    stack.push_async_callback(texts.close)
    spaces = []
    for each in models:
        vectors = EdgeVectorIndex.open(folder / "vectors", each.dimension, each.model)
        stack.push_async_callback(vectors.close)
        spaces.append(VectorSpace(each, vectors, None))
    return Stores(records, Spaces(spaces), texts, cache)


async def done(client: MaintenanceClient, operation: Any, timeout_s: float = 60.0) -> Any:
    """The operation once it is done."""
    async with asyncio.timeout(timeout_s):
        async for state in client.follow(operation, pause_s=0.05):
            operation = state
    return operation
