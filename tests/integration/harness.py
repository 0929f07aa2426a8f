"""A data plane in this process: real pipelines and gRPC over the embedded or the in-memory stores, a clock we own."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from google.longrunning import operations_pb2_grpc

from dataplane.adapters.edge.text import EdgeTextIndex
from dataplane.adapters.edge.vector import EdgeVectorIndex
from dataplane.adapters.inmemory.embedder import HashEmbedder
from dataplane.adapters.inmemory.record_store import InMemoryRecordStore
from dataplane.adapters.inmemory.text_index import InMemoryTextIndex
from dataplane.adapters.inmemory.vector_index import InMemoryVectorIndex
from dataplane.adapters.inprocess_cache import InProcessCache
from dataplane.adapters.sqlite.connection import SqliteOptions
from dataplane.adapters.sqlite.store import SqliteRecordStore
from dataplane.codec import fields_of
from dataplane.logic.tokens import TOKENIZER
from dataplane.pipelines.project import Projectors
from dataplane.pipelines.projector import ProjectorOptions
from dataplane.pipelines.purge import PurgeOptions
from dataplane.pipelines.record import Recorder
from dataplane.pipelines.spaces import Spaces, VectorSpace
from dataplane.ports import Embedder, VectorIndex
from dataplane.server.admission import CallAdmission
from dataplane.server.maintenance_service import MaintenanceService
from dataplane.server.memory_service import MemoryService
from dataplane.server.operations import OperationsService
from dataplane.server.waiting_line import WaitingLine
from dataplane.stores import Stores
from dataplane.wiring import Surroundings, WireOptions, wire
from memplane.errors import PolicyNotLoaded
from memplane.policy.access import AccessIndex, hash_api_key
from memplane.policy.effective import EffectivePolicies
from memplane.policy.model import PolicySet
from memplane.policy.snapshot import PolicySnapshot
from memplane.rpc.interceptors import ErrorInterceptor
from memplane.rpc.limits import CallLimiter
from memplane.rpc.server import add_health_and_reflection, bind, new_server
from memplane.v1 import memory_service_pb2 as pb
from memplane.v1.maintenance_service_pb2_grpc import add_MaintenanceServiceServicer_to_server
from memplane.v1.memory_service_pb2_grpc import MemoryServiceStub, add_MemoryServiceServicer_to_server
from tests.callers import callers_of

CACHE_BYTES = 64 * 1024 * 1024
ADMIN_KEY = "mpk_00000000_admin-key-of-the-tests"
NOW_US = 1_760_000_000_000_000


class FixtureClock:
    """A clock that stands until it is moved."""

    def __init__(self, now_us: int = NOW_US):
        self.time_us = now_us

    def now_us(self) -> int:
        return self.time_us

    def forward(self, *, days: float = 0.0, seconds: float = 0.0) -> None:
        self.time_us += int((days * 86_400 + seconds) * 1_000_000)


@dataclass
class Plane:
    """The running plane and everything a test may reach into."""

    address: str
    stub: MemoryServiceStub
    stores: Stores
    projectors: Projectors
    recorder: Recorder
    clock: FixtureClock
    line: WaitingLine
    write_line: WaitingLine
    codes: list[grpc.StatusCode] = field(default_factory=list)
    snapshot: PolicySnapshot | None = None
    tls_port: int = 0

    @property
    def embedder(self) -> Embedder:
        return self.stores.spaces.current.embedder

    @property
    def vectors(self) -> VectorIndex:
        return self.stores.spaces.current.vectors

    def require(self) -> PolicySnapshot:
        if self.snapshot is None:
            raise PolicyNotLoaded
        return self.snapshot

    def use(self, policy: Mapping[str, Any], generation: int = 1) -> None:
        """Puts a policy in force, given as plain sections."""
        model = PolicySet.model_validate_json(json.dumps(policy))
        access = AccessIndex(model.rbac, hash_api_key(ADMIN_KEY))
        self.snapshot = PolicySnapshot(
            f"sha256:{generation:064x}", generation, self.clock.now_us(), EffectivePolicies(model), access
        )


def as_user(key: str = ADMIN_KEY) -> tuple[tuple[str, str], ...]:
    """Metadata of a caller."""
    return (("authorization", f"Bearer {key}"),)


KEEP_ALL: Mapping[str, Any] = {"write_policy": {"threshold": 0.0, "short_term_threshold": 0.0}}
"""A policy that admits everything the model has an opinion of, and merges repeats."""


@asynccontextmanager
async def running_plane(
    folder: Path | None = None, policy: Mapping[str, Any] | None = None, **stores: Any
) -> AsyncIterator[Plane]:
    """A plane on the embedded stores in `folder`, or in memory without one; `stores` replaces single ones."""
    async with AsyncExitStack() as stack:
        made = await open_stores(folder, stack, **stores)
        options = ProjectorOptions(
            owner=stores.get("owner", "plane-of-the-tests"),
            doubt_s=0.2,
            poll_s=0.1,
            backoff_s=0.02,
            max_backoff_s=0.1,
            retry_s=0.02,
            level_wait_s=stores.get("level_wait_s", 20.0),
            purge=PurgeOptions(delay_s=stores.get("purge_delay_s", 1.0), rest_ratio=0.0),
        )
        clock = FixtureClock()
        pace = WireOptions(projector=options, record_interval_s=0.01)
        wired = wire(made, Surroundings(lambda: plane.snapshot, clock, "node"), pace)
        codes: list[grpc.StatusCode] = []
        callers = callers_of(lambda: plane.require(), clock, stores.get("tokens"))  # noqa: PLW0108 - there is no plane yet
        limiter = CallLimiter(asyncio.get_running_loop().time)
        admission = CallAdmission(callers, limiter, lambda _outcome, _seconds: None)
        server = new_server([ErrorInterceptor(lambda _method, code, _seconds: codes.append(code), admission)])
        port = bind(server, "127.0.0.1:0")
        credentials = stores.get("credentials")
        tls_port = 0 if credentials is None else server.add_secure_port("127.0.0.1:0", credentials)
        address = f"127.0.0.1:{port}"
        channel = await stack.enter_async_context(grpc.aio.insecure_channel(address))
        stub = MemoryServiceStub(channel)
        plane = Plane(
            address, stub, made, wired.projectors, wired.recorder, clock, admission.reads, admission.writes, codes
        )
        plane.tls_port = tls_port
        plane.use(KEEP_ALL if policy is None else policy)
        service = MemoryService(wired.pipelines, callers, clock, lambda: plane.embedder.dimension)
        add_MemoryServiceServicer_to_server(service, server)
        add_MaintenanceServiceServicer_to_server(MaintenanceService(wired.maintenance, callers), server)
        operations = OperationsService(wired.operations, callers)
        operations_pb2_grpc.add_OperationsServicer_to_server(operations, server)
        add_health_and_reflection(server, ())
        await wired.start(paused=False)
        await server.start()
        try:
            yield plane
        finally:
            await server.stop(0.5)
            await wired.stop()


async def open_stores(folder: Path | None, stack: AsyncExitStack, **given: Any) -> Stores:
    """The stores of a plane; those `given` by name are taken as they are."""
    embedder = given.get("embedder") or HashEmbedder()
    cache = given.get("cache") or InProcessCache(CACHE_BYTES, asyncio.get_running_loop().time)
    if folder is None:
        vectors = given.get("vectors") or InMemoryVectorIndex(embedder.dimension, embedder.model)
        return Stores(
            records=given.get("records") or InMemoryRecordStore(fields_of),
            spaces=Spaces([VectorSpace(embedder, vectors, given.get("gate_model"))]),
            texts=given.get("texts") or InMemoryTextIndex(),
            cache=cache,
            queue=given.get("queue"),
            counters=given.get("counters"),
            hot_memories=given.get("hot_memories", False),
            own_vectors=given.get("own_indexes", True),
            own_texts=given.get("own_indexes", True),
        )
    records = await SqliteRecordStore.open(folder / "records.sqlite3", options=SqliteOptions(), fields_of=fields_of)
    stack.push_async_callback(records.close)
    opened = EdgeVectorIndex.open(folder / "vectors", embedder.dimension, embedder.model)
    stack.push_async_callback(opened.close)
    texts = EdgeTextIndex.open(folder / "texts", TOKENIZER)
    stack.push_async_callback(texts.close)
    spaces = Spaces([VectorSpace(embedder, opened, given.get("gate_model"))])
    return Stores(records, spaces, texts, cache, queue=given.get("queue"))


async def write(plane: Plane, content: str, namespace: str = "dept.sales", **fields: Any) -> pb.WriteMemoryResponse:
    """Writes as the administrator; the session keeps what no rule admits."""
    fields.setdefault("session_id", "s1")
    request = pb.WriteMemoryRequest(namespace=namespace, content=content, **fields)
    return await plane.stub.WriteMemory(request, metadata=as_user())


async def search(plane: Plane, query: str, namespace: str = "dept.sales", **fields: Any) -> pb.SearchMemoriesResponse:
    """Searches as the administrator."""
    request = pb.SearchMemoriesRequest(namespace=namespace, query=query, **fields)
    return await plane.stub.SearchMemories(request, metadata=as_user())


def contents(response: pb.SearchMemoriesResponse) -> list[str]:
    """What the hits say, best first."""
    return [hit.memory.content for hit in response.hits]
