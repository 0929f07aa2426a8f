"""What the outbox promises where hands let go: leases renewed, rows abandoned, doubts, and erasures beside hands."""

from collections.abc import Sequence

from dataplane.changes import Erasure, Lease, OutboxRow
from dataplane.model import State
from dataplane.ports import RecordStore
from tests.contract.builders import INDEX, NOW_US, commit_of, memory_of, scope_of
from tests.contract.record_store.test_outbox import LONG_S, SHORT_S, TEXT, change, fail, ids, lease, put, settle
from tests.deadline import eventually_async


async def erase(store: RecordStore, deadline_s: float, memory_id: str) -> int:
    erasure = Erasure(scope=scope_of(), memory_id=memory_id, now_us=NOW_US, principal_id="alice")
    return await store.erase(erasure, deadline_s)


async def due_of(store: RecordStore, deadline_s: float, index: str = INDEX) -> int:
    return next(item.due_count for item in await store.progress(deadline_s) if item.index == index)


def abandoned(rows: Sequence[OutboxRow]) -> list[bool]:
    return [row.abandoned for row in rows]


async def test_an_erasure_waits_for_the_hand_that_may_be_bringing_the_memory(
    store: RecordStore, deadline_s: float
) -> None:
    await put(store, deadline_s, "mem_1")
    held = await lease(store, deadline_s)
    await erase(store, deadline_s, "mem_1")
    assert await lease(store, deadline_s, owner="two") == []
    await settle(store, deadline_s, held)
    [removal] = await lease(store, deadline_s, owner="two")
    assert (removal.memory_id, removal.memory, removal.abandoned) == ("mem_1", None, False)


async def test_an_erasure_does_not_hide_that_somebody_gave_the_memory_up_half_way(
    store: RecordStore, deadline_s: float
) -> None:
    await put(store, deadline_s, "mem_1")
    await lease(store, deadline_s)
    await store.release_outbox("one", deadline_s)
    position = await erase(store, deadline_s, "mem_1")
    [removal] = await lease(store, deadline_s, owner="two")
    assert (removal.memory, removal.covers, removal.abandoned) == (None, position, True)


async def test_an_erasure_whose_forerunner_is_refused_is_offered_with_it(store: RecordStore, deadline_s: float) -> None:
    await put(store, deadline_s, "mem_1")
    held = await lease(store, deadline_s)
    position = await erase(store, deadline_s, "mem_1")
    await fail(store, deadline_s, held, 0.0)
    [again] = await lease(store, deadline_s, owner="two")
    assert (again.memory, again.covers) == (None, position)


async def test_a_renewed_lease_lasts(store: RecordStore, deadline_s: float) -> None:
    await put(store, deadline_s, "mem_1", "mem_2")
    await lease(store, deadline_s, page_size=1, seconds=0.4)
    await store.renew_outbox(Lease("one", LONG_S), deadline_s)
    await store.renew_outbox(Lease("two", SHORT_S), deadline_s)
    await lease(store, deadline_s, owner="two", seconds=0.5)
    assert ids(await eventually_async(lambda: lease(store, deadline_s, owner="three"), bool)) == ["mem_2"]


async def test_what_others_have_leased_by_now_is_not_renewed(store: RecordStore, deadline_s: float) -> None:
    await put(store, deadline_s, "mem_1")
    held = await lease(store, deadline_s, seconds=SHORT_S)
    taken = await eventually_async(lambda: lease(store, deadline_s, owner="two"), bool)
    await store.renew_outbox(Lease("one", LONG_S), deadline_s)
    await settle(store, deadline_s, held)
    assert await store.undelivered("mem_1", deadline_s) == {INDEX}
    await settle(store, deadline_s, taken, owner="two")
    assert await store.undelivered("mem_1", deadline_s) == set()


async def test_a_row_tells_that_somebody_held_it_before(store: RecordStore, deadline_s: float) -> None:
    await put(store, deadline_s, "mem_1", "mem_2", "mem_3")
    assert abandoned(await lease(store, deadline_s, page_size=1, seconds=SHORT_S)) == [False]
    await lease(store, deadline_s, owner="two", page_size=2)
    await store.release_outbox("two", deadline_s)
    rows = await eventually_async(lambda: lease(store, deadline_s, owner="three"), lambda rows: "mem_1" in ids(rows))
    assert all(abandoned(rows))
    await put(store, deadline_s, "mem_4")
    assert abandoned(await lease(store, deadline_s)) == [False]


async def test_what_was_postponed_was_answered(store: RecordStore, deadline_s: float) -> None:
    await put(store, deadline_s, "mem_1")
    await fail(store, deadline_s, await lease(store, deadline_s), 0.0)
    assert abandoned(await lease(store, deadline_s)) == [False]


async def test_a_replayed_dead_letter_may_be_overtaken(store: RecordStore, deadline_s: float) -> None:
    await put(store, deadline_s, "mem_1")
    await fail(store, deadline_s, await lease(store, deadline_s), None)
    await store.replay_dead_letters(INDEX, [], deadline_s)
    assert abandoned(await lease(store, deadline_s)) == [True]


async def test_a_name_gives_back_what_those_below_it_hold(store: RecordStore, deadline_s: float) -> None:
    await put(store, deadline_s, "mem_1", "mem_2", "mem_3", "mem_4")
    for owner in ("node/1/x", "node", "node-2/1", "node0"):
        await lease(store, deadline_s, owner=owner, page_size=1)
    await store.release_outbox("node", deadline_s)
    assert ids(await lease(store, deadline_s)) == ["mem_1", "mem_2"]
    await store.release_outbox("", deadline_s)
    assert await lease(store, deadline_s) == []


async def test_a_doubted_memory_is_undelivered_until_it_was_applied_once_more(
    store: RecordStore, deadline_s: float
) -> None:
    await store.register_index(TEXT, deadline_s)
    await put(store, deadline_s, "mem_1", "mem_2")
    rows = await lease(store, deadline_s)
    await store.doubt_outbox(INDEX, rows[:1], SHORT_S, deadline_s)
    await settle(store, deadline_s, rows)
    assert (await store.undelivered("mem_1", deadline_s), await due_of(store, deadline_s)) == ({INDEX, TEXT}, 1)
    assert await store.undelivered("mem_2", deadline_s) == {TEXT}
    assert await store.enqueue_doubted(TEXT, 10, deadline_s) == 0
    assert await eventually_async(lambda: store.enqueue_doubted(INDEX, 10, deadline_s), bool) == 1
    assert await store.enqueue_doubted(INDEX, 10, deadline_s) == 0
    [again] = await lease(store, deadline_s)
    assert (again.memory_id, again.memory, again.abandoned) == ("mem_1", rows[0].memory, False)
    await settle(store, deadline_s, [again])
    assert (await store.undelivered("mem_1", deadline_s), await due_of(store, deadline_s)) == ({TEXT}, 0)


async def test_a_doubt_waits_and_holds_up_no_change(store: RecordStore, deadline_s: float) -> None:
    await put(store, deadline_s, "mem_1")
    rows = await lease(store, deadline_s)
    await store.doubt_outbox(INDEX, rows, SHORT_S, deadline_s)
    await store.doubt_outbox(INDEX, [*rows, *rows], LONG_S, deadline_s)
    await settle(store, deadline_s, rows)
    await change(store, deadline_s, "mem_1", 2)
    [newer] = await lease(store, deadline_s)
    await settle(store, deadline_s, [newer])
    assert await store.enqueue_doubted(INDEX, 10, deadline_s) == 0
    assert await store.undelivered("mem_1", deadline_s) == {INDEX}


async def test_a_doubted_removal_is_not_applied_for_sure(store: RecordStore, deadline_s: float) -> None:
    hidden = memory_of("mem_2", state=State.PENDING_REVIEW)
    await store.commit([commit_of(memory_of("mem_1")), commit_of(hidden), commit_of(memory_of("mem_3"))], deadline_s)
    rows = await lease(store, deadline_s)
    await store.doubt_outbox(INDEX, rows, LONG_S, deadline_s)
    await settle(store, deadline_s, rows)
    await erase(store, deadline_s, "mem_3")
    await settle(store, deadline_s, await lease(store, deadline_s))
    assert await store.unapplied_removals("", 10, deadline_s) == ["mem_2", "mem_3"]


async def test_doubts_go_with_their_index_and_come_page_by_page(store: RecordStore, deadline_s: float) -> None:
    await put(store, deadline_s, "mem_1", "mem_2")
    rows = await lease(store, deadline_s)
    await settle(store, deadline_s, rows)
    await store.doubt_outbox(INDEX, rows, 0.0, deadline_s)
    assert await eventually_async(lambda: store.enqueue_doubted(INDEX, 1, deadline_s), bool) == 1
    await store.retire_index(INDEX, deadline_s)
    await store.doubt_outbox(INDEX, rows, 0.0, deadline_s)
    await store.register_index(INDEX, deadline_s)
    assert await store.enqueue_doubted(INDEX, 10, deadline_s) == 0
