"""Who vouches for the cache's tombstones has made sure of them; whatever may lose one ends it."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from dataplane.adapters.inmemory.record_store import InMemoryRecordStore
from dataplane.adapters.inprocess_cache import InProcessCache
from dataplane.adapters.wrappers.cached_records import cached_records
from dataplane.adapters.wrappers.owing_cache import OwingCache
from dataplane.changes import Change
from dataplane.errors import BackendUnavailable
from dataplane.model import State
from dataplane.pipelines.tombstones import Tombstones
from dataplane.pipelines.vouching import NOT_VOUCHED, Vouching
from dataplane.ports import RecordStore
from tests.contract.builders import commit_of, fields_of, memory_of
from tests.deadline import eventually_async

NEVER_S = 1e12
IDS = [f"mem_{number}" for number in range(5)]


class LossyCache(InProcessCache):
    """A cache that can be flushed, and be away."""

    def __init__(self) -> None:
        super().__init__(10_000, lambda: 0.0)
        self.is_away = False

    def flush(self) -> None:
        self._tombstones.clear()
        self._lives += 1

    async def bury(self, memory_ids: Sequence[str], deadline_s: float) -> None:
        if self.is_away:
            raise BackendUnavailable("cache")
        await super().bury(memory_ids, deadline_s)


class Parts:
    """A store with five memories, of which an index has applied nothing yet, and the cache beside it."""

    def __init__(self) -> None:
        self.inner = InMemoryRecordStore(fields_of)
        self.below = LossyCache()
        self.cache = OwingCache(self.below)
        self.store: RecordStore = cached_records(self.inner, self.cache)
        self.vouching = Vouching(self.store, self.cache, interval_s=0.01)
        self.tombstones = Tombstones(self.cache)

    async def forget(self, memory_id: str) -> None:
        memory = memory_of(memory_id, f"about {memory_id}", version=2, state=State.SOFT_DELETED)
        (result,) = await self.store.commit([commit_of(memory, change=Change.FORGOTTEN, expected_version=1)], NEVER_S)
        assert result.error is None

    async def known(self) -> set[str]:
        """The forgotten, as an answer without the record store takes them."""
        continuity = await self.tombstones.relied_on(NEVER_S)
        return await self.tombstones.among(IDS, continuity, NEVER_S)


@pytest.fixture
async def parts() -> Parts:
    made = Parts()
    await made.inner.register_index("text_index", NEVER_S)
    for memory_id in IDS:
        await made.store.commit([commit_of(memory_of(memory_id, f"about {memory_id}"))], NEVER_S)
    return made


async def test_nobody_relies_on_a_cache_that_nobody_vouched_for(parts: Parts) -> None:
    await parts.forget("mem_1")
    with pytest.raises(BackendUnavailable) as refused:
        await parts.known()
    assert refused.value.backend == "cache"


async def test_what_was_forgotten_before_and_after_somebody_vouched_is_known(parts: Parts) -> None:
    await parts.forget("mem_1")
    parts.below.flush()
    await parts.vouching.look()
    await parts.forget("mem_2")
    assert await parts.known() == {"mem_1", "mem_2"}


async def test_after_a_loss_nobody_relies_on_it_until_somebody_vouches_again(parts: Parts) -> None:
    await parts.vouching.look()
    await parts.forget("mem_1")
    parts.below.flush()
    with pytest.raises(BackendUnavailable):
        await parts.known()
    await parts.vouching.look()
    assert await parts.known() == {"mem_1"}


async def test_a_loss_while_somebody_looks_is_vouched_for_by_nobody(parts: Parts) -> None:
    await parts.forget("mem_1")
    removals = parts.inner.unapplied_removals

    async def lost_after(*arguments: Any) -> Any:
        found = await removals(*arguments)
        parts.below.flush()
        return found

    parts.inner.unapplied_removals = lost_after  # type: ignore[method-assign,assignment]
    await parts.vouching.look()
    with pytest.raises(BackendUnavailable):
        await parts.known()


async def test_a_forget_that_straddles_a_loss_and_a_vouch_is_known(parts: Parts) -> None:
    commit = parts.inner.commit

    async def lost_and_vouched_before(*arguments: Any) -> Any:
        parts.below.flush()
        await parts.vouching.look()
        return await commit(*arguments)

    parts.inner.commit = lost_and_vouched_before  # type: ignore[method-assign,assignment]
    await parts.forget("mem_1")
    assert await parts.known() == {"mem_1"}


async def test_tombstones_lost_and_made_again_while_they_are_read_are_not_relied_on(parts: Parts) -> None:
    await parts.vouching.look()
    await parts.forget("mem_1")
    continuity = await parts.tombstones.relied_on(NEVER_S)
    buried = parts.below.buried

    async def lost_meanwhile(*arguments: Any) -> Any:
        parts.below.flush()
        found = await buried(*arguments)
        await parts.vouching.look()
        return found

    parts.below.buried = lost_meanwhile  # type: ignore[method-assign,assignment]
    with pytest.raises(BackendUnavailable):
        await parts.tombstones.among(IDS, continuity, NEVER_S)


async def test_who_owes_a_tombstone_relies_on_nothing_and_vouches_for_nothing(parts: Parts) -> None:
    await parts.vouching.look()
    parts.below.is_away = True
    await parts.forget("mem_1")
    assert parts.cache.owes([], ["mem_1"])
    parts.below.flush()
    await parts.vouching.look()
    with pytest.raises(BackendUnavailable):
        await parts.known()
    parts.below.is_away = False
    await parts.cache.pay()
    await parts.vouching.look()
    assert await parts.known() == {"mem_1"}


async def test_what_a_data_plane_that_died_owed_is_buried_by_another_before_long(parts: Parts) -> None:
    other = Vouching(parts.store, parts.cache, renew_s=0.0)
    await other.look()
    parts.below.is_away = True
    await cached_records(parts.inner, OwingCache(parts.below)).commit(
        [
            commit_of(
                memory_of("mem_1", "about mem_1", version=2, state=State.SOFT_DELETED),
                change=Change.FORGOTTEN,
                expected_version=1,
            )
        ],
        NEVER_S,
    )
    parts.below.is_away = False
    assert await parts.known() == set()
    await other.look()
    assert await parts.known() == {"mem_1"}


async def test_removals_are_read_page_by_page(parts: Parts, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dataplane.pipelines.vouching.PAGE_SIZE", 2)
    for memory_id in IDS:
        await parts.forget(memory_id)
    parts.below.flush()
    await parts.vouching.look()
    assert await parts.known() == set(IDS)


async def test_it_goes_on_looking_whatever_happens(parts: Parts) -> None:
    removals, failures = parts.inner.unapplied_removals, [BackendUnavailable("record_store"), ValueError("a defect")]

    async def failing(*arguments: Any) -> Any:
        if failures:
            raise failures.pop()
        return await removals(*arguments)

    parts.inner.unapplied_removals = failing  # type: ignore[method-assign,assignment]
    parts.vouching.start()
    try:
        await eventually_async(lambda: parts.cache.is_vouched(NEVER_S), bool)
    finally:
        await asyncio.wait_for(parts.vouching.stop(), 5)
    assert not failures


async def test_it_is_told_when_nobody_has_vouched_for_long_and_both_answer(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dataplane.pipelines.vouching.TELL_AFTER_S", 0.0)
    continuity = parts.below.continuity

    async def untold(_deadline_s: float) -> str:
        return ""

    parts.below.continuity = untold  # type: ignore[method-assign,assignment]
    await parts.vouching.look()
    assert parts.vouching.problems == {"cache": (NOT_VOUCHED,)}
    parts.below.continuity = continuity  # type: ignore[method-assign]
    await parts.vouching.look()
    assert parts.vouching.problems == {}


async def test_it_is_not_told_at_once(parts: Parts) -> None:
    parts.below.flush()
    await parts.vouching.look()
    assert parts.vouching.problems == {}
