"""A queued write up to its acknowledgement: allowed, within limits, not asked before, masked, durable in the queue.

The operation's name follows from principal, namespace and request_id, so that asking again leads to the same one, from
any data plane and without a look-up table.
"""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from dataplane.changes import OperationRecord, QueuedWrite
from dataplane.errors import BackendUnavailable, QueueFull
from dataplane.model import Draft
from dataplane.pipelines.caller import Caller
from dataplane.pipelines.limits import check_allowed, check_limits
from dataplane.pipelines.operations import PREFIX, queued, shown
from dataplane.pipelines.redact import redacted
from dataplane.pipelines.settle import Settled
from dataplane.pipelines.shares import shares
from dataplane.pipelines.write import Outcome, WritePipeline
from dataplane.ports import Clock, RecordStore, WriteQueue
from memplane.errors import MemPlaneError, Overloaded, RequestIdReused, Unavailable
from memplane.identity import Identity
from memplane.v1 import memory_pb2, memory_service_pb2

LOOK_S = 1.0
"""How long the record store is asked whether a request was decided before; one that hangs must not stop the queue.
Unmeasured."""

SIDE_BY_SIDE = 16
"""How many of a batch are accepted at once. Unmeasured."""
PROBE = "queue"
"""The marker that tells whether the record store takes writes."""


class QueuedForm(Protocol):
    """Between a queued write's bytes and what pipelines work with."""

    def pack(
        self, request: memory_service_pb2.WriteMemoryRequest, draft: Draft, request_id: str, claims: frozenset[str]
    ) -> bytes:
        """The request as it is queued: its texts as the draft has them, under this request_id, of these claims."""
        ...

    def draft(self, write: QueuedWrite) -> Draft:
        """The draft of a queued write; raises InvalidField."""
        ...

    def identity(self, write: QueuedWrite) -> Identity:
        """Who wrote it, as the call told."""
        ...

    def result(self, settled: Settled) -> memory_service_pb2.WriteMemoryResponse:
        """What the operation tells of an outcome: no content."""
        ...


@dataclass(frozen=True, slots=True)
class Proposal:
    """A write request, and the draft that was read from it."""

    request: memory_service_pb2.WriteMemoryRequest
    draft: Draft


@dataclass(frozen=True, slots=True)
class EnqueueParts:
    """What accepting a write needs of the world."""

    queue: WriteQueue
    store: RecordStore
    write: WritePipeline
    form: QueuedForm
    clock: Clock
    new_id: Callable[[], str]


class EnqueuePipeline:
    """Accepts writes to be applied later."""

    def __init__(self, parts: EnqueueParts):
        self._parts = parts

    async def enqueue_batch(
        self,
        proposals: Sequence[Proposal | MemPlaneError],
        caller: Caller,
        deadline_s: float,
        *,
        asks_store: bool = True,
    ) -> list[Outcome]:
        """The outcome of each proposal, index-aligned; an error given is its own outcome.

        Those of one namespace and subject are accepted in order, the others side by side. `asks_store` as in `enqueue`.
        """
        outcomes: dict[int, Outcome] = {}

        async def accept(share: Sequence[tuple[int, Proposal | MemPlaneError]]) -> None:
            for index, proposal in share:
                outcomes[index] = await self._outcome(proposal, caller, deadline_s, asks_store=asks_store)

        dealt = shares(list(enumerate(proposals)), lambda item: order_key(item[1]), SIDE_BY_SIDE)
        await asyncio.gather(*(accept(share) for share in dealt))
        return [outcomes[index] for index in range(len(proposals))]

    async def _outcome(
        self, proposal: Proposal | MemPlaneError, caller: Caller, deadline_s: float, *, asks_store: bool
    ) -> Outcome:
        if isinstance(proposal, MemPlaneError):
            return proposal
        try:
            return await self.enqueue(proposal, caller, deadline_s, asks_store=asks_store)
        except MemPlaneError as error:
            return error

    async def enqueue(
        self, proposal: Proposal, caller: Caller, deadline_s: float, *, asks_store: bool = True
    ) -> Settled:
        """The operation that will tell what became of the write, or the first answer to a request that was decided.

        `asks_store` False: the record store is known to be down, and is not asked what was decided before.

        Raises what a synchronous write would before it is decided, Overloaded when the queue is full, Unavailable.
        """
        draft = proposal.draft
        check_allowed(draft, caller)
        policies = caller.snapshot.policies.for_namespace(draft.namespace)
        try:
            if draft.request_id:
                earlier = await self._earlier(draft, caller, deadline_s, asks_store=asks_store)
                if earlier is not None:
                    return earlier
            check_limits(draft, policies)
            clean = await redacted(draft, policies)
            write = self._queued(replace(proposal, draft=clean), caller)
            await self._parts.queue.put(write, deadline_s)
        except QueueFull as error:
            told = "the queue of writes is full; try again, or write with delivery SYNC"
            raise Overloaded(told, error.retry_after_s) from error
        except BackendUnavailable as error:
            raise Unavailable(error.backend) from error
        return _answer(queued(write), caller)

    def _queued(self, proposal: Proposal, caller: Caller) -> QueuedWrite:
        draft = proposal.draft
        request_id = draft.request_id or draft.attempt_id or self._parts.new_id()
        return QueuedWrite(
            operation=operation_name(caller.principal_id, draft.namespace, request_id),
            principal_id=caller.principal_id,
            namespace=draft.namespace,
            request=self._parts.form.pack(proposal.request, draft, request_id, caller.identity.claims),
            time_us=self._parts.clock.now_us(),
            order_key=order_key(proposal),
        )

    async def store_takes(self, deadline_s: float) -> bool:
        """Whether the record store takes something small: one on a full disk answers reads, and applies nothing.

        One that says nothing for LOOK_S does not, for who asks has a caller who waits.
        """
        try:
            await self._parts.store.save_marker(PROBE, 0, _soon(deadline_s))
        except BackendUnavailable:
            return False
        return True

    async def still_waits(self, operation: str, deadline_s: float) -> bool:
        """Whether a write is in the queue; also when the queue cannot tell."""
        try:
            return await self._parts.queue.find(operation, deadline_s) is not None
        except BackendUnavailable:
            return True

    async def _earlier(self, draft: Draft, caller: Caller, deadline_s: float, *, asks_store: bool) -> Settled | None:
        """What this request_id was answered before; RequestIdReused when it asked for something else."""
        name = operation_name(caller.principal_id, draft.namespace, draft.request_id)
        waiting = await self._parts.queue.find(name, deadline_s)
        if waiting is not None:
            if self._parts.form.draft(waiting).payload_hash != draft.payload_hash:
                raise RequestIdReused(draft.request_id)
            return _answer(queued(waiting), caller)
        if not asks_store:
            return None
        look_until_s = _soon(deadline_s)
        try:
            operation = await self._parts.store.find_operation(name, look_until_s)
            decided = await self._parts.write.replay(draft, caller, look_until_s)
        except BackendUnavailable:  # not known for now; when it is applied it will be
            return None
        return decided if operation is None else _answer(operation, caller)


def _soon(deadline_s: float) -> float:
    return min(deadline_s, asyncio.get_running_loop().time() + LOOK_S)


def order_key(proposal: Proposal | MemPlaneError) -> str:
    """What is decided in order: namespace and subject."""
    return "" if isinstance(proposal, MemPlaneError) else f"{proposal.draft.namespace} {proposal.draft.subject_id}"


def operation_name(principal_id: str, namespace: str, request_id: str) -> str:
    """The operation of a principal's request; its name tells nothing of either."""
    told = "\0".join((principal_id, namespace, request_id))
    return PREFIX + hashlib.sha256(told.encode()).hexdigest()[:40]


def _answer(record: OperationRecord, caller: Caller) -> Settled:
    response = memory_service_pb2.WriteMemoryResponse(policy_version=caller.snapshot.version)
    response.decision.action = memory_pb2.DECISION_ACTION_QUEUED
    response.operation.CopyFrom(shown(record))
    return Settled(response, 0)
