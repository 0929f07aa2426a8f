from dataclasses import replace

import numpy as np
import pytest

from dataplane.changes import (
    AccessRecord,
    ConflictRecord,
    DecisionRecord,
    Erasure,
    RequestRecord,
    RetrievalRecord,
    Supersession,
)
from dataplane.errors import DuplicateRequest, StaleVersion
from dataplane.model import DAY_US, SYSTEM_SCOPE, Action, Pool, Scope, State
from dataplane.ports import RecordStore
from memplane.process import SystemClock
from tests.contract.builders import (
    INDEX,
    MODEL,
    NOW_US,
    commit_of,
    memory_of,
    outbox_of,
    scope_of,
    vector_of,
)


def erasure_of(memory_id: str = "mem_1", expected_version: int = 0, request: RequestRecord | None = None) -> Erasure:
    return Erasure(
        scope=scope_of(),
        memory_id=memory_id,
        now_us=NOW_US,
        principal_id="alice",
        expected_version=expected_version,
        request=request,
    )


def request_of(request_id: str) -> RequestRecord:
    return RequestRecord("alice", request_id, "hash", b"answer", NOW_US + DAY_US)


def access_of(memory_id: str = "mem_1", time_us: int = NOW_US, namespace: str = "acme.sales") -> AccessRecord:
    return AccessRecord(memory_id, namespace, time_us, hit_increment=0.1, max_strength=2.0, monthly_decay=0.3)


async def test_an_erased_memory_is_gone_everywhere(store: RecordStore, deadline_s: float) -> None:
    decision = DecisionRecord(Action.CREATED, 0.9, "v1", b"decision")
    await store.commit([commit_of(memory_of(), embedding=vector_of(1), decision=decision)], deadline_s)
    await store.commit([commit_of(memory_of(content="2", version=2), expected_version=1)], deadline_s)
    await store.record_accesses([access_of()], deadline_s)
    assert await store.erase(erasure_of(), deadline_s) == 3
    assert await store.get(SYSTEM_SCOPE, "mem_1", deadline_s) is None
    assert await store.list_versions(SYSTEM_SCOPE, "mem_1", 0, 10, deadline_s) == []
    assert await store.fetch(SYSTEM_SCOPE, ["mem_1"], MODEL, 0, deadline_s) == []
    assert (await store.pending(SYSTEM_SCOPE, {INDEX: 0}, MODEL, 0, 10, deadline_s)).candidates == ()
    assert (await store.history(SYSTEM_SCOPE, NOW_US, MODEL, 10, deadline_s)).candidates == ()
    assert await store.scan("", 10, deadline_s, MODEL) == []
    assert await store.count(deadline_s) == 0


async def test_erasing_leaves_a_tombstone_and_an_outbox_row(store: RecordStore, deadline_s: float) -> None:
    await store.commit([commit_of(memory_of()), commit_of(memory_of("mem_2"))], deadline_s)
    position = await store.erase(erasure_of(), deadline_s)
    assert await store.last_position(deadline_s) == position
    assert await store.tombstones(["mem_1", "mem_2", "mem_3"], deadline_s) == {"mem_1"}
    row = (await outbox_of(store, deadline_s))[-1]
    assert (row.position, row.memory_id, row.namespace, row.memory) == (position, "mem_1", "acme.sales", None)


async def test_erased_content_may_be_written_anew(store: RecordStore, deadline_s: float) -> None:
    await store.commit([commit_of(memory_of(fact_key="f"))], deadline_s)
    await store.erase(erasure_of(), deadline_s)
    [result] = await store.commit([commit_of(memory_of("mem_2", content="mem_1", fact_key="f"))], deadline_s)
    assert result.error is None


async def test_erasing_empties_the_stored_answers_that_name_the_memory(store: RecordStore, deadline_s: float) -> None:
    takeover = commit_of(
        memory_of("mem_2"),
        supersedes=(Supersession("mem_1", 1, NOW_US),),
        conflicts=(ConflictRecord("mem_2", "mem_1", "f", 0.9, "newest"),),
        request=request_of("taking over"),
    )
    commits = [
        commit_of(memory_of(), request=request_of("writing")),
        takeover,
        commit_of(memory_of("mem_3"), request=request_of("another")),
    ]
    assert [result.error for result in await store.commit(commits, deadline_s)] == [None] * 3
    await store.erase(erasure_of(request=request_of("erasing")), deadline_s)
    found = {}
    for request_id in ("writing", "taking over", "another", "erasing"):
        [answer] = await store.find_requests(scope_of(), "alice", [request_id], NOW_US, deadline_s)
        found[request_id] = answer.response != b""
    assert found == {"writing": False, "taking over": False, "another": True, "erasing": True}


async def test_an_erasure_that_does_not_fit_changes_nothing(store: RecordStore, deadline_s: float) -> None:
    await store.commit([commit_of(memory_of(), request=request_of("used"))], deadline_s)
    elsewhere = replace(erasure_of(), scope=Scope(("acme.hr",), ("acme.sales",)))
    for erasure, current in ((erasure_of("mem_2"), 0), (erasure_of(expected_version=2), 1), (elsewhere, 0)):
        with pytest.raises(StaleVersion) as raised:
            await store.erase(erasure, deadline_s)
        assert raised.value == StaleVersion(erasure.memory_id, erasure.expected_version, current)
    with pytest.raises(DuplicateRequest):
        await store.erase(erasure_of(request=request_of("used")), deadline_s)
    assert await store.get(scope_of(), "mem_1", deadline_s) == memory_of()
    assert await store.tombstones(["mem_1"], deadline_s) == set()
    assert await store.last_position(deadline_s) == 1


async def test_erasing_at_the_expected_version_works_once(store: RecordStore, deadline_s: float) -> None:
    await store.commit([commit_of(memory_of())], deadline_s)
    await store.erase(erasure_of(expected_version=1), deadline_s)
    with pytest.raises(StaleVersion):
        await store.erase(erasure_of(), deadline_s)


async def test_an_embedding_made_later_is_kept_if_its_version_is_there(store: RecordStore, deadline_s: float) -> None:
    await store.commit([commit_of(memory_of()), commit_of(memory_of("mem_2"))], deadline_s)
    await store.erase(erasure_of("mem_2"), deadline_s)
    for memory_id, version in (("mem_1", 1), ("mem_1", 2), ("mem_2", 1)):
        await store.save_embedding(memory_id, version, MODEL, vector_of(version), deadline_s)
    assert await store.last_position(deadline_s) == 3
    [candidate] = await store.fetch(scope_of(), ["mem_1"], MODEL, 0, deadline_s)
    np.testing.assert_array_equal(candidate.embedding, vector_of(1))
    await store.commit([commit_of(memory_of(content="2", version=2), expected_version=1)], deadline_s)
    [candidate] = await store.fetch(scope_of(), ["mem_1"], MODEL, 0, deadline_s)
    assert candidate.embedding is None


async def test_markers_start_at_0_and_may_go_back(store: RecordStore, deadline_s: float) -> None:
    assert await store.marker("vector.purge", deadline_s) == 0
    await store.save_marker("vector.purge", 7, deadline_s)
    await store.save_marker("text.purge", 2, deadline_s)
    await store.save_marker("vector.purge", 3, deadline_s)
    assert await store.marker("vector.purge", deadline_s) == 3
    assert await store.marker("text.purge", deadline_s) == 2


async def test_a_raised_marker_falls_to_none_that_comes_late(store: RecordStore, deadline_s: float) -> None:
    assert await store.raise_marker("beacon:a", 25, 10, deadline_s) == 25
    for late in (25, 29, 20, 19, 0):
        assert await store.raise_marker("beacon:a", late, 10, deadline_s) == 25
    assert await store.raise_marker("beacon:a", 2**62 - 1, 10, deadline_s) == 2**62 - 1
    assert await store.marker("beacon:a", deadline_s) == 2**62 - 1
    assert await store.raise_marker("beacon:b", 0, 10, deadline_s) == 0


async def test_markers_are_stamped_found_when_they_are_stale_and_dropped(store: RecordStore, deadline_s: float) -> None:
    for name in ("heard:b", "heard:a", "heard:%", "heat:c"):
        await store.stamp_marker(name, deadline_s)
    await store.save_marker("heard:old", 5, deadline_s)
    stamped_us = await store.marker("heard:a", deadline_s)
    assert abs(stamped_us - SystemClock().now_us()) < 60_000_000
    assert await store.stale_markers("heard:", 3_600, 10, deadline_s) == ["heard:old"]
    assert await store.stale_markers("heard:", 0, 10, deadline_s) == ["heard:%", "heard:a", "heard:b", "heard:old"]
    assert await store.stale_markers("heard:", 0, 2, deadline_s) == ["heard:%", "heard:a"]
    await store.drop_markers(["heard:a", "heard:none"], deadline_s)
    await store.drop_markers([], deadline_s)
    assert await store.marker("heard:a", deadline_s) == 0
    assert await store.stale_markers("heard:", 0, 10, deadline_s) == ["heard:%", "heard:b", "heard:old"]


async def test_a_scan_pages_through_active_memories_by_id(store: RecordStore, deadline_s: float) -> None:
    memories = [memory_of(f"mem_{n}", namespace=f"acme.n{n}", pool=Pool.PRIVATE) for n in (3, 1, 2)]
    hidden = memory_of("mem_0", state=State.SOFT_DELETED)
    commits = [commit_of(memory, embedding=vector_of(1)) for memory in (*memories, hidden)]
    await store.commit(commits, deadline_s)
    page = await store.scan("", 2, deadline_s, MODEL)
    assert [(row.position, row.memory_id, row.namespace) for row in page] == [
        (0, "mem_1", "acme.n1"),
        (0, "mem_2", "acme.n2"),
    ]
    assert page[0].memory == memories[1]
    assert page[0].embedding is not None
    assert [row.memory_id for row in await store.scan("mem_2", 2, deadline_s, MODEL)] == ["mem_3"]
    assert await store.scan("mem_3", 2, deadline_s, MODEL) == []


async def test_an_access_decays_the_strength_then_raises_it(store: RecordStore, deadline_s: float) -> None:
    await store.commit([commit_of(memory_of())], deadline_s)
    later = NOW_US + 10 * DAY_US
    await store.record_accesses([access_of(time_us=later)], deadline_s)
    memory = await store.get(scope_of(), "mem_1", deadline_s)
    assert memory is not None
    assert memory.strength == pytest.approx(1.0 - 0.3 * 10 / 30 + 0.1)
    assert (memory.strength_time_us, memory.access_count, memory.last_access_time_us) == (later, 1, later)


@pytest.mark.parametrize(
    ("strength", "days", "expected"),
    [(1.95, 0, 2.0), (0.2, 300, 0.1), (5.0, 0, 2.0), (1.0, -3, 1.1)],
)
async def test_strength_stays_between_0_and_its_maximum(
    store: RecordStore, deadline_s: float, strength: float, days: int, expected: float
) -> None:
    await store.commit([commit_of(memory_of(strength=strength))], deadline_s)
    await store.record_accesses([access_of(time_us=NOW_US + days * DAY_US)], deadline_s)
    memory = await store.get(scope_of(), "mem_1", deadline_s)
    assert memory is not None
    assert memory.strength == pytest.approx(expected)
    assert memory.strength_time_us == NOW_US + max(0, days) * DAY_US


async def test_accesses_of_one_batch_add_up(store: RecordStore, deadline_s: float) -> None:
    await store.commit([commit_of(memory_of())], deadline_s)
    await store.record_accesses([access_of(), access_of(time_us=NOW_US + 1), access_of()], deadline_s)
    memory = await store.get(scope_of(), "mem_1", deadline_s)
    assert memory is not None
    assert (memory.access_count, memory.last_access_time_us) == (3, NOW_US + 1)
    assert memory.strength == pytest.approx(1.3)


async def test_several_accesses_in_one_record_count_as_many(store: RecordStore, deadline_s: float) -> None:
    await store.commit([commit_of(memory_of())], deadline_s)
    later = NOW_US + 10 * DAY_US
    await store.record_accesses([replace(access_of(time_us=later), count=3)], deadline_s)
    [candidate] = await store.fetch(scope_of(), ["mem_1"], MODEL, later, deadline_s)
    assert candidate.recent_access_count == 3
    assert (candidate.memory.access_count, candidate.memory.last_access_time_us) == (3, later)
    assert candidate.memory.strength == pytest.approx(1.0 - 0.3 * 10 / 30 + 3 * 0.1)
    await store.record_accesses([replace(access_of(time_us=later), count=50)], deadline_s)
    memory = await store.get(scope_of(), "mem_1", deadline_s)
    assert memory is not None
    assert memory.strength == pytest.approx(2.0)


async def test_accesses_of_unknown_memories_are_passed_over(store: RecordStore, deadline_s: float) -> None:
    await store.commit([commit_of(memory_of())], deadline_s)
    strays = [access_of("mem_none"), access_of(namespace="acme.hr"), access_of()]
    await store.record_accesses(strays, deadline_s)
    await store.record_accesses([], deadline_s)
    memory = await store.get(scope_of(), "mem_1", deadline_s)
    assert memory is not None
    assert memory.access_count == 1
    [candidate] = await store.fetch(scope_of(), ["mem_1"], MODEL, 0, deadline_s)
    assert candidate.recent_access_count == 1


async def test_a_search_may_be_logged_twice(store: RecordStore, deadline_s: float) -> None:
    search = RetrievalRecord("search_1", "acme.sales", "alice", NOW_US, "v1", "hash", (("mem_1", 0.9), ("mem_2", 0.5)))
    await store.record_retrievals([search], deadline_s)
    await store.record_retrievals([search], deadline_s)
    await store.record_retrievals([], deadline_s)


async def test_count_is_of_active_memories_in_all_namespaces(store: RecordStore, deadline_s: float) -> None:
    assert await store.count(deadline_s) == 0
    memories = [memory_of("a"), memory_of("b", namespace="acme.hr"), memory_of("c", state=State.SUPERSEDED)]
    await store.commit([commit_of(memory) for memory in memories], deadline_s)
    assert await store.count(deadline_s) == 2
