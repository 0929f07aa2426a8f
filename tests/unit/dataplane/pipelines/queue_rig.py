"""Queued writes end to end without gRPC: real pipelines over the in-memory record store, an index that is down."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import Any, cast

from google.longrunning import operations_pb2

from dataplane.adapters.inmemory.embedder import HashEmbedder
from dataplane.adapters.inmemory.record_store import InMemoryRecordStore
from dataplane.adapters.inmemory.write_queue import InMemoryWriteQueue
from dataplane.adapters.system import Ids
from dataplane.changes import OperationRecord
from dataplane.codec import fields_of, parse_body
from dataplane.errors import BackendUnavailable
from dataplane.model import Candidate, Memory
from dataplane.pair_model import shipped_pair_model
from dataplane.pipelines.apply import ApplyOptions, ApplyParts, QueueConsumer
from dataplane.pipelines.caller import Caller
from dataplane.pipelines.enqueue import EnqueueParts, EnqueuePipeline, Proposal
from dataplane.pipelines.guard import Guard
from dataplane.pipelines.neighbours import Neighbours
from dataplane.pipelines.operations import OperationsPipeline
from dataplane.pipelines.project import Projectors
from dataplane.pipelines.settle import Settled, Settlement
from dataplane.pipelines.spaces import Spaces, VectorSpace
from dataplane.pipelines.write import WriteParts, WritePipeline
from dataplane.pipelines.write_or_queue import WriteOrQueue
from dataplane.ports import VectorIndex, WriteQueue
from dataplane.server.queued import QueuedRequests
from dataplane.server.requests import read_draft
from memplane.identity import Identity
from memplane.policy.access import AccessIndex
from memplane.policy.effective import EffectivePolicies
from memplane.policy.model import PolicySet, WritePolicy
from memplane.policy.rbac import Grant, Principal, Rbac
from memplane.policy.snapshot import PolicySnapshot
from memplane.process import SystemClock
from memplane.v1 import memory_service_pb2 as pb
from tests.deadline import eventually_async

WRITER = Principal(grants=(Grant(namespace="dept", permissions=("memory.write", "memory.read")),))
KEEPER = Principal(grants=(Grant(namespace="*", permissions=("maintenance",)),))
NOBODY = Principal()
KEEP_ALL = WritePolicy(threshold=0.0, short_term_threshold=0.0, batch_interval_s=0.01)


class NoProjectors:
    """There are no indexes: exact repeats and equal facts are recognised from the record store."""

    applied: Mapping[str, int] = MappingProxyType({})

    async def wait_for(self, _position: int, _timeout_s: float) -> bool:
        return True


class DownIndex:
    async def search(self, *_arguments: object) -> list[Candidate]:
        raise BackendUnavailable("vector_index")


class FlakyStore(InMemoryRecordStore):
    """Down while `is_down`; `failing_saves` of operations fail."""

    is_down = False
    failing_saves = 0

    def _check(self, deadline_s: float) -> None:
        if self.is_down:
            raise BackendUnavailable("record_store", "down")
        super()._check(deadline_s)

    async def save_operations(self, operations: Sequence[OperationRecord], deadline_s: float) -> None:
        if self.failing_saves:
            self.failing_saves -= 1
            raise BackendUnavailable("record_store", "down")
        await super().save_operations(operations, deadline_s)


def snapshot_of(write: WritePolicy = KEEP_ALL, **principals: Principal) -> PolicySnapshot:
    rbac = Rbac(principals={"agent": WRITER, "other": WRITER, "keeper": KEEPER, **principals})
    policies = EffectivePolicies(PolicySet(rbac=rbac, write_policy=write))
    return PolicySnapshot("sha256:1", 1, 0, policies, AccessIndex(rbac, None))


@dataclass
class Rig:
    """What a data plane makes of queued writes; `snapshot` is the policy in force."""

    store: Any
    queue: WriteQueue
    write: WritePipeline
    snapshot: PolicySnapshot | None = field(default_factory=snapshot_of)

    @property
    def form(self) -> QueuedRequests:
        return QueuedRequests(lambda: 384)

    @property
    def enqueue(self) -> EnqueuePipeline:
        ids = Ids(SystemClock())
        return EnqueuePipeline(
            EnqueueParts(self.queue, self.store, self.write, self.form, SystemClock(), ids.search_id)
        )

    @cached_property
    def write_or_queue(self) -> WriteOrQueue:
        return WriteOrQueue(self.write, self.enqueue, Ids(SystemClock()).request_id)

    @property
    def operations(self) -> OperationsPipeline:
        return OperationsPipeline(self.store, self.queue)

    def consumer(self, owner: str = "one", write: Any = None, **options: float) -> QueueConsumer:
        parts = ApplyParts(
            self.queue,
            self.store,
            write or self.write,
            self.form,
            lambda: self.snapshot,
            SystemClock(),
        )
        quick = {"wait_s": 0.05, "first_pause_s": 0.01, "longest_pause_s": 0.02, "renew_interval_s": 0.05}
        return QueueConsumer(parts, ApplyOptions(owner, **{**quick, **options}))

    def caller(self, principal_id: str = "agent") -> Caller:
        assert self.snapshot is not None
        return Caller(Identity(principal_id), self.snapshot)

    async def put(self, content: str, principal_id: str = "agent", **fields: Any) -> Settled:
        request = pb.WriteMemoryRequest(
            **{"namespace": "dept.sales", "content": content, "delivery": pb.DELIVERY_QUEUED, **fields}
        )
        draft = read_draft(request, SystemClock().now_us(), 384)
        return await self.enqueue.enqueue(Proposal(request, draft), self.caller(principal_id), in_time())

    async def operation(self, name: str, principal_id: str = "agent") -> operations_pb2.Operation:
        return await self.operations.get(name, self.caller(principal_id), in_time())

    async def ended(self, settled: Settled) -> operations_pb2.Operation:
        """The operation of an accepted write, once it is done."""
        name = settled.response.operation.name
        return await eventually_async(lambda: self.operation(name, "keeper"), lambda found: bool(found.done))

    async def memories(self) -> list[Memory]:
        rows = await self.store.scan("", 1_000, in_time(), "hash-384")
        return [row.memory for row in rows if row.memory is not None]

    async def contents(self) -> list[str]:
        return sorted(parse_body(memory).content for memory in await self.memories())


def rig_over(queue: WriteQueue, store: Any = None) -> Rig:
    """`store`: the record store, else one in memory."""
    records, projectors = store or FlakyStore(fields_of), cast("Projectors", NoProjectors())
    space = VectorSpace(HashEmbedder(), cast("VectorIndex", DownIndex()), None)
    parts = WriteParts(
        store=records,
        spaces=Spaces([space]),
        projectors=projectors,
        settlement=Settlement(records, Neighbours(records, projectors), shipped_pair_model()),
        guard=Guard(),
        clock=SystemClock(),
        new_id=Ids(SystemClock()).memory_id,
    )
    return Rig(records, queue, WritePipeline(parts))


def memory_rig(claim_after_s: float = 30.0, max_entries: int = 1_000) -> Rig:
    return rig_over(InMemoryWriteQueue(SystemClock(), max_entries, claim_after_s))


@asynccontextmanager
async def running(*consumers: QueueConsumer) -> AsyncIterator[None]:
    for consumer in consumers:
        consumer.start()
    try:
        yield
    finally:
        for consumer in consumers:
            await consumer.stop()


def in_time() -> float:
    return asyncio.get_running_loop().time() + 10


def response_of(operation: operations_pb2.Operation) -> pb.WriteMemoryResponse:
    response = pb.WriteMemoryResponse()
    assert operation.response.Unpack(response), operation
    return response


def with_rights(rig: Rig, **principals: Principal) -> None:
    """Another policy comes into force."""
    rig.snapshot = replace(snapshot_of(KEEP_ALL, **principals), version="sha256:2")
