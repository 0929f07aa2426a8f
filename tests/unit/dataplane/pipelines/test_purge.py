"""When an index is purged, and what becomes of a purge that fails or is cut off."""

import asyncio
import logging

import pytest

from dataplane.adapters.inmemory.record_store import InMemoryRecordStore
from dataplane.adapters.inmemory.vector_index import InMemoryVectorIndex
from dataplane.changes import Erasure, OutboxRow
from dataplane.errors import BackendUnavailable, NotYet
from dataplane.pipelines.purge import Purge, PurgeOptions
from tests.contract.builders import commit_of, fields_of, memory_of, scope_of

TARGET = "vector_index:test"
AT_ONCE = PurgeOptions(delay_s=0.0, rest_ratio=0.0)


class CountingIndex(InMemoryVectorIndex):
    """Counts purges; the first `failures` of them fail."""

    def __init__(self, failures: int = 0):
        super().__init__(4)
        self.purges = 0
        self.failures = failures

    async def purge(self, deadline_s: float) -> None:
        self.purges += 1
        if self.purges <= self.failures:
            raise BackendUnavailable("vector_index", "no space left")


def soon() -> float:
    return asyncio.get_running_loop().time() + 10


def gone(memory_id: str, position: int) -> OutboxRow:
    return OutboxRow(position, memory_id, "dept.a", None, None)


@pytest.fixture
async def store() -> InMemoryRecordStore:
    """mem_1 and mem_2 were erased, mem_3 never was there."""
    store = InMemoryRecordStore(fields_of)
    for memory_id in ("mem_1", "mem_2"):
        memory = memory_of(memory_id, content=memory_id)
        await store.commit([commit_of(memory)], soon())
        erasure = Erasure(
            scope=scope_of(memory.namespace), memory_id=memory_id, now_us=0, principal_id="user", reason=""
        )
        await store.erase(erasure, soon())
    return store


async def test_an_erased_row_makes_a_purge_due_and_one_purge_serves_many(store: InMemoryRecordStore) -> None:
    index = CountingIndex()
    purge = Purge(store, TARGET, index, AT_ONCE)
    await purge.note([gone("mem_3", 5), gone("mem_1", 7)], soon())
    assert purge.is_due
    assert await store.marker(f"{TARGET}.purge", soon()) == 7
    await purge.note([gone("mem_2", 8)], soon())
    assert await store.marker(f"{TARGET}.purge", soon()) == 8
    await purge.run_when_due(drained=True)
    await purge.run_when_due(drained=True)
    assert index.purges == 1
    assert not purge.is_due
    assert await store.marker(f"{TARGET}.purge", soon()) == 0


async def test_a_row_that_only_left_the_index_makes_none_due(store: InMemoryRecordStore) -> None:
    purge = Purge(store, TARGET, CountingIndex(), AT_ONCE)
    await purge.note([gone("mem_3", 5)], soon())
    assert not purge.is_due
    assert purge.wait_s is None


async def test_it_waits_for_more_erasures_before_it_purges(store: InMemoryRecordStore) -> None:
    index = CountingIndex()
    purge = Purge(store, TARGET, index, PurgeOptions(delay_s=600.0))
    await purge.note([gone("mem_1", 7)], soon())
    await purge.run_when_due(drained=True)
    assert index.purges == 0
    assert purge.is_due
    assert purge.wait_s == pytest.approx(600.0, abs=5.0)


async def test_a_purge_that_a_process_left_behind_is_due_in_the_next(store: InMemoryRecordStore) -> None:
    await Purge(store, TARGET, CountingIndex(), AT_ONCE).note([gone("mem_1", 7)], soon())
    index = CountingIndex()
    purge = Purge(store, TARGET, index, AT_ONCE)
    assert not purge.is_due
    await purge.load(soon())
    assert purge.is_due
    await purge.run_when_due(drained=True)
    assert index.purges == 1


async def test_a_failed_purge_stays_due_and_is_tried_again_later(store: InMemoryRecordStore) -> None:
    index = CountingIndex(failures=1)
    purge = Purge(store, TARGET, index, PurgeOptions(delay_s=0.0, rest_ratio=0.0, retry_s=600.0))
    await purge.note([gone("mem_1", 7)], soon())
    await purge.run_when_due(drained=True)
    await purge.run_when_due(drained=True)
    assert index.purges == 1
    assert purge.is_due
    assert await store.marker(f"{TARGET}.purge", soon()) == 7


@pytest.mark.parametrize(("patience_s", "purges"), [(600.0, 0), (0.0, 1)])
async def test_it_lets_the_outbox_go_first_but_not_for_ever(
    store: InMemoryRecordStore, patience_s: float, purges: int
) -> None:
    index = CountingIndex()
    purge = Purge(store, TARGET, index, PurgeOptions(delay_s=0.0, rest_ratio=0.0, patience_s=patience_s))
    await purge.note([gone("mem_1", 7)], soon())
    await purge.run_when_due(drained=False)
    assert index.purges == purges


async def test_what_another_process_purged_is_not_purged_again(store: InMemoryRecordStore) -> None:
    index = CountingIndex()
    mine, other = (Purge(store, TARGET, index, AT_ONCE) for _ in range(2))
    await mine.note([gone("mem_1", 7)], soon())
    await other.load(soon())
    for purge in (mine, other):
        await purge.run_when_due(drained=True)
        assert not purge.is_due
    assert index.purges == 1


async def test_indexes_that_share_a_turn_are_purged_one_at_a_time(store: InMemoryRecordStore) -> None:
    begun, go_on = asyncio.Event(), asyncio.Event()

    class SlowIndex(CountingIndex):
        async def purge(self, deadline_s: float) -> None:
            begun.set()
            await go_on.wait()
            await super().purge(deadline_s)

    turn, index = asyncio.Lock(), CountingIndex()
    slow = Purge(store, "vector_index:test", SlowIndex(), AT_ONCE, turn)
    other = Purge(store, "text_index:test", index, AT_ONCE, turn)
    for purge in (slow, other):
        await purge.note([gone("mem_1", 7)], soon())
    running = asyncio.create_task(slow.run_when_due(drained=True))
    await begun.wait()
    await other.run_when_due(drained=True)
    assert index.purges == 0
    assert other.wait_s == AT_ONCE.turn_s
    go_on.set()
    await running
    assert other.wait_s == 0.0
    await other.run_when_due(drained=True)
    assert index.purges == 1
    assert not other.is_due


async def test_an_erasure_that_another_process_notes_during_a_purge_stays_due(store: InMemoryRecordStore) -> None:
    other = Purge(store, TARGET, CountingIndex(), AT_ONCE)

    class NotingIndex(CountingIndex):
        async def purge(self, deadline_s: float) -> None:
            await super().purge(deadline_s)
            await other.note([gone("mem_2", 8)], soon())

    purge = Purge(store, TARGET, NotingIndex(), AT_ONCE)
    await purge.note([gone("mem_1", 7)], soon())
    await purge.run_when_due(drained=True)
    assert await store.marker(f"{TARGET}.purge", soon()) == 8
    await other.run_when_due(drained=True)
    assert await store.marker(f"{TARGET}.purge", soon()) == 0


class KeepingIndex(CountingIndex):
    """Lets go of what was deleted at the third call."""

    async def purge(self, deadline_s: float) -> None:
        self.purges += 1
        if self.purges < 3:
            raise NotYet("vector_index", "still keeps it")


async def test_an_index_that_keeps_it_for_a_while_is_asked_again_soon_and_that_is_logged_once(
    store: InMemoryRecordStore, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "memplane.purge")
    index = KeepingIndex()
    purge = Purge(store, TARGET, index, PurgeOptions(delay_s=0.0, rest_ratio=0.0, again_s=0.0, retry_s=600.0))
    await purge.note([gone("mem_1", 7)], soon())
    for done in (False, False, True):
        await purge.run_when_due(drained=True)
        assert purge.is_due is not done
    assert index.purges == 3
    assert await store.marker(f"{TARGET}.purge", soon()) == 0
    assert [record.levelname for record in caplog.records] == ["INFO", "INFO"]
    assert "not purged of erased data yet, tried again every 0 s: vector_index: still keeps it" in caplog.messages[0]
    assert "purged of erased data in" in caplog.messages[1]


async def test_a_purge_counts_for_what_was_erased_before_it_was_first_asked_for(store: InMemoryRecordStore) -> None:
    index = KeepingIndex()
    purge = Purge(store, TARGET, index, PurgeOptions(delay_s=0.0, rest_ratio=0.0, again_s=0.0))
    await purge.note([gone("mem_1", 7)], soon())
    await purge.run_when_due(drained=True)
    await purge.note([gone("mem_2", 8)], soon())
    for _ in range(2):
        await purge.run_when_due(drained=True)
    assert index.purges == 3
    assert purge.is_due
    await purge.run_when_due(drained=True)
    assert index.purges == 4
    assert not purge.is_due


async def test_what_the_index_was_asked_for_before_another_process_purged_counts_for_nothing_later(
    store: InMemoryRecordStore,
) -> None:
    index = KeepingIndex()
    purge = Purge(store, TARGET, index, PurgeOptions(delay_s=0.0, rest_ratio=0.0, again_s=0.0))
    await purge.note([gone("mem_1", 7)], soon())
    for _ in range(2):
        await purge.run_when_due(drained=True)
    await store.save_marker(f"{TARGET}.purge", 0, soon())
    await purge.run_when_due(drained=True)
    assert not purge.is_due
    await purge.note([gone("mem_2", 8)], soon())
    await purge.run_when_due(drained=True)
    assert purge.is_due
    await purge.run_when_due(drained=True)
    assert index.purges == 4
    assert not purge.is_due


async def test_a_failure_that_stays_the_same_is_warned_of_once(
    store: InMemoryRecordStore, caplog: pytest.LogCaptureFixture
) -> None:
    purge = Purge(store, TARGET, CountingIndex(failures=3), PurgeOptions(delay_s=0.0, rest_ratio=0.0, retry_s=0.0))
    await purge.note([gone("mem_1", 7)], soon())
    for _ in range(3):
        await purge.run_when_due(drained=True)
    assert [record.levelname for record in caplog.records] == ["WARNING"]


async def test_it_does_not_wait_for_the_outbox_again_once_it_was_asked_for(store: InMemoryRecordStore) -> None:
    index = KeepingIndex()
    purge = Purge(store, TARGET, index, PurgeOptions(delay_s=0.0, rest_ratio=0.0, again_s=0.0, patience_s=600.0))
    await purge.note([gone("mem_1", 7)], soon())
    await purge.run_when_due(drained=True)
    for _ in range(2):
        await purge.run_when_due(drained=False)
    assert not purge.is_due


class SlowIndex(CountingIndex):
    """Takes a while for a purge."""

    async def purge(self, deadline_s: float) -> None:
        await asyncio.sleep(0.05)
        await super().purge(deadline_s)


async def test_an_index_rests_after_a_purge_for_many_times_what_it_took(store: InMemoryRecordStore) -> None:
    index = SlowIndex()
    purge = Purge(store, TARGET, index, PurgeOptions(delay_s=0.0, rest_ratio=100.0))
    await purge.note([gone("mem_1", 7)], soon())
    await purge.run_when_due(drained=True)
    await purge.note([gone("mem_2", 8)], soon())
    assert purge.wait_s is not None
    assert purge.wait_s > 4.0
    await purge.run_when_due(drained=True)
    assert index.purges == 1
