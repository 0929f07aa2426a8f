"""The critical section of a write: one admitted draft against what is already there, then one commit.

Order: exactly the same content, then the same fact key, then nearly the same statement, else a new memory. The store's
unique keys decide races that the section's lock cannot see (another replica); the loser plans again.
"""

from dataclasses import dataclass, replace

from dataplane.codec import Admission, answer, new_memory, next_version, parse_body
from dataplane.errors import DuplicateContent, DuplicateFact, StaleVersion
from dataplane.logic.conflict import Claim, Resolution, resolve
from dataplane.logic.dedup import Neighbour, find_same
from dataplane.logic.strength import after_hit, strength_at
from dataplane.model import (
    Action,
    Change,
    Commit,
    ConflictRecord,
    DecisionRecord,
    Draft,
    Layer,
    Memory,
    Pool,
    Scope,
    State,
    Supersession,
    Vector,
)
from dataplane.pipelines.caller import Caller
from dataplane.pipelines.degraded import DegradedNotes
from dataplane.pipelines.locks import KeyedLocks
from dataplane.pipelines.neighbours import Around, Neighbours
from dataplane.pipelines.requests import Identified
from dataplane.pipelines.verdict import Verdict
from dataplane.ports import RecordStore
from memplane.errors import Overloaded
from memplane.policy.effective import NamespacePolicies
from memplane.v1 import memory_pb2, memory_service_pb2

ATTEMPTS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Admitted:
    """A draft that the gate admitted, with everything that planning needs."""

    draft: Draft
    policies: NamespacePolicies
    admission: Admission
    embedding: Vector | None
    embedding_model: str
    verdict: Verdict
    caller: Caller

    @property
    def scope(self) -> Scope:
        """The draft's own namespace."""
        return Scope((self.draft.namespace,))

    @property
    def time_us(self) -> int:
        """When the statement was made: the event, else now."""
        return self.draft.event_time_us if self.draft.event_time_us is not None else self.admission.now_us


@dataclass(frozen=True, slots=True)
class Plan:
    """What to commit, how it turned out, and the memory to show."""

    commit: Commit
    verdict: Verdict
    shown: Memory


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
            return _create(admitted, admitted.verdict.state)
        same = await self._store.find_duplicate(
            admitted.scope, draft.subject_id, draft.kind, admitted.admission.content_hash, deadline_s
        )
        if same is not None:
            return _reinforce(admitted, same, "SAME_CONTENT", "the same content is already stored")
        fact = await self._fact(admitted, deadline_s)
        neighbour = await self._same_statement(admitted, degraded, deadline_s)
        if fact is not None and (neighbour is None or neighbour.memory.memory_id != fact.memory_id):
            return _contradict(admitted, fact)
        return _create(admitted, State.ACTIVE) if neighbour is None else _repeat(admitted, neighbour)

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
        around = Around(admitted.scope, draft.subject_id, draft.kind, admitted.embedding, write.dedup_similarity)
        found = await self._neighbours.near(around, degraded, deadline_s)
        return find_same(admitted.admission.content, draft.fact_key, found, write)


def _commit(admitted: Admitted, change: Change, verdict: Verdict, memory: Memory, expected_version: int) -> Commit:
    new_content = memory.version > expected_version
    return Commit(
        scope=admitted.scope,
        namespace=admitted.draft.namespace,
        now_us=admitted.admission.now_us,
        principal_id=admitted.caller.principal_id,
        change=change,
        memory=memory,
        embedding=admitted.embedding if new_content else None,
        embedding_model=admitted.embedding_model,
        expected_version=expected_version,
        decision=_decision_record(admitted, verdict),
    )


def _decision_record(admitted: Admitted, verdict: Verdict) -> DecisionRecord:
    return DecisionRecord(
        action=verdict.action,
        score=verdict.score,
        policy_version=admitted.caller.snapshot.version,
        payload=verdict.message().SerializeToString(),
    )


def _create(admitted: Admitted, state: State) -> Plan:
    strength = admitted.policies.decay.initial_strength
    memory = new_memory(admitted.draft, admitted.admission, state, strength)
    return Plan(_commit(admitted, Change.CREATED, admitted.verdict, memory, 0), admitted.verdict, memory)


def _reinforce(admitted: Admitted, existing: Memory, code: str, message: str) -> Plan:
    """The existing memory, said again: stronger from now, and lifted to a higher layer if this one earned it."""
    verdict = admitted.verdict.become(Action.MERGED, code, f"{message}: {existing.memory_id}")
    now_us = admitted.admission.now_us
    strength = after_hit(existing.strength, existing.strength_time_us, now_us, admitted.policies.decay)
    memory = replace(existing, strength=strength, strength_time_us=now_us)
    if admitted.admission.layer > existing.layer:
        memory = _lift(memory, admitted)
    commit = _commit(admitted, Change.MERGED, verdict, memory, existing.version)
    if existing.content_hash != admitted.admission.content_hash:
        commit = replace(commit, embedding=None)
    return Plan(commit, verdict, memory)


def _lift(memory: Memory, admitted: Admitted) -> Memory:
    message = parse_body(memory)
    message.layer = memory_pb2.Layer.ValueType(admitted.admission.layer)
    lifted = next_version(memory, message, admitted.admission.now_us)
    return replace(lifted, layer=admitted.admission.layer)


def _repeat(admitted: Admitted, neighbour: Neighbour) -> Plan:
    """Nearly the same statement: the newer wording becomes the next version, unless a better source said the older."""
    existing = neighbour.memory
    if not _resolve(admitted, existing).new_wins:
        return _reinforce(
            admitted,
            existing,
            "SAME_STATEMENT",
            f"said before by a better or newer source ({neighbour.similarity:.2f})",
        )
    verdict = admitted.verdict.become(
        Action.UPDATED, "SAME_STATEMENT", f"newer wording of {existing.memory_id} ({neighbour.similarity:.2f})"
    )
    memory = _reworded(admitted, existing)
    return Plan(_commit(admitted, Change.UPDATED, verdict, memory, existing.version), verdict, memory)


def _reworded(admitted: Admitted, existing: Memory) -> Memory:
    """The existing memory with the new statement in place of the old; nothing accumulates but distinct tags."""
    fresh = parse_body(new_memory(admitted.draft, admitted.admission, State.ACTIVE, existing.strength))
    old = parse_body(existing)
    fresh.id = existing.memory_id
    fresh.create_time.CopyFrom(old.create_time)
    fresh.fact_key = fresh.fact_key or old.fact_key
    del fresh.tags[:]
    fresh.tags.extend(list(dict.fromkeys((*admitted.draft.tags, *old.tags)))[:64])
    if not admitted.draft.metadata:
        fresh.metadata.CopyFrom(old.metadata)
    layer = max(existing.layer, admitted.admission.layer)
    fresh.layer = memory_pb2.Layer.ValueType(layer)
    now_us = admitted.admission.now_us
    strength = after_hit(existing.strength, existing.strength_time_us, now_us, admitted.policies.decay)
    reworded = next_version(existing, fresh, now_us)
    return replace(reworded, layer=Layer(layer), pool=Pool(fresh.pool), strength=strength, strength_time_us=now_us)


def _contradict(admitted: Admitted, old: Memory) -> Plan:
    """Another statement under the same fact key: one stays ACTIVE, the other is SUPERSEDED, both stay in history."""
    resolution = _resolve(admitted, old)
    new = new_memory(admitted.draft, admitted.admission, State.ACTIVE, admitted.policies.decay.initial_strength)
    if resolution.new_wins:
        return _supersede(admitted, new, old, resolution)
    return _lose(admitted, new, old, resolution)


def _resolve(admitted: Admitted, old: Memory) -> Resolution:
    told_us = old.event_time_us if old.event_time_us is not None else old.create_time_us
    new_claim = Claim(admitted.draft.source.type, admitted.time_us)
    return resolve(new_claim, Claim(old.source_type, told_us), admitted.policies.conflict)


def _ends_us(loser: Memory, winner: Memory) -> int:
    """When the loser stopped holding: when the winner began to, never before it began itself."""
    return max(loser.valid_from_us or loser.create_time_us, winner.valid_from_us or winner.create_time_us)


def _supersede(admitted: Admitted, new: Memory, old: Memory, resolution: Resolution) -> Plan:
    verdict = admitted.verdict.with_conflict(old.memory_id, old.fact_key, new.memory_id, resolution.rule)
    commit = replace(
        _commit(admitted, Change.CREATED, verdict, new, 0),
        supersedes=(Supersession(old.memory_id, old.version, _ends_us(old, new)),),
        conflicts=(ConflictRecord(new.memory_id, old.memory_id, old.fact_key, 0.0, resolution.rule),),
    )
    return Plan(commit, verdict, new)


def _lose(admitted: Admitted, new: Memory, old: Memory, resolution: Resolution) -> Plan:
    verdict = admitted.verdict.with_conflict(old.memory_id, old.fact_key, old.memory_id, resolution.rule)
    loser = replace(new, state=State.SUPERSEDED, valid_to_us=_ends_us(new, old), superseded_by_id=old.memory_id)
    commit = replace(
        _commit(admitted, Change.CREATED, verdict, loser, 0),
        conflicts=(ConflictRecord(old.memory_id, loser.memory_id, old.fact_key, 0.0, resolution.rule),),
    )
    return Plan(commit, verdict, loser)


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
