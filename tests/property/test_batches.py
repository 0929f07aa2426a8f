"""Whatever stands in a batch, it comes to the same as writing its drafts one by one.

What was written before is in the indexes; what is written meanwhile awaits its projection, so that nothing depends on
how far that has come.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from itertools import count
from typing import Any

import numpy as np
import pytest

from dataplane.adapters.inmemory.record_store import InMemoryRecordStore
from dataplane.adapters.system import Ids
from dataplane.changes import Commit
from dataplane.codec import fields_of, parse_body
from dataplane.model import EVERYTHING, Draft, Kind, Layer, Memory, Pool, Scope, Source, SourceType, State
from dataplane.pipelines.caller import Caller
from dataplane.pipelines.project import Projectors
from dataplane.pipelines.settle import Settled
from dataplane.pipelines.write import Outcome, WritePipeline
from dataplane.ports import CommitResult, ListQuery
from dataplane.wiring import Surroundings, WireOptions, wire
from memplane.errors import MemPlaneError, PermissionDenied, RequestIdReused
from memplane.identity import Identity
from memplane.policy.access import AccessIndex
from memplane.policy.effective import EffectivePolicies
from memplane.policy.model import PolicySet
from memplane.policy.rbac import Grant, Principal, Rbac
from memplane.policy.snapshot import PolicySnapshot
from tests.integration.harness import NOW_US, FixtureClock, open_stores

NAMESPACES = ("acme.sales", "acme.hr", "acme.closed")
LONG = (
    "On {day} March the customer in Hamburg asked for {amount} bolts of steel, to be sent to hall four by Friday noon"
)
CONTENTS = (
    "Ann likes green tea",
    "Ann likes green tea!",
    "ann likes green tea",
    "Ann likes black tea",
    "Bob does not eat meat",
    "haha ok",
    "perhaps they come on Monday",
    LONG.format(day=5, amount=300),
    LONG.format(day=6, amount=300),
    LONG.format(day=5, amount=300) + ".",
    LONG.format(day=5, amount=400),
)
RULES = (
    {"pattern": "haha", "score": 0},
    {"pattern": "perhaps", "score": 0.5},
    {"pattern": "tea|meat|bolts|number", "score": 0.9},
)


def policy(*, dedup: bool) -> PolicySnapshot:
    grants = tuple(
        Grant(namespace=name, permissions=("memory.write", "memory.read", "share.propose")) for name in NAMESPACES[:2]
    )
    rbac = Rbac(principals={"agent": Principal(grants=grants)})
    write = {"dedup": dedup, "dedup_similarity": 0.85, "rules": RULES}
    model = PolicySet.model_validate({"write_policy": write, "conflict_policy": {}} | {"rbac": rbac})
    return PolicySnapshot("sha256:1", 1, NOW_US, EffectivePolicies(model), AccessIndex(rbac, None))


class Process:
    """A data plane's write path over a store that others may share, and the rows in it."""

    def __init__(self, write: WritePipeline, store: InMemoryRecordStore, projectors: Projectors, caller: Caller):
        self._write = write
        self._store = store
        self._projectors = projectors
        self._caller = caller

    async def prepare(self, drafts: Sequence[Draft]) -> list[Outcome]:
        """Writes drafts one by one and has them projected; nothing more is projected afterwards."""
        outcomes = await self.one_by_one(drafts)
        changes = {memory.memory_id: await self._store.last_position(soon()) for memory in await self.memories()}
        assert await self._projectors.wait_for(changes, 10)
        for projector in self._projectors:
            projector.pause()
        return outcomes

    async def together(self, drafts: Sequence[Draft]) -> list[Outcome]:
        return await self._write.write_batch(drafts, self._caller, soon())

    async def one_by_one(self, drafts: Sequence[Draft]) -> list[Outcome]:
        return [(await self.together([draft]))[0] for draft in drafts]

    async def memories(self) -> list[Memory]:
        query = ListQuery(tuple(State), EVERYTHING, 1_000)
        return await self._store.list_memories(Scope(NAMESPACES), query, soon())


@asynccontextmanager
async def process(
    *, dedup: bool, store: InMemoryRecordStore | None = None, name: str = "one"
) -> AsyncIterator[Process]:
    snapshot = policy(dedup=dedup)
    async with AsyncExitStack() as stack:
        records = store or InMemoryRecordStore(fields_of)
        stores = await open_stores(None, stack, records=records)
        wired = wire(stores, Surroundings(lambda: snapshot, FixtureClock(), name), WireOptions())
        await wired.start(paused=False)
        try:
            yield Process(wired.pipelines.write, records, wired.projectors, Caller(Identity("agent"), snapshot))
        finally:
            await wired.stop()


def soon() -> float:
    return asyncio.get_running_loop().time() + 30


class Dice:
    """Draws drafts that often repeat, nearly repeat or contradict each other."""

    def __init__(self, seed: int):
        self._rng = np.random.default_rng(seed)
        self._number = 0

    def drafts(self, count: int) -> list[Draft]:
        drawn: list[Draft] = []
        for _ in range(count):
            again = drawn and self._chance(0.1)
            drawn.append(drawn[int(self._rng.integers(len(drawn)))] if again else self._draft())
        return drawn

    def shuffled(self, drafts: Sequence[Draft]) -> list[Draft]:
        return [drafts[index] for index in self._rng.permutation(len(drafts))]

    def _draft(self) -> Draft:
        self._number += 1
        own = f"number {self._rng.integers(10**9)} of {self._rng.integers(10**9)}"
        draft = Draft(
            namespace=self._one_of("acme.sales", "acme.sales", "acme.hr", "acme.closed" if self._chance(0.1) else ""),
            content=self._one_of(own, *CONTENTS),
            kind=self._one_of(Kind.FACT, Kind.FACT, Kind.FACT, Kind.EPISODE),
            layer_hint=self._one_of(None, None, None, Layer.WORKING),
            subject_id=self._one_of("ann", "ann", "bob"),
            session_id=self._one_of("", "s1", "s2"),
            source=Source(self._one_of(SourceType.USER, SourceType.LLM, SourceType.HUMAN)),
            event_time_us=self._one_of(None, None, NOW_US - 5, NOW_US - 9),
            speaker=self._one_of("", "", "", "Ann"),
            fact_key=self._one_of("", "", "", "drink", "food"),
            tags=self._one_of((), ("a",), ("b",)),
            pool=self._one_of(*[Pool.PRIVATE] * 15, Pool.SHARED),
            valid_to_us=self._one_of(None, None, None, NOW_US - 1),
            request_id=self._one_of("", f"r{self._rng.integers(60)}"),
            validate_only=self._chance(0.05),
        )
        draft = replace(draft, namespace=draft.namespace or "acme.sales")
        return replace(draft, payload_hash=hashlib.sha256(repr(replace(draft, request_id="")).encode()).hexdigest())

    def _one_of(self, *values: Any) -> Any:
        return values[int(self._rng.integers(len(values)))]

    def _chance(self, share: float) -> bool:
        return bool(self._rng.random() < share)


def told(outcomes: Sequence[Outcome], memories: Sequence[Memory]) -> tuple[list[str], list[str]]:
    """Decisions and end state as text, with the ids of memories replaced by the index of who was first told of them."""
    names: dict[str, str] = {}
    for index, outcome in enumerate(outcomes):
        if isinstance(outcome, Settled) and outcome.response.memory.id:
            names.setdefault(outcome.response.memory.id, f"<{index}>")

    def named(text: str) -> str:
        for memory_id, name in names.items():
            text = text.replace(memory_id, name)
        return text

    decisions = [named(f"{index} {_outcome(outcome)}") for index, outcome in enumerate(outcomes)]
    return decisions, sorted(named(_memory(memory)) for memory in memories)


def _outcome(outcome: Outcome) -> str:
    return repr(outcome) if isinstance(outcome, MemPlaneError) else str(outcome.response)


def _memory(memory: Memory) -> str:
    return f"{replace(memory, body=b'')} {parse_body(memory)}"


@pytest.fixture(autouse=True)
def surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids rise, for they break ties; nobody waits for what is not projected."""
    numbers = count()
    monkeypatch.setattr(Ids, "memory_id", lambda _ids: f"mem_{next(numbers):032x}")
    monkeypatch.setattr("dataplane.pipelines.write.PROJECTION_BUDGET_S", 0.0)


@pytest.mark.parametrize("dedup", [True, False], ids=["dedup", "no dedup"])
@pytest.mark.parametrize("seed", range(25))
async def test_a_batch_comes_to_the_same_as_its_drafts_one_by_one(seed: int, dedup: bool) -> None:
    dice = Dice(seed)
    before, batch = dice.drafts(10), dice.drafts(40)
    async with process(dedup=dedup) as first, process(dedup=dedup) as second:
        together = await first.prepare(before) + await first.together(batch)
        apart = await second.prepare(before) + await second.one_by_one(batch)
        assert told(together, await first.memories()) == told(apart, await second.memories())


class Overtaken(InMemoryRecordStore):
    """Lets another process write first when several are committed for the first time."""

    rival: Callable[[], Awaitable[list[Outcome]]] | None = None
    rivals_outcomes: Sequence[Outcome] = ()

    async def commit(self, commits: Sequence[Commit], deadline_s: float) -> list[CommitResult]:
        if self.rival is not None and len(commits) > 1:
            rival, self.rival = self.rival, None
            self.rivals_outcomes = await rival()
        return await super().commit(commits, deadline_s)


@pytest.mark.parametrize("seed", range(25))
async def test_another_process_that_says_the_same_first_is_met_as_if_it_had_come_before(seed: int) -> None:
    dice = Dice(seed)
    batch = dice.drafts(30)
    rivals = [replace(batch[0], request_id="", validate_only=False, tags=("rival",))]
    shared, own = Overtaken(fields_of), InMemoryRecordStore(fields_of)
    async with (
        process(dedup=True, store=shared) as first,
        process(dedup=True, store=shared, name="rival") as rival,
        process(dedup=True, store=own) as second,
    ):
        for each in (first, rival, second):
            await each.prepare([])
        shared.rival = lambda: rival.one_by_one(rivals)
        together = await first.together(batch)
        overtaken = [*shared.rivals_outcomes, *together]
        apart = await second.one_by_one([*rivals, *batch])
        assert told(overtaken, await first.memories()) == told(apart, await second.memories())


@pytest.mark.parametrize("seed", range(10))
async def test_batches_at_once_leave_no_statement_or_fact_twice(seed: int) -> None:
    dice = Dice(seed)
    drafts = dice.drafts(20)
    async with process(dedup=True) as one:
        outcomes = await asyncio.gather(*(one.together(dice.shuffled(drafts)) for _ in range(4)))
        memories = [memory for memory in await one.memories() if memory.state is State.ACTIVE]
    kept = [(m.namespace, m.subject_id, m.kind, m.statement_key) for m in memories]
    facts = [(m.namespace, m.subject_id, m.fact_key) for m in memories if m.fact_key]
    assert (len(kept), len(facts)) == (len(set(kept)), len(set(facts)))
    failures = {type(outcome) for batch in outcomes for outcome in batch if not isinstance(outcome, Settled)}
    assert failures <= {PermissionDenied, RequestIdReused}
