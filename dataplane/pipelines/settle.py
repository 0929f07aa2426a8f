"""The critical section of a write: one admitted draft against what is already there, then one commit.

Order: exactly the same content, then the same fact key, then nearly the same statement, else a new memory. The store's
unique keys decide races that the section's lock cannot see (another replica); the loser plans again.
"""

from dataclasses import dataclass, replace

from dataplane.codec import answer, parse_body, receipt, statement_of
from dataplane.errors import DuplicateContent, DuplicateFact, StaleVersion
from dataplane.logic.dedup import Neighbour, find_same
from dataplane.logic.statement import is_same
from dataplane.logic.strength import strength_at
from dataplane.model import Draft, Memory, Pool, State
from dataplane.pipelines.degraded import DegradedNotes
from dataplane.pipelines.locks import KeyedLocks
from dataplane.pipelines.neighbours import Around, Neighbours
from dataplane.pipelines.plans import (
    Admitted,
    Plan,
    claim,
    contradict,
    create,
    has_ended,
    is_over,
    reinforce,
    repeat,
    succeed,
)
from dataplane.pipelines.requests import Identified
from dataplane.ports import RecordStore
from memplane.errors import InvalidField, Overloaded
from memplane.v1 import memory_pb2, memory_service_pb2

ATTEMPTS = 6
"""How often a change is planned again when somebody else was faster; then the caller hears of it. Unmeasured."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The answer, without its token, and the outbox position that covers it (0: nothing was stored)."""

    response: memory_service_pb2.WriteMemoryResponse
    position: int


class Settlement:
    """Plans and commits admitted drafts."""

    def __init__(self, store: RecordStore, neighbours: Neighbours):
        self._store = store
        self._neighbours = neighbours
        self._locks = KeyedLocks()

    async def settle(self, admitted: Admitted, degraded: DegradedNotes, deadline_s: float) -> Settled:
        """One commit for the draft; plans again when somebody else was faster.

        Raises DuplicateRequest when the request_id was taken in the meantime.
        """
        async with self._locks.hold((admitted.draft.namespace, admitted.draft.subject_id)):
            for _ in range(ATTEMPTS):
                plan = await self._plan(admitted, degraded, deadline_s)
                response = _response(plan, admitted, degraded)
                if admitted.draft.validate_only:
                    return Settled(response, 0)
                request = identified(admitted.draft).record(
                    admitted.caller, response.SerializeToString(), admitted.admission.now_us
                )
                commit = replace(plan.commit, request=request)
                result = (await self._store.commit([commit], deadline_s))[0]
                if result.error is None:
                    return Settled(response, result.position)
                if not isinstance(result.error, DuplicateContent | DuplicateFact | StaleVersion):
                    raise result.error
        raise Overloaded("too many writers change the same memory; try again", retry_after_s=0.2)

    async def _plan(self, admitted: Admitted, degraded: DegradedNotes, deadline_s: float) -> Plan:
        if admitted.verdict.state is not State.ACTIVE:
            return create(admitted, admitted.verdict.state)
        same = await self._same_content(admitted, deadline_s)
        fact = await self._fact(admitted, deadline_s)
        if same is not None:
            if fact is None or fact.memory_id == same.memory_id:
                if is_over(same, admitted):
                    return succeed(admitted, same)
                return reinforce(admitted, same, "SAME_CONTENT", "the same content is already stored")
            _check_rival(admitted, fact)
            return claim(admitted, same, fact)
        neighbour = await self._same_statement(admitted, degraded, deadline_s)
        if fact is not None and (neighbour is None or neighbour.memory.memory_id != fact.memory_id):
            _check_rival(admitted, fact)
            return contradict(admitted, fact)
        return create(admitted, State.ACTIVE) if neighbour is None else repeat(admitted, neighbour)

    async def _same_content(self, admitted: Admitted, deadline_s: float) -> Memory | None:
        """The memory that says the same to the letter; one with the draft's fact key before one without."""
        draft = admitted.draft
        found = await self._store.find_same_content(
            admitted.scope, draft.subject_id, draft.kind, admitted.admission.content_hash, deadline_s
        )
        same = [memory for memory in found if is_same(statement_of(parse_body(memory)), admitted.statement)]
        return min(same, key=lambda memory: memory.fact_key != draft.fact_key, default=None)

    async def _fact(self, admitted: Admitted, deadline_s: float) -> Memory | None:
        draft = admitted.draft
        if not draft.fact_key:
            return None
        return await self._store.find_fact(admitted.scope, draft.subject_id, draft.fact_key, deadline_s)

    async def _same_statement(self, admitted: Admitted, degraded: DegradedNotes, deadline_s: float) -> Neighbour | None:
        write = admitted.policies.write
        if not write.dedup or admitted.embedding is None:
            return None
        draft = admitted.draft
        around = Around(
            space=admitted.space,
            scope=admitted.scope,
            subject_id=draft.subject_id,
            kind=draft.kind,
            pool=draft.pool,
            embedding=admitted.embedding,
            least_similarity=write.dedup_similarity,
        )
        found = await self._neighbours.near(around, degraded, deadline_s)
        told = [item for item in found if is_same(statement_of(parse_body(item.memory)), admitted.statement)]
        return find_same(admitted.admission.content, draft.fact_key, told, write)


def _check_rival(admitted: Admitted, fact: Memory) -> None:
    """Raises when the draft may not contest the memory that holds its fact key."""
    if fact.pool is Pool.SHARED:
        admitted.caller.require("share.propose", fact.namespace)
    ahead = admitted.draft.valid_from_us is not None and admitted.draft.valid_from_us > admitted.admission.now_us
    if ahead and not has_ended(fact, admitted):
        raise InvalidField.one(
            "valid_from",
            f"lies ahead while memory {fact.memory_id} still holds this fact_key; write it when it begins to hold",
        )


def _response(plan: Plan, admitted: Admitted, degraded: DegradedNotes) -> memory_service_pb2.WriteMemoryResponse:
    shown = plan.shown
    now_us = admitted.admission.now_us
    strength = strength_at(shown.strength, shown.strength_time_us, now_us, admitted.policies.decay)
    return memory_service_pb2.WriteMemoryResponse(
        memory=_told(shown, strength, plan, admitted),
        decision=plan.verdict.message(),
        policy_version=admitted.caller.snapshot.version,
        degraded=degraded.messages(),
    )


def _told(shown: Memory, strength: float, plan: Plan, admitted: Admitted) -> memory_pb2.Memory:
    """The memory; of one that others wrote, no content to a caller who may not read."""
    own = plan.commit.expected_version == 0
    if own or admitted.caller.may("memory.read", shown.namespace):
        return answer(shown, shown.state, strength)
    return receipt(shown, shown.state)


def identified(draft: Draft) -> Identified:
    """The draft's request, for idempotency."""
    return Identified(draft.namespace, draft.request_id, draft.payload_hash)
