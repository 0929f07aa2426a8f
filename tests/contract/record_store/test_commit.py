import asyncio
from dataclasses import replace

import numpy as np
import pytest

from dataplane.changes import Change, Commit, ConflictRecord, DecisionRecord, RequestRecord, Supersession
from dataplane.errors import (
    BackendUnavailable,
    DuplicateContent,
    DuplicateFact,
    DuplicateRequest,
    StaleVersion,
)
from dataplane.model import SYSTEM_SCOPE, Action, Kind, Pool, Scope, State
from dataplane.ports import RecordStore
from tests.contract.builders import (
    MODEL,
    NOW_US,
    commit_of,
    memory_of,
    outbox_of,
    scope_of,
    vector_of,
)

DECISION = DecisionRecord(Action.CREATED, 0.9, "v1", b"decision")


def request_of(request_id: str = "req_1", expire_time_us: int = NOW_US + 1_000) -> RequestRecord:
    return RequestRecord("alice", request_id, "hash", b"answer", expire_time_us)


async def put(store: RecordStore, commit: Commit, deadline_s: float) -> int:
    [result] = await store.commit([commit], deadline_s)
    assert result.error is None
    return result.position


async def refused(store: RecordStore, commit: Commit, deadline_s: float) -> Exception | None:
    [result] = await store.commit([commit], deadline_s)
    assert result.position == 0
    return result.error


async def test_a_committed_memory_reads_back_in_every_field(store: RecordStore, deadline_s: float) -> None:
    memory = memory_of(
        subject_id="用户",
        session_id="s1",
        category="a b",
        fact_key="user:city",
        event_time_us=-1,
        valid_from_us=1,
        valid_to_us=2,
        expire_time_us=3,
        access_count=4,
        last_access_time_us=5,
        pool=Pool.SHARED,
        body=b"\x00\xff",
    )
    await put(store, commit_of(memory, embedding=vector_of(1)), deadline_s)
    assert await store.get(scope_of(), "mem_1", deadline_s) == memory


async def test_no_commits_are_no_results(store: RecordStore, deadline_s: float) -> None:
    assert await store.commit([], deadline_s) == []


async def test_positions_rise_in_commit_order(store: RecordStore, deadline_s: float) -> None:
    results = await store.commit([commit_of(memory_of(f"mem_{n}")) for n in range(5)], deadline_s)
    positions = [result.position for result in results]
    assert positions == sorted(set(positions))
    assert await store.last_position(deadline_s) == positions[-1]


async def test_an_embedding_reads_back_and_cannot_be_written_to(store: RecordStore, deadline_s: float) -> None:
    await put(store, commit_of(memory_of(), embedding=vector_of(1)), deadline_s)
    [candidate] = await store.fetch(scope_of(), ["mem_1"], MODEL, 0, deadline_s)
    assert candidate.embedding is not None
    np.testing.assert_array_equal(candidate.embedding, vector_of(1))
    assert candidate.embedding.dtype == np.float32
    assert not candidate.embedding.flags.writeable


async def test_a_refused_commit_leaves_no_trace_and_does_not_touch_the_others(
    store: RecordStore, deadline_s: float
) -> None:
    loser = memory_of("mem_0", fact_key="user:city")
    await put(store, commit_of(loser), deadline_s)
    bad = commit_of(
        memory_of("mem_2", content="mem_1"),
        embedding=vector_of(2),
        supersedes=(Supersession("mem_0", 1, NOW_US),),
        request=request_of(),
        decision=DECISION,
    )
    first, second, third = await store.commit([commit_of(memory_of()), bad, commit_of(memory_of("mem_3"))], deadline_s)
    assert (first.error, second.error, third.error) == (None, DuplicateContent("mem_1"), None)
    assert third.position == first.position + 1
    assert await store.get(scope_of(), "mem_2", deadline_s) is None
    assert await store.get_version(scope_of(), "mem_2", 1, deadline_s) is None
    assert await store.get(scope_of(), "mem_0", deadline_s) == loser
    assert await store.find_requests(scope_of(), "alice", ["req_1"], NOW_US, deadline_s) == []
    assert [row.memory_id for row in await outbox_of(store, deadline_s)] == ["mem_0", "mem_1", "mem_3"]


async def test_the_same_content_of_one_subject_and_kind_is_kept_once(store: RecordStore, deadline_s: float) -> None:
    await put(store, commit_of(memory_of()), deadline_s)
    again = commit_of(memory_of("mem_2", content="mem_1"))
    assert await refused(store, again, deadline_s) == DuplicateContent("mem_1")


@pytest.mark.parametrize(
    "other",
    [
        {"namespace": "acme.salesforce"},
        {"subject_id": "bob"},
        {"kind": Kind.PREFERENCE},
        {"state": State.PENDING_REVIEW},
    ],
)
async def test_the_same_content_elsewhere_is_another_memory(
    store: RecordStore, deadline_s: float, other: dict[str, object]
) -> None:
    await put(store, commit_of(memory_of()), deadline_s)
    await put(store, commit_of(memory_of("mem_2", content="mem_1", **other)), deadline_s)


async def test_a_fact_key_is_active_once(store: RecordStore, deadline_s: float) -> None:
    await put(store, commit_of(memory_of(fact_key="user:city")), deadline_s)
    again = commit_of(memory_of("mem_2", fact_key="user:city"))
    assert await refused(store, again, deadline_s) == DuplicateFact("mem_1")
    await put(store, commit_of(memory_of("mem_3", fact_key="user:city", subject_id="bob")), deadline_s)
    await store.commit([commit_of(memory_of("mem_4")), commit_of(memory_of("mem_5"))], deadline_s)
    assert await store.count(deadline_s) == 4


async def test_the_same_content_is_named_before_the_same_fact(store: RecordStore, deadline_s: float) -> None:
    await put(store, commit_of(memory_of("mem_1", fact_key="f")), deadline_s)
    await put(store, commit_of(memory_of("mem_2")), deadline_s)
    both = commit_of(memory_of("mem_3", content="mem_2", fact_key="f"))
    assert await refused(store, both, deadline_s) == DuplicateContent("mem_2")


async def test_concurrent_identical_writes_leave_one_memory(store: RecordStore, deadline_s: float) -> None:
    writes = (store.commit([commit_of(memory_of(f"mem_{n}", content="same"))], deadline_s) for n in range(64))
    results = [result for [result] in await asyncio.gather(*writes)]
    stored = [result for result in results if result.error is None]
    refusals = {repr(result.error) for result in results if result.error}
    assert len(stored) == 1
    assert len(refusals) == 1
    assert await store.count(deadline_s) == 1


async def test_an_update_adds_a_version_and_an_outbox_row(store: RecordStore, deadline_s: float) -> None:
    await put(store, commit_of(memory_of(), embedding=vector_of(1)), deadline_s)
    second = memory_of(content="two", version=2, update_time_us=NOW_US + 1)
    update = commit_of(
        second,
        expected_version=1,
        change=Change.UPDATED,
        reason="better",
        principal_id="bob",
        now_us=NOW_US + 1,
        embedding=vector_of(2),
    )
    assert await put(store, update, deadline_s) == 2
    assert await store.get(scope_of(), "mem_1", deadline_s) == second
    new, old = await store.list_versions(scope_of(), "mem_1", 0, 10, deadline_s)
    assert (new.memory, new.record_time_us, new.principal_id, new.change, new.reason) == (
        second,
        NOW_US + 1,
        "bob",
        Change.UPDATED,
        "better",
    )
    assert (old.memory, old.change, old.principal_id) == (memory_of(), Change.CREATED, "alice")
    [candidate] = await store.fetch(scope_of(), ["mem_1"], MODEL, 0, deadline_s)
    np.testing.assert_array_equal(candidate.embedding, vector_of(2))


async def test_an_update_without_an_embedding_is_not_embedded_yet(store: RecordStore, deadline_s: float) -> None:
    await put(store, commit_of(memory_of(), embedding=vector_of(1)), deadline_s)
    await put(store, commit_of(memory_of(content="two", version=2), expected_version=1), deadline_s)
    [candidate] = await store.fetch(scope_of(), ["mem_1"], MODEL, 0, deadline_s)
    assert candidate.embedding is None


@pytest.mark.parametrize(("expected", "version"), [(0, 1), (2, 2), (2, 3)])
async def test_a_wrong_expected_version_is_refused_with_the_current_one(
    store: RecordStore, deadline_s: float, expected: int, version: int
) -> None:
    await put(store, commit_of(memory_of()), deadline_s)
    stale = commit_of(memory_of(content="two", version=version), expected_version=expected)
    assert await refused(store, stale, deadline_s) == StaleVersion("mem_1", expected, 1)
    assert await store.get(scope_of(), "mem_1", deadline_s) == memory_of()


async def test_an_update_of_nothing_is_stale_with_current_0(store: RecordStore, deadline_s: float) -> None:
    update = commit_of(memory_of(version=2), expected_version=1)
    assert await refused(store, update, deadline_s) == StaleVersion("mem_1", 1, 0)


async def test_reinforcement_replaces_the_changing_fields_alone(store: RecordStore, deadline_s: float) -> None:
    await put(store, commit_of(memory_of()), deadline_s)
    raised = memory_of(
        content="ignored",
        strength=1.5,
        strength_time_us=NOW_US + 5,
        access_count=3,
        last_access_time_us=NOW_US + 5,
        category="ignored",
    )
    position = await put(store, commit_of(raised, expected_version=1, change=Change.MERGED), deadline_s)
    assert position == 1
    assert await store.get(scope_of(), "mem_1", deadline_s) == memory_of(
        strength=1.5, strength_time_us=NOW_US + 5, access_count=3, last_access_time_us=NOW_US + 5
    )
    assert len(await store.list_versions(scope_of(), "mem_1", 0, 10, deadline_s)) == 1
    [row] = await outbox_of(store, deadline_s)
    assert row.covers == 1


async def test_a_change_of_state_alone_reaches_the_outbox(store: RecordStore, deadline_s: float) -> None:
    await put(store, commit_of(memory_of()), deadline_s)
    hidden = memory_of(state=State.SOFT_DELETED)
    assert await put(store, commit_of(hidden, expected_version=1), deadline_s) == 2
    [row] = await outbox_of(store, deadline_s)
    assert (row.memory_id, row.memory, row.covers) == ("mem_1", None, 2)


async def test_a_late_embedding_reaches_the_outbox_once(store: RecordStore, deadline_s: float) -> None:
    await put(store, commit_of(memory_of()), deadline_s)
    late = commit_of(memory_of(), expected_version=1, embedding=vector_of(1))
    assert await put(store, late, deadline_s) == 2
    assert await put(store, late, deadline_s) == 2
    [row] = await outbox_of(store, deadline_s)
    assert row.covers == 2
    np.testing.assert_array_equal(row.embedding, vector_of(1))


async def test_superseding_frees_the_fact_key_and_keeps_both_in_history(store: RecordStore, deadline_s: float) -> None:
    await put(store, commit_of(memory_of(fact_key="user:city")), deadline_s)
    winner = memory_of("mem_2", fact_key="user:city")
    later = NOW_US + 10
    takeover = commit_of(
        winner,
        now_us=later,
        supersedes=(Supersession("mem_1", 1, NOW_US + 9),),
        conflicts=(ConflictRecord("mem_2", "mem_1", "user:city", 0.95, "newest"),),
        decision=DECISION,
    )
    assert await put(store, takeover, deadline_s) == 3
    loser = await store.get(scope_of(), "mem_1", deadline_s)
    assert loser == memory_of(
        fact_key="user:city",
        state=State.SUPERSEDED,
        version=2,
        update_time_us=later,
        valid_to_us=NOW_US + 9,
        superseded_by_id="mem_2",
    )
    assert await store.find_fact(scope_of(), "", "user:city", deadline_s) == winner
    new, old = await store.list_versions(scope_of(), "mem_1", 0, 10, deadline_s)
    assert (new.memory, new.change) == (loser, Change.SUPERSEDED)
    assert old.memory.state is State.ACTIVE
    rows = await outbox_of(store, deadline_s)
    assert [(row.memory_id, row.memory is None, row.covers) for row in rows] == [
        ("mem_1", True, 2),
        ("mem_2", False, 3),
    ]


@pytest.mark.parametrize(("version", "state", "current"), [(2, State.ACTIVE, 1), (1, State.QUARANTINED, 1)])
async def test_only_an_active_memory_at_the_expected_version_is_superseded(
    store: RecordStore, deadline_s: float, version: int, state: State, current: int
) -> None:
    await put(store, commit_of(memory_of(state=state)), deadline_s)
    takeover = commit_of(memory_of("mem_2"), supersedes=(Supersession("mem_1", version, NOW_US),))
    assert await refused(store, takeover, deadline_s) == StaleVersion("mem_1", version, current)
    assert await store.get(scope_of(), "mem_2", deadline_s) is None


async def test_a_commit_without_memory_logs_only(store: RecordStore, deadline_s: float) -> None:
    position = await put(store, commit_of(memory_of()), deadline_s)
    logged = commit_of(None, decision=DECISION, request=request_of())
    assert await put(store, logged, deadline_s) == position
    assert await store.count(deadline_s) == 1
    assert await store.find_requests(scope_of(), "alice", ["req_1"], NOW_US, deadline_s) == [request_of()]


async def test_a_request_id_is_used_once_by_a_principal_until_it_expires(store: RecordStore, deadline_s: float) -> None:
    await put(store, commit_of(memory_of(), request=request_of()), deadline_s)
    again = commit_of(memory_of("mem_2"), request=request_of())
    assert await refused(store, again, deadline_s) == DuplicateRequest("req_1")
    assert await store.get(scope_of(), "mem_2", deadline_s) is None
    await put(store, commit_of(memory_of("mem_3"), request=replace(request_of(), principal_id="bob")), deadline_s)
    late = commit_of(memory_of("mem_4"), request=request_of(expire_time_us=NOW_US + 5_000), now_us=NOW_US + 1_000)
    await put(store, late, deadline_s)


async def test_a_repeated_request_is_named_before_a_duplicate(store: RecordStore, deadline_s: float) -> None:
    await put(store, commit_of(memory_of(), request=request_of()), deadline_s)
    again = commit_of(memory_of("mem_2", content="mem_1"), request=request_of())
    assert await refused(store, again, deadline_s) == DuplicateRequest("req_1")


async def test_an_expired_answer_is_not_found(store: RecordStore, deadline_s: float) -> None:
    await put(store, commit_of(None, request=request_of()), deadline_s)
    assert await store.find_requests(scope_of(), "alice", ["req_1"], NOW_US + 999, deadline_s) == [request_of()]
    assert await store.find_requests(scope_of(), "alice", ["req_1"], NOW_US + 1_000, deadline_s) == []


async def test_several_answers_are_found_at_once(store: RecordStore, deadline_s: float) -> None:
    requests = [request_of(request_id) for request_id in ("req_1", "req_2", 'req_"3')]
    await store.commit([commit_of(None, request=request) for request in requests], deadline_s)
    asked = ['req_"3', "req_1", "req_none", "req_1"]
    found = await store.find_requests(scope_of(), "alice", asked, NOW_US, deadline_s)
    assert sorted(found, key=lambda item: item.request_id) == sorted(requests[::2], key=lambda item: item.request_id)
    assert await store.find_requests(scope_of(), "alice", [], NOW_US, deadline_s) == []


async def test_an_answer_is_found_by_its_principal_in_its_namespace_alone(
    store: RecordStore, deadline_s: float
) -> None:
    await put(store, commit_of(None, request=request_of()), deadline_s)
    elsewhere = scope_of("acme.hr", shared=("acme.sales",))
    assert await store.find_requests(elsewhere, "alice", ["req_1"], NOW_US, deadline_s) == []
    assert await store.find_requests(scope_of(), "bob", ["req_1"], NOW_US, deadline_s) == []


async def test_a_commit_changes_nothing_outside_its_scope(store: RecordStore, deadline_s: float) -> None:
    await put(store, commit_of(memory_of()), deadline_s)
    other = Scope(("acme.hr",))
    moved = commit_of(memory_of(namespace="acme.hr", version=2), expected_version=1)
    taken = commit_of(memory_of(namespace="acme.hr"))
    unseen = commit_of(
        memory_of("mem_2", namespace="acme.hr"), scope=other, supersedes=(Supersession("mem_1", 1, NOW_US),)
    )
    for commit in (moved, taken, unseen):
        error = await refused(store, commit, deadline_s)
        assert error == StaleVersion("mem_1", commit.expected_version or len(commit.supersedes), 0)
    assert await store.get(SYSTEM_SCOPE, "mem_1", deadline_s) == memory_of()


async def test_a_memory_keeps_its_namespace_whatever_the_scope(store: RecordStore, deadline_s: float) -> None:
    await put(store, commit_of(memory_of()), deadline_s)
    wide = Scope(("acme.sales", "acme.hr"))
    moved = commit_of(memory_of(namespace="acme.hr", version=2), scope=wide, expected_version=1)
    assert await refused(store, moved, deadline_s) == StaleVersion("mem_1", 1, 0)


async def test_a_memory_outside_its_commits_scope_is_a_bug(store: RecordStore, deadline_s: float) -> None:
    with pytest.raises(ValueError, match="outside its commit's scope"):
        await store.commit([commit_of(memory_of(), scope=Scope(("acme.hr",)))], deadline_s)
    with pytest.raises(ValueError, match="version 1 is below 2"):
        await store.commit([commit_of(memory_of(), expected_version=2)], deadline_s)


async def test_restoring_a_memory_meets_the_unique_keys(store: RecordStore, deadline_s: float) -> None:
    await put(store, commit_of(memory_of("mem_1", content="x", state=State.SOFT_DELETED)), deadline_s)
    await put(store, commit_of(memory_of("mem_2", content="x")), deadline_s)
    restored = commit_of(memory_of("mem_1", content="x"), expected_version=1)
    assert await refused(store, restored, deadline_s) == DuplicateContent("mem_2")


async def test_past_its_deadline_a_call_is_unavailable_and_stores_nothing(
    store: RecordStore, deadline_s: float
) -> None:
    past_s = asyncio.get_running_loop().time() - 1
    with pytest.raises(BackendUnavailable) as raised:
        await store.commit([commit_of(memory_of())], past_s)
    assert raised.value.backend == "record_store"
    with pytest.raises(BackendUnavailable):
        await store.get(scope_of(), "mem_1", past_s)
    with pytest.raises(BackendUnavailable):
        await store.count(past_s)
    assert await store.get(scope_of(), "mem_1", deadline_s) is None


async def test_a_closed_store_is_unavailable(store: RecordStore, deadline_s: float) -> None:
    await store.close()
    await store.close()
    with pytest.raises(BackendUnavailable):
        await store.commit([commit_of(memory_of())], deadline_s)
    with pytest.raises(BackendUnavailable):
        await store.get(scope_of(), "mem_1", deadline_s)
    with pytest.raises(BackendUnavailable):
        await store.pending(scope_of(), {}, MODEL, 0, 10, deadline_s)
