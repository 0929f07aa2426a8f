"""What projectors do about rows that they lost, or that others let go: nothing old is left in an index on a server."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest

from dataplane.adapters.inmemory.record_store import InMemoryRecordStore
from dataplane.changes import Lease, OutboxRow
from dataplane.ending import end
from dataplane.errors import BackendUnavailable
from dataplane.model import IndexEntry
from dataplane.pipelines.hand import Hand
from dataplane.pipelines.project import Projectors
from dataplane.pipelines.projector import Projector
from tests.contract.builders import fields_of
from tests.deadline import eventually, eventually_async
from tests.unit.dataplane.pipelines.test_projector import (
    OPTIONS,
    TARGET,
    ScriptedIndex,
    erase,
    following,
    in_index,
    projection,
    put,
    reads,
    soon,
    waiting,
)

QUICK = replace(OPTIONS, doubt_s=0.1)


class LateIndex(ScriptedIndex):
    """Gives up the first upsert, which `arrive` then brings all the same."""

    def __init__(self) -> None:
        super().__init__()
        self._late: list[IndexEntry] = []
        self.given_up = 0

    async def upsert(self, entries: Sequence[IndexEntry], deadline_s: float) -> None:
        if entries and not self.given_up:
            self.given_up, self._late = 1, list(entries)
            raise BackendUnavailable("vector_index", "did not answer in time")
        await super().upsert(entries, deadline_s)

    async def arrive(self) -> None:
        await super().upsert(self._late, soon())


class StalledIndex(ScriptedIndex):
    """Stands still in its first upsert until `go_on`, as the process would."""

    def __init__(self) -> None:
        super().__init__()
        self.stalled, self.go_on = asyncio.Event(), asyncio.Event()

    async def upsert(self, entries: Sequence[IndexEntry], deadline_s: float) -> None:
        if entries and not self.stalled.is_set():
            self.stalled.set()
            await self.go_on.wait()
        await super().upsert(entries, deadline_s)


@pytest.fixture
def store() -> InMemoryRecordStore:
    return InMemoryRecordStore(fields_of)


def hand(store: InMemoryRecordStore, owner: str = "there", *, lease_s: float = 60.0, own: bool = False) -> Hand:
    return Hand(store, TARGET, replace(QUICK, owner=owner, lease_s=lease_s).hand(TARGET), own=own)


async def test_an_upsert_that_arrives_after_the_removal_does_not_stay(store: InMemoryRecordStore) -> None:
    index = LateIndex()
    async with following(store, projection(index, own=False), QUICK) as projector:
        await projector.wait_level(5)
        await put(store, "mem_1")
        projector.wake()
        await eventually(lambda: index.given_up, bool)
        position = await erase(store, "mem_1")
        projector.wake()
        assert await projector.wait_for({"mem_1": position}, 5)
        assert TARGET in await store.undelivered("mem_1", soon())  # no forget says that it is gone yet
        await index.arrive()
        assert await in_index(index) == ["mem_1"]
        await eventually_async(reads(waiting, store), lambda seen: seen == (0, 0))
        assert await in_index(index) == []


async def test_an_upsert_of_a_process_that_stalled_does_not_stay(
    store: InMemoryRecordStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    stalled = StalledIndex()
    async with following(store, projection(stalled, own=False), replace(QUICK, lease_s=0.1)) as projector:
        monkeypatch.setattr(projector._hand, "_renew", asyncio.Event().wait)
        await projector.wait_level(5)
        await put(store, "mem_1")
        projector.wake()
        await stalled.stalled.wait()
        await erase(store, "mem_1")
        other = hand(store)
        removal = await eventually_async(lambda: other.lease(""), bool)
        await other.settle(removal)
        stalled.go_on.set()
        await eventually_async(reads(in_index, stalled), lambda ids: ids == ["mem_1"])
        await eventually_async(reads(in_index, stalled), lambda ids: ids == [])
        await eventually_async(reads(waiting, store), lambda seen: seen == (0, 0))


async def test_a_batch_that_takes_longer_than_a_lease_stays_in_its_hands(store: InMemoryRecordStore) -> None:
    index = StalledIndex()
    async with following(store, projection(index, own=False), replace(QUICK, lease_s=0.2)) as projector:
        await projector.wait_level(5)
        await put(store, "mem_1")
        projector.wake()
        await index.stalled.wait()
        leased_us = next(iter(store._tables.outbox.values())).due_time_us
        await eventually(lambda: store._tables.time_us, lambda now_us: now_us > leased_us + 200_000)
        assert await store.lease_outbox(TARGET, Lease("other", 60.0), 9, "", soon()) == []
        index.go_on.set()
        await eventually_async(reads(waiting, store), lambda seen: seen == (0, 0))


async def test_no_step_begins_for_rows_that_others_may_hold(store: InMemoryRecordStore) -> None:
    await store.register_index(TARGET, soon())
    await put(store, "mem_1")
    lost = hand(store, lease_s=0.05)
    rows = await lost.lease("")
    lost.deadline()
    other = hand(store, "other")
    await eventually_async(lambda: other.lease(""), bool)
    with pytest.raises(BackendUnavailable, match="others may hold the rows"):
        lost.deadline()
    await lost.settle(rows)
    lost.deadline()
    assert await waiting(store) == (2, 0)  # the row that the other holds, and the doubt


async def test_what_nobody_abandoned_is_not_doubted(store: InMemoryRecordStore) -> None:
    await store.register_index(TARGET, soon())
    await put(store, "mem_1")
    one = hand(store)
    await one.settle(await one.lease(""))
    assert await waiting(store) == (0, 0)


@pytest.mark.parametrize(("own", "doubts"), [(False, 1), (True, 0)])
async def test_what_was_given_back_is_doubted_unless_it_ended_with_its_process(
    store: InMemoryRecordStore, own: bool, doubts: int
) -> None:
    await store.register_index(TARGET, soon())
    await put(store, "mem_1")
    one, two = hand(store, own=own), hand(store, "two", own=own)
    await one.lease("")
    await one.release()
    await two.settle(await two.lease(""))
    assert await waiting(store) == (doubts, 0)


async def test_a_lease_that_comes_through_after_it_was_given_up_runs_out(store: InMemoryRecordStore) -> None:
    await store.register_index(TARGET, soon())
    await put(store, "mem_1")
    one, given_up = hand(store, lease_s=1.0), list[Lease]()
    lease = store.lease_outbox

    async def give_up(_index: str, asked: Lease, *_: object) -> list[OutboxRow]:
        given_up.append(asked)
        raise BackendUnavailable("record_store", "does not answer in time")

    store.lease_outbox = give_up  # type: ignore[method-assign]  # once
    with pytest.raises(BackendUnavailable):
        await one.lease("")
    store.lease_outbox = lease  # type: ignore[method-assign]  # as it was
    await one.release()
    assert await store.lease_outbox(TARGET, given_up[0], 1, "", soon())
    await put(store, "mem_2")
    [held] = await one.lease("")
    keeping = asyncio.create_task(one.keep())
    other = hand(store, "other")
    [found] = await eventually_async(lambda: other.lease(""), bool)
    assert (held.memory_id, found.memory_id, found.abandoned) == ("mem_2", "mem_1", True)
    await end(keeping)


@pytest.mark.parametrize("own", [False, True])
async def test_doubts_that_a_rebuild_did_not_put_in_line_are_found(store: InMemoryRecordStore, own: bool) -> None:
    await store.register_index(TARGET, soon())
    await store.doubt_outbox(TARGET, [OutboxRow(0, "mem_1", "a", None, None)], 0.0, soon())
    assert await waiting(store) == (1, 0)
    one = hand(store, own=own)
    await one.recall()
    await one.settle(await one.lease(""))
    assert await waiting(store) == (0, 0)


async def test_a_data_plane_that_starts_again_goes_on_at_once(store: InMemoryRecordStore) -> None:
    await store.register_index(TARGET, soon())
    await put(store, "mem_1")
    assert await hand(store, "node-1/killed", lease_s=3_600.0).lease("")
    index = ScriptedIndex()
    options = replace(QUICK, owner="node-1/new", lease_s=3_600.0)
    projectors = Projectors(store, [Projector(store, projection(index, own=False), options)], options)
    await projectors.start()
    await eventually_async(reads(in_index, index), lambda ids: ids == ["mem_1"])
    await projectors.stop()
