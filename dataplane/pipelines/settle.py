"""The critical section of a write: one admitted draft against what is already there, then one commit.

Order: exactly the same content, then the same fact key, then nearly the same statement, else a new memory. The store's
unique keys decide races that the section's lock cannot see (another replica); the loser plans again.
"""

from dataclasses import dataclass, replace

from dataplane.codec import answer
from dataplane.errors import DuplicateContent, DuplicateFact, StaleVersion
from dataplane.logic.dedup import Neighbour, find_same
from dataplane.logic.strength import strength_at
from dataplane.model import Draft, Memory, Pool, State
from dataplane.pipelines.degraded import DegradedNotes
from dataplane.pipelines.locks import KeyedLocks
from dataplane.pipelines.neighbours import Around, Neighbours
from dataplane.pipelines.plans import Admitted, Plan, contradict, create, reinforce, repeat
from dataplane.pipelines.requests import Identified
from dataplane.ports import RecordStore
from memplane.errors import Overloaded
from memplane.v1 import memory_service_pb2

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
        draft = admitted.draft
        if admitted.verdict.state is not State.ACTIVE:
            return create(admitted, admitted.verdict.state)
        same = await self._store.find_duplicate(
            admitted.scope, draft.subject_id, draft.kind, admitted.admission.content_hash, deadline_s
        )
        if same is not None:
            return reinforce(admitted, same, "SAME_CONTENT", "the same content is already stored")
        fact = await self._fact(admitted, deadline_s)
        neighbour = await self._same_statement(admitted, degraded, deadline_s)
        if fact is not None and (neighbour is None or neighbour.memory.memory_id != fact.memory_id):
            if fact.pool is Pool.SHARED:
                admitted.caller.require("share.propose", fact.namespace)
            return contradict(admitted, fact)
        return create(admitted, State.ACTIVE) if neighbour is None else repeat(admitted, neighbour)

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
            admitted.scope, draft.subject_id, draft.kind, draft.pool, admitted.embedding, write.dedup_similarity
        )
        found = await self._neighbours.near(around, degraded, deadline_s)
        return find_same(admitted.admission.content, draft.fact_key, found, write)


def _response(plan: Plan, admitted: Admitted, degraded: DegradedNotes) -> memory_service_pb2.WriteMemoryResponse:
    shown = plan.shown
    now_us = admitted.admission.now_us
    strength = strength_at(shown.strength, shown.strength_time_us, now_us, admitted.policies.decay)
    return memory_service_pb2.WriteMemoryResponse(
        memory=answer(shown, shown.state, strength),
        decision=plan.verdict.message(),
        policy_version=admitted.caller.snapshot.version,
        degraded=degraded.messages(),
    )


def identified(draft: Draft) -> Identified:
    """The draft's request, for idempotency."""
    return Identified(draft.namespace, draft.request_id, draft.payload_hash)
