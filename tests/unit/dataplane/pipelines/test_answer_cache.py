import asyncio
from dataclasses import replace
from typing import Any

import pytest

from dataplane.adapters.inmemory.record_store import InMemoryRecordStore
from dataplane.adapters.inprocess_cache import InProcessCache
from dataplane.errors import BackendUnavailable
from dataplane.logic.profiles.signals import Signals
from dataplane.logic.rank import Ranked
from dataplane.model import Scope, StoredCandidate
from dataplane.pipelines.answer_cache import AnswerCache, Found, Wish
from dataplane.pipelines.degraded import DegradedNotes
from dataplane.pipelines.lineage import Lineage
from memplane.policy.retrieve import Weights
from tests.contract.builders import NAMESPACE, NOW_US, commit_of, fields_of, memory_of, vector_of

SALES = Scope((NAMESPACE,))
NEVER_S = 1e12
WISH = Wish(SALES, "what?", 300, 0)


class StandingClock:
    def __init__(self) -> None:
        self.time_us = NOW_US

    def now_us(self) -> int:
        return self.time_us


class Finding:
    """A search that counts how often it was made."""

    def __init__(self, store: InMemoryRecordStore) -> None:
        self.times = 0
        self.store = store
        self.expire_time_us: int | None = None
        self.degraded = DegradedNotes()
        self.reads: Any = store
        self.position = 0

    async def __call__(self) -> Found:
        self.times += 1
        await asyncio.sleep(0)
        memory = memory_of("mem_1", "answer", expire_time_us=self.expire_time_us)
        hit = Ranked(
            StoredCandidate(memory, vector_of(1), 3), 0.8, 0.7, Signals(0.9, 0.1, 0.2, 0.3, 0.4, 0.5, 1.5), None, ("w",)
        )
        return Found((hit,), Weights(), self.position, self.degraded, self.reads)


class Parts:
    def __init__(self) -> None:
        self.clock = StandingClock()
        self.cache = InProcessCache(100_000, lambda: self.clock.time_us / 1e6)
        self.store = InMemoryRecordStore(fields_of)
        self.lineage = Lineage()
        self.answers = AnswerCache(self.cache, self.store, self.clock, self.lineage, hears_all=True)
        self.finding = Finding(self.store)

    async def ask(self, wish: Wish = WISH) -> Found:
        return await self.answers.through(wish, self.finding, NEVER_S)

    async def times_after_two(self, first: Wish = WISH, second: Wish = WISH) -> int:
        await self.ask(first)
        await self.ask(second)
        return self.finding.times


@pytest.fixture
def parts() -> Parts:
    return Parts()


async def test_an_equal_question_gets_the_same_answer_without_finding_it_again(parts: Parts) -> None:
    first, second = await parts.ask(), await parts.ask()
    assert parts.finding.times == 1
    assert (first.is_known, second.is_known) == (False, True)
    before, after = first.hits[0], second.hits[0]
    assert after == replace(before, candidate=replace(before.candidate, embedding=None))
    assert second.weights == first.weights
    assert not second.degraded.messages()


@pytest.mark.parametrize(
    "other",
    [
        replace(WISH, words="what else?"),
        replace(WISH, scope=Scope((NAMESPACE, "acme.hr"))),
        replace(WISH, scope=Scope((NAMESPACE,), ("acme",))),
        replace(WISH, ttl_s=0),
        replace(WISH, at_least=1),
    ],
)
async def test_another_question_is_found_anew(parts: Parts, other: Wish) -> None:
    assert await parts.times_after_two(WISH, other) == 2


async def test_an_answer_of_a_past_that_is_gone_is_found_anew(parts: Parts) -> None:
    await parts.ask()
    parts.lineage.is_restored = True
    await parts.ask()
    assert parts.finding.times == 2
    parts.lineage.is_restored, parts.lineage.era = False, 1
    await parts.ask()
    assert parts.finding.times == 3


async def test_an_answer_holds_for_its_time(parts: Parts) -> None:
    await parts.ask()
    parts.clock.time_us += 299_999_999
    await parts.ask()
    assert parts.finding.times == 1
    parts.clock.time_us += 1
    await parts.ask()
    assert parts.finding.times == 2


async def test_an_answer_holds_until_its_first_memory_expires(parts: Parts) -> None:
    parts.finding.expire_time_us = NOW_US + 1_000_000
    await parts.ask()
    parts.clock.time_us += 999_999
    assert await parts.times_after_two() == 1
    parts.clock.time_us += 1
    assert await parts.times_after_two() == 3


async def test_a_changed_scope_is_found_anew(parts: Parts) -> None:
    await parts.ask()
    await parts.cache.drop([NAMESPACE], NEVER_S)
    await parts.ask()
    assert parts.finding.times == 2


async def test_what_changes_while_the_answer_is_found_does_not_hide_in_it(parts: Parts) -> None:
    async def changing() -> Found:
        found = await parts.finding()
        await parts.cache.drop([NAMESPACE], NEVER_S)
        return found

    await parts.answers.through(WISH, changing, NEVER_S)
    await parts.ask()
    assert parts.finding.times == 2


async def test_an_answer_with_a_buried_memory_is_not_used(parts: Parts) -> None:
    await parts.ask()
    await parts.cache.bury(["mem_1"], NEVER_S)
    await parts.ask()
    assert parts.finding.times == 2


async def test_a_degraded_answer_is_not_kept(parts: Parts) -> None:
    parts.finding.degraded.add("vector_index", "BACKEND_UNAVAILABLE", "found by words")
    assert await parts.times_after_two() == 2


async def test_an_answer_from_a_replica_is_kept_only_when_it_had_everything(parts: Parts) -> None:
    parts.finding.reads = object()
    assert await parts.times_after_two() == 1
    await parts.store.register_index("vector_index:test", NEVER_S)
    await parts.store.commit([commit_of(memory_of("mem_9"))], NEVER_S)
    await parts.cache.drop([NAMESPACE], NEVER_S)
    assert await parts.times_after_two() == 3
    parts.finding.position = await parts.store.last_position(NEVER_S)
    assert await parts.times_after_two() == 4


async def test_equal_questions_at_once_are_found_once(parts: Parts) -> None:
    await asyncio.gather(*(parts.ask() for _ in range(20)))
    assert parts.finding.times == 1


async def test_when_the_first_of_equal_questions_fails_the_others_find_for_themselves(parts: Parts) -> None:
    failing = True

    async def find() -> Found:
        nonlocal failing
        for _ in range(50):  # until the others wait for it
            await asyncio.sleep(0)
        if failing:
            failing = False
            raise BackendUnavailable("record_store")
        return await parts.finding()

    asked = (parts.answers.through(WISH, find, NEVER_S) for _ in range(3))
    answers = await asyncio.gather(*asked, return_exceptions=True)
    assert [isinstance(answer, BackendUnavailable) for answer in answers] == [True, False, False]


@pytest.mark.parametrize("method", ["stamp", "get", "put", "buried"])
async def test_without_the_cache_every_question_is_found(parts: Parts, method: str) -> None:
    async def lame(*_arguments: Any) -> Any:
        raise BackendUnavailable("cache")

    setattr(parts.cache, method, lame)
    assert await parts.times_after_two() == 2


async def test_a_cache_that_does_not_hear_of_all_changes_answers_nothing(parts: Parts) -> None:
    parts.answers = AnswerCache(parts.cache, parts.store, parts.clock, parts.lineage, hears_all=False)
    assert await parts.times_after_two() == 2


async def test_what_somebody_else_wrote_into_the_cache_is_passed_over(parts: Parts) -> None:
    await parts.ask()

    async def garbage(_scope: Scope, keys: list[str], _deadline_s: float) -> list[bytes | None]:
        return [b"\xff" * 40] * len(keys)

    parts.cache.get = garbage  # type: ignore[method-assign,assignment]
    await parts.ask()
    assert parts.finding.times == 2
