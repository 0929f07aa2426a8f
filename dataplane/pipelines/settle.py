"""The critical section of a write: admitted drafts against what is already there, then one commit.

Order: exactly the same content, then the same fact key, then nearly the same statement or one that contradicts, else a
new memory. A derived fact key only leads to its holder: what to do there is decided by both texts. The store's
unique keys decide races that the section's lock cannot see (another replica); the loser plans again.

Drafts of one call that do not concern each other (`unrelated`) and meet nothing in the store are stored together by one
commit. All others, and what the store refuses, are settled one by one afterwards, in order. That comes to the same as
one by one from the start: what is stored together changes nothing for the drafts that it passes.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from dataplane.changes import Commit
from dataplane.codec import answer, parse_body, receipt, statement_of
from dataplane.errors import BackendUnavailable, DuplicateContent, DuplicateFact, StaleVersion
from dataplane.logic.dedup import Met, Neighbour, find_met
from dataplane.logic.fact_keys import is_derived, weightier
from dataplane.logic.pairs.compare import Relation, relation
from dataplane.logic.pairs.model import PairModel
from dataplane.logic.pairs.reading import read
from dataplane.logic.statement import is_same
from dataplane.logic.strength import strength_at
from dataplane.model import Draft, Kind, Memory, Pool, Scope, State
from dataplane.pipelines.degraded import DegradedNotes
from dataplane.pipelines.locks import KeyedLocks
from dataplane.pipelines.neighbours import Around, Neighbours
from dataplane.pipelines.plans import (
    Admitted,
    Plan,
    claim,
    contradict,
    create,
    doubt,
    has_ended,
    is_over,
    reinforce,
    repeat,
    restate,
    succeed,
)
from dataplane.pipelines.requests import identified
from dataplane.pipelines.sight import READ, may, require
from dataplane.pipelines.unrelated import Refused, unrelated
from dataplane.ports import RecordStore
from memplane.errors import InvalidField, MemPlaneError, Overloaded, Unavailable
from memplane.v1 import memory_pb2, memory_service_pb2

ATTEMPTS = 6
"""How often a change is planned again when somebody else was faster; then the caller hears of it. Unmeasured."""

QUOTED = 200
"""Characters of each statement in the advice to ask the user."""


@dataclass(frozen=True, slots=True)
class Settled:
    """The answer, without its token, and the outbox position that covers it (0: nothing was stored).

    `quotes` is what the advice to ask the user quotes, for who wrote; what is stored of an answer outlives the words.
    """

    response: memory_service_pb2.WriteMemoryResponse
    position: int
    quotes: str = ""


class Settlement:
    """Plans and commits admitted drafts."""

    def __init__(self, store: RecordStore, neighbours: Neighbours, pairs: PairModel):
        self._store = store
        self._neighbours = neighbours
        self._pairs = pairs
        self._locks = KeyedLocks()

    async def settle(self, admitted: Admitted, degraded: DegradedNotes, deadline_s: float) -> Settled:
        """One commit for the draft; plans again when somebody else was faster.

        Raises DuplicateRequest when the request_id was taken in the meantime, PermissionDenied when the caller may not
        write what it would change or make.
        """
        async with self._locks.hold(admitted.subject, deadline_s):
            for _ in range(ATTEMPTS):
                plan = await self._plan(admitted, degraded, deadline_s)
                _check_changes(plan, admitted)
                response, commit = _answered(plan, admitted, degraded)
                if admitted.draft.validate_only:
                    return Settled(response, 0, _quotes(plan, admitted))
                result = (await self._store.commit([commit], deadline_s))[0]
                if result.error is None:
                    return Settled(response, result.position, _quotes(plan, admitted))
                if not isinstance(result.error, DuplicateContent | DuplicateFact | StaleVersion):
                    raise result.error
        raise Overloaded("too many writers change the same memory; try again", retry_after_s=0.2)

    async def settle_together(
        self, items: Sequence[Admitted | Refused], degraded: DegradedNotes, deadline_s: float
    ) -> list[Settled | MemPlaneError | None]:
        """The outcome of what one commit stores, index-aligned; None of what is to be settled by itself, in order."""
        settled: list[Settled | MemPlaneError | None] = [None] * len(items)
        free = {index: items[index] for index in unrelated(items, self._pairs)} if len(items) > 1 else {}
        if len(free) < 2:
            return settled
        subjects = {item.subject for item in free.values() if isinstance(item, Admitted)}
        try:
            async with self._locks.hold_all(subjects, deadline_s):
                found = await self._commit_plain(free, degraded, deadline_s)
        except BackendUnavailable as error:
            found = dict.fromkeys(free, Unavailable(error.backend))
        for index, outcome in found.items():
            settled[index] = outcome
        return settled

    async def _commit_plain(
        self, free: Mapping[int, Admitted | Refused], degraded: DegradedNotes, deadline_s: float
    ) -> dict[int, Settled | MemPlaneError]:
        """Stores those of the items that meet nothing in the store; what it refuses is left out."""
        admitted = {index: item for index, item in free.items() if isinstance(item, Admitted)}
        met = await self._met(admitted, degraded, deadline_s)
        answers = {
            index: _answered(create(item, State.ACTIVE), item, degraded)
            if isinstance(item, Admitted)
            else (item.response, item.commit)
            for index, item in free.items()
            if index not in met
        }
        results = await self._store.commit([commit for _, commit in answers.values()], deadline_s)
        stored = zip(answers.items(), results, strict=True)
        return {
            index: Settled(response, result.position if commit.memory is not None else 0)
            for (index, (response, commit)), result in stored
            if result.error is None
        }

    async def _met(self, items: Mapping[int, Admitted], degraded: DegradedNotes, deadline_s: float) -> set[int]:
        """Which have the same content as a memory or say nearly the same; of facts the commit tells."""
        if not items:
            return set()
        scope = Scope(tuple(dict.fromkeys(item.draft.namespace for item in items.values())))
        held = await self._store.find_contents(scope, [item.content for item in items.values()], deadline_s)
        met = {index for index, item in items.items() if item.content in held}
        arounds = {
            index: around for index, item in items.items() if index not in met and (around := _around(item)) is not None
        }
        found = await self._neighbours.near(list(arounds.values()), degraded, deadline_s)
        near = zip(arounds, found, strict=True)
        return met | {index for index, told in near if self._met_among(told, items[index]) is not None}

    async def _plan(self, admitted: Admitted, degraded: DegradedNotes, deadline_s: float) -> Plan:
        if admitted.verdict.state is not State.ACTIVE:
            return create(admitted, admitted.verdict.state)
        same = await self._same_content(admitted, deadline_s)
        fact = await self._fact(admitted, deadline_s)
        if fact is not None and (same is None or same.memory_id != fact.memory_id) and not _has_given_key(admitted):
            told = self._to_holder(admitted, fact)
            if told is Relation.SAME and same is None:
                return restate(admitted, fact)
            if told is not Relation.CONTRADICTS:
                admitted, fact = admitted.without_key(), None
        if same is not None:
            return _again(admitted, same, fact)
        met = await self._similar(admitted, degraded, deadline_s)
        if fact is not None and (met is None or not _repeats(met, fact)):
            _check_rival(admitted, fact)
            return contradict(admitted, fact)
        return create(admitted, State.ACTIVE) if met is None else _beside(admitted, met)

    def _to_holder(self, admitted: Admitted, fact: Memory) -> Relation:
        """What a draft without a key of its own is to the memory that holds the derived one."""
        if fact.pool is not admitted.draft.pool:
            return Relation.OTHER
        if has_ended(fact, admitted):
            return Relation.CONTRADICTS
        body = parse_body(fact)
        near = admitted.policies.write.dedup_similarity
        found = relation(read(admitted.admission.content), read(body.content), near, self._pairs)
        return Relation.OTHER if found is Relation.SAME and body.speaker != admitted.draft.speaker else found

    async def _same_content(self, admitted: Admitted, deadline_s: float) -> Memory | None:
        """The memory that says the same to the letter; one with the draft's fact key before one without."""
        draft = admitted.draft
        found = await self._store.find_same_content(
            admitted.scope, draft.subject_id, draft.kind, admitted.admission.content_hash, deadline_s
        )
        same = [memory for memory in found if is_same(statement_of(parse_body(memory)), admitted.statement)]
        return min(same, key=lambda memory: memory.fact_key != draft.fact_key, default=None)

    async def _fact(self, admitted: Admitted, deadline_s: float) -> Memory | None:
        key = admitted.fact_asked
        if not key:
            return None
        return await self._store.find_fact(admitted.scope, admitted.draft.subject_id, key, deadline_s)

    async def _similar(self, admitted: Admitted, degraded: DegradedNotes, deadline_s: float) -> Met | None:
        around = _around(admitted)
        if around is None:
            return None
        [found] = await self._neighbours.near([around], degraded, deadline_s)
        told = [item for item in found if is_same(statement_of(parse_body(item.memory)), admitted.statement)]
        return self._met_among(told, admitted)

    def _met_among(self, found: Sequence[Neighbour], admitted: Admitted) -> Met | None:
        draft, write = admitted.draft, admitted.policies.write
        met = find_met(admitted.admission.content, draft.fact_key, found, write, self._pairs)
        return None if met is not None and met.relation is not Relation.SAME and not _lasts(draft) else met


def _again(admitted: Admitted, same: Memory, fact: Memory | None) -> Plan:
    """The same content once more; `fact` holds the fact key, if anything does."""
    if fact is not None and fact.memory_id != same.memory_id:
        _check_rival(admitted, fact)
        return claim(admitted, same, fact)
    if is_over(same, admitted):
        return succeed(admitted, same)
    return reinforce(admitted, same, "SAME_CONTENT", "the same content is already stored")


def _around(admitted: Admitted) -> Around | None:
    """Where repeats and rivals of the statement would be; None when policy or the lack of an embedding forbids."""
    write = admitted.policies.write
    if not write.dedup or admitted.embedding is None:
        return None
    least = min(write.dedup_similarity, write.contradiction_similarity)
    return Around(admitted.space, admitted.shelf, admitted.embedding, least)


def _lasts(draft: Draft) -> bool:
    """Whether the draft says how things are, so that another statement can contradict it; what happened cannot."""
    return draft.kind in {Kind.FACT, Kind.PREFERENCE, Kind.INSTRUCTION}


def _has_given_key(admitted: Admitted) -> bool:
    return bool(admitted.draft.fact_key) and not is_derived(admitted.draft.fact_key)


def _repeats(met: Met, memory: Memory) -> bool:
    return met.relation is Relation.SAME and met.neighbour.memory.memory_id == memory.memory_id


def _beside(admitted: Admitted, met: Met) -> Plan:
    """What becomes of a draft that stands near a memory."""
    old = met.neighbour.memory
    if met.relation is Relation.SAME:
        return repeat(admitted, met.neighbour)
    if met.relation is Relation.CONTRADICTS and not _lies_ahead(admitted):
        return contradict(admitted.keyed(weightier(admitted.draft.fact_key, old.fact_key)), old)
    return doubt(admitted, met.neighbour)


def _lies_ahead(admitted: Admitted) -> bool:
    return admitted.draft.valid_from_us is not None and admitted.draft.valid_from_us > admitted.admission.now_us


def _check_rival(admitted: Admitted, fact: Memory) -> None:
    """Raises when the draft may not contest the memory that holds its fact key."""
    if fact.pool is Pool.SHARED:
        admitted.caller.require("share.propose", fact.namespace)
    if _lies_ahead(admitted) and not has_ended(fact, admitted):
        raise InvalidField.one(
            "valid_from",
            f"lies ahead while memory {fact.memory_id} still holds this fact_key; write it when it begins to hold",
        )


def _check_changes(plan: Plan, admitted: Admitted) -> None:
    """Raises when the caller may not write a memory that the plan changes, as it is, or stores, as it would be."""
    stored = plan.commit.memory
    assert stored is not None
    for memory in (*plan.changes, stored):
        require(admitted.caller, "memory.write", memory)
    if admitted.draft.pool is Pool.SHARED:
        require(admitted.caller, "share.propose", stored)


def _answered(
    plan: Plan, admitted: Admitted, degraded: DegradedNotes
) -> tuple[memory_service_pb2.WriteMemoryResponse, Commit]:
    """The answer, and the plan's commit with the answer for retries in it."""
    response = _response(plan, admitted, degraded)
    now_us = admitted.admission.now_us
    request = identified(admitted.draft).record(admitted.caller, response.SerializeToString(), now_us)
    return response, replace(plan.commit, request=request)


def _quotes(plan: Plan, admitted: Admitted) -> str:
    """Both statements between which the user is to be asked; "" when there is nothing to ask, or it may not be told."""
    old = plan.asks
    if old is None or not may(admitted.caller, READ, old):
        return ""
    return f'"{admitted.admission.content[:QUOTED]}" or, as before, "{parse_body(old).content[:QUOTED]}"?'


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
    if own or may(admitted.caller, READ, shown):
        return answer(shown, shown.state, strength)
    return receipt(shown, shown.state)
