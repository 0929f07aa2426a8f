"""What the leased outbox promises; nothing here takes the store for one connection or one process."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from dataplane.changes import DeadLetter, Erasure, Failure, Lease, OutboxRow
from dataplane.model import SYSTEM_SCOPE, State
from dataplane.ports import RecordStore
from tests.contract.builders import INDEX, MODEL, NOW_US, commit_of, memory_of, outbox_of, scope_of, vector_of
from tests.deadline import eventually_async

TEXT = "text_index:test"
LONG_S = 600.0
SHORT_S = 0.05


async def lease(
    store: RecordStore, deadline_s: float, owner: str = "one", page_size: int = 10, seconds: float = LONG_S
) -> list[OutboxRow]:
    return await store.lease_outbox(INDEX, Lease(owner, seconds), page_size, MODEL, deadline_s)


async def settle(store: RecordStore, deadline_s: float, rows: Sequence[OutboxRow], owner: str = "one") -> None:
    await store.settle_outbox(INDEX, owner, rows, deadline_s)


async def fail(
    store: RecordStore, deadline_s: float, rows: Sequence[OutboxRow], wait_s: float | None, owner: str = "one"
) -> None:
    failures = [Failure(row, "no such field", wait_s) for row in rows]
    await store.postpone_outbox(INDEX, owner, failures, deadline_s)


async def put(store: RecordStore, deadline_s: float, *ids: str) -> list[int]:
    results = await store.commit([commit_of(memory_of(memory_id)) for memory_id in ids], deadline_s)
    return [result.position for result in results]


async def change(store: RecordStore, deadline_s: float, memory_id: str, version: int) -> int:
    memory = memory_of(memory_id, content=f"{memory_id} {version}", version=version)
    [result] = await store.commit([commit_of(memory, expected_version=version - 1)], deadline_s)
    assert result.error is None
    return result.position


async def pending(store: RecordStore, deadline_s: float, applied: int = 0) -> list[str]:
    found = await store.pending(scope_of(), {INDEX: applied}, MODEL, 0, 100, deadline_s)
    return [candidate.memory.memory_id for candidate in found.candidates]


def ids(rows: Sequence[OutboxRow]) -> list[str]:
    return [row.memory_id for row in rows]


async def test_rows_come_oldest_first_with_what_the_store_says_now(store: RecordStore, deadline_s: float) -> None:
    hidden = memory_of("mem_2", state=State.PENDING_REVIEW, namespace="acme.hr")
    await store.commit([commit_of(memory_of("mem_1")), commit_of(hidden), commit_of(memory_of("mem_3"))], deadline_s)
    newer = memory_of("mem_1", content="new", version=2)
    await store.commit([commit_of(newer, expected_version=1, embedding=vector_of(2))], deadline_s)
    rows = await lease(store, deadline_s)
    assert [(row.position, row.memory_id, row.namespace, row.memory, row.attempts) for row in rows] == [
        (1, "mem_1", "acme.sales", newer, 0),
        (2, "mem_2", "acme.hr", None, 0),
        (3, "mem_3", "acme.sales", memory_of("mem_3"), 0),
    ]
    assert [row.covers for row in rows] == [4, 2, 3]
    np.testing.assert_array_equal(rows[0].embedding, vector_of(2))
    assert rows[2].embedding is None


async def test_an_erased_memory_leaves_one_row_that_says_so(store: RecordStore, deadline_s: float) -> None:
    await put(store, deadline_s, "mem_1")
    await change(store, deadline_s, "mem_1", 2)
    await store.erase(Erasure(scope=scope_of(), memory_id="mem_1", now_us=NOW_US, principal_id="alice"), deadline_s)
    [row] = await lease(store, deadline_s)
    assert (row.position, row.covers, row.memory) == (3, 3, None)


async def test_what_is_leased_is_offered_to_nobody(store: RecordStore, deadline_s: float) -> None:
    await put(store, deadline_s, "mem_1", "mem_2", "mem_3")
    assert ids(await lease(store, deadline_s, page_size=2)) == ["mem_1", "mem_2"]
    assert ids(await lease(store, deadline_s)) == ["mem_3"]
    assert await lease(store, deadline_s, owner="two") == []


async def test_a_memory_is_never_in_two_hands(store: RecordStore, deadline_s: float) -> None:
    await put(store, deadline_s, "mem_1")
    held = await lease(store, deadline_s)
    await change(store, deadline_s, "mem_1", 2)
    assert await lease(store, deadline_s, owner="two") == []
    await settle(store, deadline_s, held)
    assert [row.position for row in await lease(store, deadline_s, owner="two")] == [2]


async def test_settling_drops_all_that_the_row_covers_and_no_more(store: RecordStore, deadline_s: float) -> None:
    await put(store, deadline_s, "mem_1")
    await change(store, deadline_s, "mem_1", 2)
    [row] = await lease(store, deadline_s)
    assert (row.position, row.covers) == (1, 2)
    await change(store, deadline_s, "mem_1", 3)
    await settle(store, deadline_s, [row])
    await settle(store, deadline_s, [row])
    [rest] = await lease(store, deadline_s)
    assert (rest.position, rest.covers) == (3, 3)


async def test_an_index_is_settled_for_itself_alone(store: RecordStore, deadline_s: float) -> None:
    await store.register_index(TEXT, deadline_s)
    await put(store, deadline_s, "mem_1")
    assert await store.undelivered("mem_1", deadline_s) == {INDEX, TEXT}
    await settle(store, deadline_s, await lease(store, deadline_s))
    assert await store.undelivered("mem_1", deadline_s) == {TEXT}
    assert ids(await outbox_of(store, deadline_s, TEXT)) == ["mem_1"]
    assert await store.undelivered("mem_none", deadline_s) == set()


async def test_a_lease_ends_by_itself_and_its_owner_has_no_more_say(store: RecordStore, deadline_s: float) -> None:
    await put(store, deadline_s, "mem_1", "mem_2")
    lost = await lease(store, deadline_s, seconds=SHORT_S)
    assert len(lost) == 2
    taken = await eventually_async(lambda: lease(store, deadline_s, owner="two"), bool)
    assert len(taken) == 2
    await settle(store, deadline_s, lost)
    await fail(store, deadline_s, lost, None)
    await store.release_outbox("one", deadline_s)
    assert await store.dead_letters("", 0, 10, deadline_s) == []
    assert await store.undelivered("mem_1", deadline_s) == {INDEX}
    assert await lease(store, deadline_s, owner="three") == []
    await settle(store, deadline_s, taken, owner="two")
    assert await store.undelivered("mem_1", deadline_s) == set()


async def test_releasing_gives_back_everything_of_an_owner_at_once(store: RecordStore, deadline_s: float) -> None:
    await store.register_index(TEXT, deadline_s)
    await put(store, deadline_s, "mem_1", "mem_2")
    first = await lease(store, deadline_s, page_size=1)
    await lease(store, deadline_s, owner="two")
    await store.lease_outbox(TEXT, Lease("one", LONG_S), 10, MODEL, deadline_s)
    for _ in range(2):
        await store.release_outbox("one", deadline_s)
    again = await lease(store, deadline_s, owner="three")
    assert ids(again) == ids(first)
    assert [row.attempts for row in again] == [0]
    assert ids(await outbox_of(store, deadline_s, TEXT)) == ["mem_1", "mem_2"]


async def test_a_postponed_row_waits_with_its_memory_and_holds_up_no_other(
    store: RecordStore, deadline_s: float
) -> None:
    await put(store, deadline_s, "mem_1", "mem_2")
    rows = await lease(store, deadline_s)
    await fail(store, deadline_s, rows[:1], LONG_S)
    await settle(store, deadline_s, rows[1:])
    await change(store, deadline_s, "mem_1", 2)
    await put(store, deadline_s, "mem_3")
    assert ids(await lease(store, deadline_s)) == ["mem_3"]


async def test_a_postponed_row_comes_again_and_knows_its_attempts(store: RecordStore, deadline_s: float) -> None:
    await put(store, deadline_s, "mem_1")
    for attempts in range(3):
        [row] = await eventually_async(lambda: lease(store, deadline_s), bool)
        assert (row.position, row.attempts) == (1, attempts)
        await fail(store, deadline_s, [row], SHORT_S)


async def test_what_was_given_up_is_visible_and_does_not_block_newer_changes(
    store: RecordStore, deadline_s: float
) -> None:
    await put(store, deadline_s, "mem_1", "mem_2")
    rows = await lease(store, deadline_s)
    await fail(store, deadline_s, rows, None)
    letters = await store.dead_letters(INDEX, 0, 10, deadline_s)
    assert [replace(letter, time_us=0) for letter in letters] == [
        DeadLetter(INDEX, 1, "mem_1", "acme.sales", 1, "no such field", 0),
        DeadLetter(INDEX, 2, "mem_2", "acme.sales", 1, "no such field", 0),
    ]
    assert all(letter.time_us > NOW_US for letter in letters)
    assert await store.dead_letters("", 0, 1, deadline_s) == letters[:1]
    assert await store.dead_letters("", 1, 10, deadline_s) == letters[1:]
    assert await store.dead_letters(TEXT, 0, 10, deadline_s) == []
    assert await lease(store, deadline_s) == []
    await change(store, deadline_s, "mem_1", 2)
    [newer] = await lease(store, deadline_s)
    assert (newer.position, newer.covers, newer.attempts) == (3, 3, 0)
    await settle(store, deadline_s, [newer])
    assert [letter.memory_id for letter in await store.dead_letters("", 0, 10, deadline_s)] == ["mem_2"]


async def test_what_failed_stays_pending_whatever_was_applied(store: RecordStore, deadline_s: float) -> None:
    await put(store, deadline_s, "mem_1", "mem_2", "mem_3", "mem_4")
    rows = await lease(store, deadline_s, page_size=3)
    await fail(store, deadline_s, rows[:1], None)
    await fail(store, deadline_s, rows[1:2], LONG_S)
    await settle(store, deadline_s, rows[2:])
    assert await pending(store, deadline_s) == ["mem_4", "mem_2", "mem_1"]
    assert await pending(store, deadline_s, applied=3) == ["mem_4", "mem_2", "mem_1"]
    assert await pending(store, deadline_s, applied=4) == ["mem_2", "mem_1"]
    assert await store.undelivered("mem_1", deadline_s) == {INDEX}
    applied = {INDEX: 4, "vector_index:unknown": 0}
    cut = await store.pending(SYSTEM_SCOPE, applied, MODEL, 0, 1, deadline_s)
    assert [candidate.memory.memory_id for candidate in cut.candidates] == ["mem_2"]
    assert cut.truncated


async def test_pending_counts_only_the_indexes_asked_about(store: RecordStore, deadline_s: float) -> None:
    await store.register_index(TEXT, deadline_s)
    await put(store, deadline_s, "mem_1", "mem_2")
    await settle(store, deadline_s, await lease(store, deadline_s, page_size=1))
    found = {}
    for name, applied in {"none": {}, "vector": {INDEX: 0}, "text": {TEXT: 1}, "both": {INDEX: 2, TEXT: 0}}.items():
        page = await store.pending(scope_of(), applied, MODEL, 0, 10, deadline_s)
        found[name] = [candidate.memory.memory_id for candidate in page.candidates]
    assert found == {"none": [], "vector": ["mem_2"], "text": ["mem_2"], "both": ["mem_2", "mem_1"]}


async def test_erasing_takes_what_was_given_up_along(store: RecordStore, deadline_s: float) -> None:
    await put(store, deadline_s, "mem_1")
    await fail(store, deadline_s, await lease(store, deadline_s), None)
    await store.erase(Erasure(scope=scope_of(), memory_id="mem_1", now_us=NOW_US, principal_id="alice"), deadline_s)
    assert await store.dead_letters("", 0, 10, deadline_s) == []
    assert ids(await lease(store, deadline_s)) == ["mem_1"]


async def test_removals_are_listed_until_every_index_has_applied_them(store: RecordStore, deadline_s: float) -> None:
    await store.register_index(TEXT, deadline_s)
    await put(store, deadline_s, *(f"mem_{number}" for number in range(1, 6)))
    await settle(store, deadline_s, await lease(store, deadline_s))
    assert await store.unapplied_removals("", 10, deadline_s) == []
    for memory_id, state in (("mem_2", State.SOFT_DELETED), ("mem_3", State.QUARANTINED)):
        await store.commit([commit_of(memory_of(memory_id, version=2, state=state), expected_version=1)], deadline_s)
    await store.erase(Erasure(scope=scope_of(), memory_id="mem_4", now_us=NOW_US, principal_id="alice"), deadline_s)
    await change(store, deadline_s, "mem_5", 2)
    assert await store.unapplied_removals("", 2, deadline_s) == ["mem_2", "mem_3"]
    assert await store.unapplied_removals("mem_3", 2, deadline_s) == ["mem_4"]
    await fail(store, deadline_s, await lease(store, deadline_s, page_size=2), None)
    await settle(store, deadline_s, await lease(store, deadline_s))
    await store.retire_index(TEXT, deadline_s)
    assert await store.unapplied_removals("", 10, deadline_s) == ["mem_2", "mem_3"]


async def test_dead_letters_are_replayed_with_no_attempts(store: RecordStore, deadline_s: float) -> None:
    await put(store, deadline_s, "mem_1", "mem_2", "mem_3")
    await fail(store, deadline_s, await lease(store, deadline_s), None)
    assert await store.replay_dead_letters(INDEX, [2, 99], deadline_s) == 1
    assert await store.replay_dead_letters(INDEX, [2], deadline_s) == 0
    assert await store.replay_dead_letters(TEXT, [], deadline_s) == 0
    [row] = await lease(store, deadline_s)
    assert (row.position, row.attempts) == (2, 0)
    assert await store.replay_dead_letters(INDEX, [], deadline_s) == 2
    assert ids(await lease(store, deadline_s)) == ["mem_1", "mem_3"]


async def test_an_index_is_new_once_and_follows_from_then_on(store: RecordStore, deadline_s: float) -> None:
    await put(store, deadline_s, "mem_1")
    assert await store.register_index(TEXT, deadline_s)
    assert not await store.register_index(TEXT, deadline_s)
    await put(store, deadline_s, "mem_2")
    assert ids(await outbox_of(store, deadline_s, TEXT)) == ["mem_2"]


async def test_a_retired_index_loses_its_rows(store: RecordStore, deadline_s: float) -> None:
    await put(store, deadline_s, "mem_1", "mem_2")
    await fail(store, deadline_s, await lease(store, deadline_s, page_size=1), None)
    for _ in range(2):
        await store.retire_index(INDEX, deadline_s)
    await put(store, deadline_s, "mem_3")
    assert await store.undelivered("mem_1", deadline_s) == set()
    assert await store.progress(deadline_s) == []
    assert await store.register_index(INDEX, deadline_s)
    assert await lease(store, deadline_s) == []
    assert await store.dead_letters("", 0, 10, deadline_s) == []


async def test_only_what_nobody_registers_any_more_is_retired(store: RecordStore, deadline_s: float) -> None:
    assert await store.retire_unseen(600.0, deadline_s) == []
    await store.register_index(TEXT, deadline_s)

    async def retired() -> list[str]:
        await store.register_index(INDEX, deadline_s)
        return await store.retire_unseen(SHORT_S, deadline_s)

    assert await eventually_async(retired, bool) == [TEXT]
    assert [item.index for item in await store.progress(deadline_s)] == [INDEX]


async def test_everything_active_is_enqueued_page_by_page(store: RecordStore, deadline_s: float) -> None:
    await put(store, deadline_s, *(f"mem_{number}" for number in range(5)))
    await store.commit([commit_of(memory_of("mem_5", state=State.SOFT_DELETED))], deadline_s)
    await store.register_index(TEXT, deadline_s)
    await change(store, deadline_s, "mem_3", 2)
    last = await store.last_position(deadline_s)
    pages, after_id = [], ""
    while page := await store.enqueue_all(TEXT, after_id, 2, deadline_s):
        pages.append(page)
        after_id = page[-1]
    assert pages == [["mem_0", "mem_1"], ["mem_2", "mem_3"], ["mem_4"]]
    rows = await outbox_of(store, deadline_s, TEXT)
    assert sorted(ids(rows)) == [f"mem_{number}" for number in range(5)]
    assert len(await outbox_of(store, deadline_s)) == 6
    newest = max(row.covers for row in rows)
    assert await store.last_position(deadline_s) == newest
    assert newest > last
    assert await put(store, deadline_s, "mem_9") == [newest + 1]


async def test_progress_tells_how_far_each_index_is(store: RecordStore, deadline_s: float) -> None:
    await store.register_index(TEXT, deadline_s)
    await put(store, deadline_s, "mem_1", "mem_2", "mem_3", "mem_4")
    text, vector = await store.progress(deadline_s)
    assert (text.index, text.watermark, text.due_count, text.dead_count) == (TEXT, 0, 4, 0)
    assert replace(vector, index=TEXT) == text
    rows = await lease(store, deadline_s, page_size=3)
    await settle(store, deadline_s, rows[:1])
    await fail(store, deadline_s, rows[1:2], LONG_S)
    await fail(store, deadline_s, rows[2:], None)
    _, vector = await store.progress(deadline_s)
    assert (vector.index, vector.watermark, vector.due_count, vector.dead_count) == (INDEX, 3, 2, 1)
    assert vector.oldest_due_us is not None
    assert vector.oldest_due_us > NOW_US
    await settle(store, deadline_s, await lease(store, deadline_s))
    await store.retire_index(TEXT, deadline_s)
    [vector] = await store.progress(deadline_s)
    assert (vector.watermark, vector.due_count, vector.dead_count) == (4, 1, 1)


async def test_progress_of_an_index_without_rows_is_level(store: RecordStore, deadline_s: float) -> None:
    await put(store, deadline_s, "mem_1")
    await settle(store, deadline_s, await lease(store, deadline_s))
    [vector] = await store.progress(deadline_s)
    assert (vector.watermark, vector.due_count, vector.dead_count, vector.oldest_due_us) == (1, 0, 0, None)


async def test_many_followers_share_the_rows_without_ever_holding_the_same(
    store: RecordStore, deadline_s: float
) -> None:
    count = 1_200
    commits = [commit_of(memory_of(f"mem_{number:05}")) for number in range(count)]
    for start in range(0, count, 400):
        await store.commit(commits[start : start + 400], deadline_s)
    held: Counter[str] = Counter()
    seen: Counter[str] = Counter()

    async def follow(owner: str) -> None:
        while rows := await lease(store, deadline_s, owner=owner, page_size=50):
            held.update(ids(rows))
            assert max(held.values()) == 1
            seen.update(ids(rows))
            await asyncio.sleep(0)
            held.subtract(ids(rows))
            await settle(store, deadline_s, rows, owner=owner)

    followers = [asyncio.create_task(follow(f"follower-{number}")) for number in range(8)]
    await asyncio.gather(*followers)
    # Somebody may see nothing due while the last rows are in other hands: they come to an end all the same.
    await follow("last")
    assert len(seen) == count
    assert set(seen.values()) == {1}
    assert await lease(store, deadline_s) == []


async def test_commits_during_following_are_all_delivered(store: RecordStore, deadline_s: float) -> None:
    committed, delivered = asyncio.Event(), dict[str, int]()

    async def write(number: int) -> None:
        for version in range(1, 6):
            if version == 1:
                await put(store, deadline_s, f"mem_{number}")
            else:
                await change(store, deadline_s, f"mem_{number}", version)

    async def follow(owner: str) -> None:
        while True:
            is_last = committed.is_set()
            rows = await lease(store, deadline_s, owner=owner, page_size=3)
            for row in rows:
                assert row.memory is not None
                assert row.memory.version >= delivered.get(row.memory_id, 0)
                delivered[row.memory_id] = row.memory.version
            await settle(store, deadline_s, rows, owner=owner)
            if is_last and not rows:
                return
            await asyncio.sleep(0)

    following = [asyncio.create_task(follow(owner)) for owner in ("one", "two", "three")]
    await asyncio.gather(*(write(number) for number in range(12)))
    committed.set()
    await asyncio.gather(*following)
    await follow("last")
    assert delivered == {f"mem_{number}": 5 for number in range(12)}
    assert [item.due_count for item in await store.progress(deadline_s)] == [0]


@pytest.mark.parametrize("page_size", [1, 7])
async def test_nothing_to_do_is_fine(store: RecordStore, deadline_s: float, page_size: int) -> None:
    assert await lease(store, deadline_s, page_size=page_size) == []
    assert await store.lease_outbox("vector_index:unknown", Lease("one", 1.0), page_size, MODEL, deadline_s) == []
    await settle(store, deadline_s, [])
    await fail(store, deadline_s, [], None)
    await store.release_outbox("nobody", deadline_s)
    await store.retire_index("vector_index:unknown", deadline_s)
    assert await store.enqueue_all(INDEX, "", page_size, deadline_s) == []
    assert await store.replay_dead_letters(INDEX, [], deadline_s) == 0
