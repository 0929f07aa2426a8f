"""MemoryService over gRPC."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dataplane.changes import MemoryVersion
from dataplane.codec import answer, version_answer
from dataplane.logic.explain import explain
from dataplane.logic.rank import Ranked
from dataplane.pipelines.caller import Caller
from dataplane.pipelines.context import ContextPipeline
from dataplane.pipelines.enqueue import EnqueuePipeline, Proposal
from dataplane.pipelines.forget import ForgetPipeline
from dataplane.pipelines.get import GetPipeline, state_now
from dataplane.pipelines.list import ListPipeline
from dataplane.pipelines.search import SearchAnswer, SearchPipeline
from dataplane.pipelines.settle import Settled
from dataplane.pipelines.sight import hide_references
from dataplane.pipelines.update import UpdatePipeline
from dataplane.pipelines.write import Outcome, WritePipeline
from dataplane.pipelines.write_or_queue import WriteOrQueue
from dataplane.ports import Clock
from dataplane.server.callers import Callers, Context, deadline_of
from dataplane.server.checks import Notes
from dataplane.server.queries import read_listing, read_page_size, read_search
from dataplane.server.requests import read_draft
from dataplane.server.revisions import read_forgetting, read_revision
from dataplane.server.tokens import consistency_token, page_token, read_page_token
from memplane.errors import InvalidField, MemPlaneError, NotOffered
from memplane.rpc.errors import status_of
from memplane.v1 import memory_pb2, memory_service_pb2, memory_service_pb2_grpc

MAX_BATCH = 1_000
MAX_TOKEN_BUDGET = 100_000
READ_TOGETHER = 64
"""Requests of a batch that are read without a pause: 2 to 3 ms (2026-11)."""


@dataclass(frozen=True, slots=True)
class Pipelines:
    """One for each verb. `enqueue` None: there is no queue, so that every write is synchronous.

    `write` decides drafts; calls go by way of `write_or_queue`.
    """

    write: WritePipeline
    write_or_queue: WriteOrQueue
    search: SearchPipeline
    context: ContextPipeline
    get: GetPipeline
    list: ListPipeline
    update: UpdatePipeline
    forget: ForgetPipeline
    enqueue: EnqueuePipeline | None = None


class MemoryService(memory_service_pb2_grpc.MemoryServiceServicer):
    """Takes requests apart, calls the verb's pipeline, puts the answer together.

    `callers` tell who calls, once a call. `dimension` tells the embedder's at the time.
    """

    def __init__(
        self,
        pipelines: Pipelines,
        callers: Callers,
        clock: Clock,
        dimension: Callable[[], int],
    ):
        self._pipelines = pipelines
        self._callers = callers
        self._clock = clock
        self._dimension = dimension

    def _caller(self, context: Context) -> Caller:
        return self._callers.of(context)

    async def WriteMemory(  # noqa: N802 - the contract's name
        self, request: memory_service_pb2.WriteMemoryRequest, context: Context
    ) -> memory_service_pb2.WriteMemoryResponse:
        """See the contract."""
        caller = self._caller(context)
        proposal = self._proposal(request)
        if self._pipelines.enqueue is not None and _is_queued(proposal):
            settled = await self._pipelines.enqueue.enqueue(proposal, caller, deadline_of(context))
        else:
            settled = await self._pipelines.write_or_queue.write(proposal, caller, deadline_of(context))
        return _told(settled)

    async def BatchWriteMemories(  # noqa: N802 - the contract's name
        self, request: memory_service_pb2.BatchWriteMemoriesRequest, context: Context
    ) -> memory_service_pb2.BatchWriteMemoriesResponse:
        """See the contract."""
        caller = self._caller(context)
        if not 1 <= len(request.requests) <= MAX_BATCH:
            raise InvalidField.one("requests", f"has {len(request.requests)} items; it must have 1 to {MAX_BATCH}")
        proposals = await self._proposals(request.requests)
        outcomes = await self._outcomes(proposals, caller, deadline_of(context))
        response = memory_service_pb2.BatchWriteMemoriesResponse(policy_version=caller.snapshot.version)
        position, degraded = 0, dict[str, memory_pb2.Degraded]()
        for outcome in outcomes:
            if isinstance(outcome, MemPlaneError):
                response.results.add().error.CopyFrom(status_of(outcome))
                continue
            position = max(position, outcome.position)
            degraded.update((note.backend, note) for note in outcome.response.degraded)
            response.results.add().response.CopyFrom(_told(outcome))
        response.consistency_token = consistency_token(position) if position else ""
        response.degraded.extend(degraded.values())
        return response

    async def _proposals(
        self, requests: Sequence[memory_service_pb2.WriteMemoryRequest]
    ) -> list[Proposal | MemPlaneError]:
        """What each request proposes; other calls go on in between."""
        proposals: list[Proposal | MemPlaneError] = []
        for request in requests:
            proposals.append(self._proposal_or_error(request))
            if len(proposals) % READ_TOGETHER == 0:
                await asyncio.sleep(0)
        return proposals

    async def _outcomes(
        self, proposals: Sequence[Proposal | MemPlaneError], caller: Caller, deadline_s: float
    ) -> list[Outcome]:
        """Those to be queued are queued, the others decided if that can be; each sort in its order."""
        queued = [item for item in proposals if _is_queued(item)]
        others = [item for item in proposals if not _is_queued(item)]
        enqueue = self._pipelines.enqueue
        accepted = iter(await enqueue.enqueue_batch(queued, caller, deadline_s) if enqueue is not None else ())
        decided = iter(await self._pipelines.write_or_queue.write_batch(others, caller, deadline_s))
        return [next(accepted if _is_queued(item) else decided) for item in proposals]

    def _proposal(self, request: memory_service_pb2.WriteMemoryRequest) -> Proposal:
        if request.delivery == memory_service_pb2.DELIVERY_QUEUED and self._pipelines.enqueue is None:
            raise NotOffered("delivery QUEUED: no durable queue is configured; use SYNC")
        return Proposal(request, read_draft(request, self._clock.now_us(), self._dimension()))

    def _proposal_or_error(self, request: memory_service_pb2.WriteMemoryRequest) -> Proposal | MemPlaneError:
        try:
            return self._proposal(request)
        except MemPlaneError as error:
            return error

    async def SearchMemories(  # noqa: N802 - the contract's name
        self, request: memory_service_pb2.SearchMemoriesRequest, context: Context
    ) -> memory_service_pb2.SearchMemoriesResponse:
        """See the contract."""
        caller = self._caller(context)
        found = await self._pipelines.search.search(read_search(request), caller, deadline_of(context))
        response = memory_service_pb2.SearchMemoriesResponse(
            search_id=found.search_id,
            policy_version=caller.snapshot.version,
            consistency_token=consistency_token(found.position) if found.position else "",
            omitted_namespaces=found.omitted_namespaces,
            degraded=found.degraded.messages(),
        )
        for number, hit in enumerate(found.hits, start=1):
            _put_hit(response.hits.add(), number, hit, found, caller)
            if request.explain:
                response.hits[-1].explanation = explain(hit, found.weights, found.policies.retrieve)
        return response

    async def GetContext(  # noqa: N802 - the contract's name
        self, request: memory_service_pb2.GetContextRequest, context: Context
    ) -> memory_service_pb2.GetContextResponse:
        """See the contract."""
        caller = self._caller(context)
        notes = Notes()
        if request.token_budget != 0:
            notes.integer("token_budget", request.token_budget, 16, MAX_TOKEN_BUDGET)
        notes.close()
        query = read_search(request.search, prefix="search.")
        made = await self._pipelines.context.context(query, request.token_budget, caller, deadline_of(context))
        return memory_service_pb2.GetContextResponse(
            context=made.block.text,
            memory_ids=made.block.memory_ids,
            omitted=made.block.omitted,
            search_id=made.search.search_id,
            degraded=made.search.degraded.messages(),
            policy_version=caller.snapshot.version,
            token_count=made.block.token_count,
            omitted_namespaces=made.search.omitted_namespaces,
        )

    async def GetMemory(  # noqa: N802 - the contract's name
        self, request: memory_service_pb2.GetMemoryRequest, context: Context
    ) -> memory_service_pb2.GetMemoryResponse:
        """See the contract."""
        caller = self._caller(context)
        notes = Notes()
        notes.namespace("namespace", request.namespace)
        memory_id = _id(notes, request.id)
        notes.integer("version", request.version, 0, 2**62)
        notes.close()
        memory, state, strength = await self._pipelines.get.get(
            request.namespace, memory_id, request.version, caller, deadline_of(context)
        )
        return memory_service_pb2.GetMemoryResponse(
            memory=hide_references(answer(memory, state, strength), caller), policy_version=caller.snapshot.version
        )

    async def ListMemories(  # noqa: N802 - the contract's name
        self, request: memory_service_pb2.ListMemoriesRequest, context: Context
    ) -> memory_service_pb2.ListMemoriesResponse:
        """See the contract."""
        caller = self._caller(context)
        listing = read_listing(request, caller.principal_id)
        page = await self._pipelines.list.list(listing, caller, deadline_of(context))
        return memory_service_pb2.ListMemoriesResponse(
            memories=[hide_references(answer(*row), caller) for row in page.rows],
            next_page_token=page_token(request, caller.principal_id, page.after) if page.after else "",
            policy_version=caller.snapshot.version,
        )

    async def UpdateMemory(  # noqa: N802 - the contract's name
        self, request: memory_service_pb2.UpdateMemoryRequest, context: Context
    ) -> memory_service_pb2.UpdateMemoryResponse:
        """See the contract."""
        caller = self._caller(context)
        response, position = await self._pipelines.update.update(
            read_revision(request, self._clock.now_us()), caller, deadline_of(context)
        )
        response.consistency_token = consistency_token(position)
        return response

    async def ForgetMemory(  # noqa: N802 - the contract's name
        self, request: memory_service_pb2.ForgetMemoryRequest, context: Context
    ) -> memory_service_pb2.ForgetMemoryResponse:
        """See the contract."""
        caller = self._caller(context)
        response, position = await self._pipelines.forget.forget(read_forgetting(request), caller, deadline_of(context))
        response.consistency_token = consistency_token(position)
        return response

    async def ListMemoryVersions(  # noqa: N802 - the contract's name
        self, request: memory_service_pb2.ListMemoryVersionsRequest, context: Context
    ) -> memory_service_pb2.ListMemoryVersionsResponse:
        """See the contract."""
        caller = self._caller(context)
        notes = Notes()
        notes.namespace("namespace", request.namespace)
        memory_id = _id(notes, request.id)
        page_size = read_page_size(notes, request.page_size)
        notes.close()
        after = read_page_token(request, caller.principal_id)
        versions = await self._pipelines.get.versions(
            request.namespace, memory_id, after[0] if after else 0, page_size + 1, caller, deadline_of(context)
        )
        more = len(versions) > page_size
        shown = versions[:page_size]
        return memory_service_pb2.ListMemoryVersionsResponse(
            versions=[_version(version, caller) for version in shown],
            next_page_token=page_token(request, caller.principal_id, (shown[-1].memory.version, "")) if more else "",
            policy_version=caller.snapshot.version,
        )


def _is_queued(item: Proposal | MemPlaneError) -> bool:
    """Whether it is to be decided later; a trial (`validate_only`) is decided at once."""
    if isinstance(item, MemPlaneError) or item.draft.validate_only:
        return False
    return item.request.delivery == memory_service_pb2.DELIVERY_QUEUED


def _id(notes: Notes, memory_id: str) -> str:
    if not memory_id:
        notes.add("id", "is required")
    return notes.label("id", memory_id)


def _told(settled: Settled) -> memory_service_pb2.WriteMemoryResponse:
    """The answer with its token and with the words of its advice, of which nothing is stored."""
    if settled.position:
        settled.response.consistency_token = consistency_token(settled.position)
    for reason in settled.response.decision.reasons:
        if settled.quotes and reason.code == "CLARIFY":
            reason.message += f": {settled.quotes}"
    return settled.response


def _version(version: MemoryVersion, caller: Caller) -> memory_service_pb2.MemoryVersion:
    message = version_answer(version)
    hide_references(message.memory, caller)
    return message


def _put_hit(target: memory_pb2.Hit, number: int, hit: Ranked, found: SearchAnswer, caller: Caller) -> None:
    memory, signals = hit.candidate.memory, hit.signals
    target.score = hit.score
    target.rank = number
    target.confidence = hit.confidence
    target.signals.vector = signals.vector
    target.signals.text = signals.text
    target.signals.freshness = signals.freshness
    target.signals.frequency = signals.frequency
    target.signals.credibility = signals.credibility
    target.signals.task_alignment = signals.task_alignment
    target.signals.strength = signals.strength
    target.signals.asked_time = signals.asked_time
    target.signals.boost = signals.boost
    target.memory.CopyFrom(hide_references(answer(memory, *state_now(memory, caller, found.now_us)), caller))
