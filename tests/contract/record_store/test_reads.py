from dataclasses import replace
from typing import Any

import pytest

from dataplane.changes import AccessRecord, Change, Supersession
from dataplane.model import DAY_US, EVERYTHING, SYSTEM_SCOPE, Condition, Kind, Memory, Operator, Pool, Scope, State
from dataplane.ports import ContentKey, ListQuery, RecordStore
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

ACTIVE = (State.ACTIVE,)


async def put_all(store: RecordStore, deadline_s: float, *memories: Memory) -> None:
    results = await store.commit([commit_of(memory, embedding=vector_of(1)) for memory in memories], deadline_s)
    assert [result.error for result in results] == [None] * len(memories)


def key_of(memory: Memory) -> ContentKey:
    return ContentKey(memory.namespace, memory.subject_id, memory.kind, memory.content_hash)


@pytest.fixture
async def tenants(store: RecordStore, deadline_s: float) -> None:
    """A private and a shared memory in each of three namespaces, one a prefix of another's name."""
    memories = [
        memory_of(f"mem_{namespace}_{pool.name}", namespace=f"acme.{namespace}", pool=pool, fact_key=pool.name)
        for namespace in ("sales", "salesforce", "hr")
        for pool in Pool
    ]
    await put_all(store, deadline_s, *memories)


SCOPES = [
    (scope_of("acme.sales"), {"mem_sales_PRIVATE", "mem_sales_SHARED"}),
    (scope_of("acme.sales", shared=("acme.hr",)), {"mem_sales_PRIVATE", "mem_sales_SHARED", "mem_hr_SHARED"}),
    (Scope((), ("acme.hr", "acme.salesforce")), {"mem_hr_SHARED", "mem_salesforce_SHARED"}),
    (scope_of("acme.sales", "acme.hr"), {f"mem_{n}_{p}" for n in ("sales", "hr") for p in ("PRIVATE", "SHARED")}),
    (scope_of("acme"), set()),
    (scope_of("acme.sales' OR 1=1 --"), set()),
    (Scope(()), set()),
    (SYSTEM_SCOPE, {f"mem_{n}_{p}" for n in ("sales", "salesforce", "hr") for p in ("PRIVATE", "SHARED")}),
]


@pytest.mark.usefixtures("tenants")
@pytest.mark.parametrize(("scope", "visible"), SCOPES)
async def test_every_read_stays_within_its_scope(
    store: RecordStore, deadline_s: float, scope: Scope, visible: set[str]
) -> None:
    everything = [row.memory_id for row in await outbox_of(store, deadline_s)]
    fetched = await store.fetch(scope, everything, MODEL, 0, deadline_s)
    pending = await store.pending(scope, {INDEX: 0}, MODEL, 0, 100, deadline_s)
    past = await store.history(scope, NOW_US, MODEL, 100, deadline_s)
    listed = await store.list_memories(scope, ListQuery(ACTIVE, EVERYTHING, 100), deadline_s)
    got = [await store.get(scope, memory_id, deadline_s) for memory_id in everything]
    versions = [await store.get_version(scope, memory_id, 1, deadline_s) for memory_id in everything]
    pages = [await store.list_versions(scope, memory_id, 0, 10, deadline_s) for memory_id in everything]
    assert {candidate.memory.memory_id for candidate in fetched} == visible
    assert {candidate.memory.memory_id for candidate in pending.candidates} == visible
    assert {candidate.memory.memory_id for candidate in past.candidates} == visible
    assert {memory.memory_id for memory in listed} == visible
    assert {memory.memory_id for memory in got if memory} == visible
    assert {version.memory.memory_id for version in versions if version} == visible
    assert {version.memory.memory_id for page in pages for version in page} == visible


@pytest.mark.usefixtures("tenants")
@pytest.mark.parametrize(("scope", "visible"), SCOPES)
async def test_finding_by_key_stays_within_its_scope(
    store: RecordStore, deadline_s: float, scope: Scope, visible: set[str]
) -> None:
    for namespace in ("sales", "salesforce", "hr"):
        memory = memory_of(f"mem_{namespace}_SHARED")
        found = await store.find_same_content(scope, "", Kind.FACT, memory.content_hash, deadline_s)
        assert bool(found) == (memory.memory_id in visible)
    fact = await store.find_fact(scope, "", "PRIVATE", deadline_s)
    assert (fact is not None) == any(memory_id.endswith("PRIVATE") for memory_id in visible)


async def test_what_was_private_is_not_shown_to_readers_of_the_shared(store: RecordStore, deadline_s: float) -> None:
    await put_all(store, deadline_s, memory_of())
    shared = memory_of(version=2, pool=Pool.SHARED)
    await store.commit([commit_of(shared, expected_version=1, now_us=NOW_US + 1)], deadline_s)
    reader = Scope((), ("acme.sales",))
    assert await store.get(reader, "mem_1", deadline_s) == shared
    assert [v.memory.version for v in await store.list_versions(reader, "mem_1", 0, 10, deadline_s)] == [2]
    assert await store.get_version(reader, "mem_1", 1, deadline_s) is None
    assert (await store.history(reader, NOW_US, MODEL, 10, deadline_s)).candidates == ()


async def test_versions_are_listed_newest_first_in_pages(store: RecordStore, deadline_s: float) -> None:
    await put_all(store, deadline_s, memory_of())
    for version in range(2, 6):
        update = commit_of(memory_of(content=str(version), version=version), expected_version=version - 1)
        await store.commit([update], deadline_s)
    page = await store.list_versions(scope_of(), "mem_1", 0, 2, deadline_s)
    assert [item.memory.version for item in page] == [5, 4]
    page = await store.list_versions(scope_of(), "mem_1", 4, 10, deadline_s)
    assert [item.memory.version for item in page] == [3, 2, 1]
    second = await store.get_version(scope_of(), "mem_1", 2, deadline_s)
    assert second is not None
    assert second.memory == memory_of(content="2", version=2)
    assert await store.get_version(scope_of(), "mem_1", 6, deadline_s) is None


async def test_memories_are_listed_newest_first_with_ties_by_id(store: RecordStore, deadline_s: float) -> None:
    times = {"mem_a": 5, "mem_b": 7, "mem_c": 7, "mem_d": 6}
    await put_all(store, deadline_s, *(memory_of(key, create_time_us=time) for key, time in times.items()))
    seen: list[str] = []
    after: tuple[int, str] | None = None
    while page := await store.list_memories(scope_of(), ListQuery(ACTIVE, EVERYTHING, 3, after), deadline_s):
        seen += [memory.memory_id for memory in page]
        after = (page[-1].create_time_us, page[-1].memory_id)
    assert seen == ["mem_c", "mem_b", "mem_d", "mem_a"]


async def test_listing_asks_for_states(store: RecordStore, deadline_s: float) -> None:
    await put_all(store, deadline_s, *(memory_of(f"mem_{state}", state=state) for state in State))
    query = ListQuery((State.QUARANTINED, State.SUPERSEDED), EVERYTHING, 10)
    listed = await store.list_memories(scope_of(), query, deadline_s)
    assert {memory.state for memory in listed} == {State.QUARANTINED, State.SUPERSEDED}


async def test_duplicates_and_facts_are_found_among_active_memories_only(store: RecordStore, deadline_s: float) -> None:
    hidden = memory_of(state=State.SOFT_DELETED, fact_key="f", subject_id="bob")
    await put_all(store, deadline_s, hidden, memory_of("mem_2", subject_id="bob"))
    assert await store.find_same_content(scope_of(), "bob", Kind.FACT, hidden.content_hash, deadline_s) == []
    assert await store.find_fact(scope_of(), "bob", "f", deadline_s) is None
    assert await store.find_fact(scope_of(), "bob", "", deadline_s) is None
    twin = memory_of("mem_2")
    assert await store.find_same_content(scope_of(), "", Kind.FACT, twin.content_hash, deadline_s) == []
    assert await store.find_same_content(scope_of(), "bob", Kind.EPISODE, twin.content_hash, deadline_s) == []
    assert len(await store.find_same_content(scope_of(), "bob", Kind.FACT, twin.content_hash, deadline_s)) == 1


async def test_contents_that_are_there_are_told_apart_by_all_parts_of_the_key(
    store: RecordStore, deadline_s: float
) -> None:
    hidden = memory_of("mem_1", state=State.SUPERSEDED)
    shared = memory_of("mem_2", namespace="acme.hr", pool=Pool.SHARED, subject_id="bob")
    await put_all(store, deadline_s, hidden, shared, memory_of("mem_3"), memory_of("mem_4", namespace="acme.hr"))
    keys = {name: key_of(memory) for name, memory in {"1": hidden, "2": shared, "3": memory_of("mem_3")}.items()}
    keys["4"] = key_of(memory_of("mem_4", namespace="acme.hr"))
    others = [replace(keys["3"], **change) for change in ({"subject_id": "bob"}, {"kind": Kind.EPISODE})]
    others += [replace(keys["3"], namespace="acme.hr"), replace(keys["3"], content_hash="none")]
    asked = [*keys.values(), *others, keys["3"]]
    assert await store.find_contents(scope_of(), asked, deadline_s) == {keys["3"]}
    both = Scope(("acme.sales", "acme.hr"))
    assert await store.find_contents(both, asked, deadline_s) == {keys["2"], keys["3"], keys["4"]}
    readers = scope_of(shared=("acme.hr",))
    assert await store.find_contents(readers, asked, deadline_s) == {keys["2"], keys["3"]}
    assert await store.find_contents(scope_of(), [], deadline_s) == set()


async def test_equal_content_of_other_statements_is_kept_beside_each_other(
    store: RecordStore, deadline_s: float
) -> None:
    memories = [memory_of(f"mem_{n}", content="same", statement_key=f"s{n}") for n in (1, 2)]
    await put_all(store, deadline_s, *memories)
    found = await store.find_same_content(scope_of(), "", Kind.FACT, memories[0].content_hash, deadline_s)
    assert [memory.memory_id for memory in found] == ["mem_1", "mem_2"]


async def test_fetch_returns_each_known_id_once_in_any_state(store: RecordStore, deadline_s: float) -> None:
    await put_all(store, deadline_s, memory_of(), memory_of("mem_2", state=State.QUARANTINED))
    wanted = ["mem_2", "mem_1", "mem_1", "mem_none", 'mem_"', ""]
    found = await store.fetch(scope_of(), wanted, MODEL, 0, deadline_s)
    assert sorted(candidate.memory.memory_id for candidate in found) == ["mem_1", "mem_2"]
    assert await store.fetch(scope_of(), [], MODEL, 0, deadline_s) == []


async def test_embeddings_of_another_model_are_not_returned(store: RecordStore, deadline_s: float) -> None:
    await put_all(store, deadline_s, memory_of())
    [candidate] = await store.fetch(scope_of(), ["mem_1"], "other-model", 0, deadline_s)
    assert candidate.embedding is None


async def test_recent_accesses_are_summed_from_a_day_on(store: RecordStore, deadline_s: float) -> None:
    await put_all(store, deadline_s, memory_of())
    days = [NOW_US - 40 * DAY_US, NOW_US - 2 * DAY_US, NOW_US, NOW_US]
    accesses = [AccessRecord("mem_1", "acme.sales", time_us, 0.1, 2.0, 0.1) for time_us in days]
    await store.record_accesses(accesses, deadline_s)
    for since_us, count in ((0, 4), (NOW_US - 30 * DAY_US, 3), (NOW_US, 2), (NOW_US + DAY_US, 0)):
        [candidate] = await store.fetch(scope_of(), ["mem_1"], MODEL, since_us, deadline_s)
        assert candidate.recent_access_count == count
        [candidate] = (await store.pending(scope_of(), {INDEX: 0}, MODEL, since_us, 10, deadline_s)).candidates
        assert candidate.recent_access_count == count


async def use(store: RecordStore, deadline_s: float, memory_id: str, times: int, **other: Any) -> None:
    values = {"namespace": "acme.sales", "time_us": NOW_US, **other}
    access = AccessRecord(memory_id, values["namespace"], values["time_us"], 0.1, 2.0, 0.1, times)
    await store.record_accesses([access], deadline_s)


async def test_the_most_used_lately_come_first_and_the_unused_not_at_all(store: RecordStore, deadline_s: float) -> None:
    await put_all(store, deadline_s, *(memory_of(f"mem_{n}", session_id=f"s{n % 2}") for n in range(6)))
    for n in (1, 2, 3):
        await use(store, deadline_s, f"mem_{n}", n)
    await use(store, deadline_s, "mem_1", 4, time_us=NOW_US - 2 * DAY_US)
    await use(store, deadline_s, "mem_4", 99, time_us=NOW_US - 40 * DAY_US)
    since_us = NOW_US - 30 * DAY_US
    assert await store.most_used(scope_of(), EVERYTHING, since_us, 10, deadline_s) == ["mem_1", "mem_3", "mem_2"]
    assert await store.most_used(scope_of(), EVERYTHING, since_us, 2, deadline_s) == ["mem_1", "mem_3"]
    assert await store.most_used(scope_of(), EVERYTHING, NOW_US, 1, deadline_s) == ["mem_3"]
    odd = Condition("session_id", Operator.EQUALS, ("s1",))
    assert await store.most_used(scope_of(), odd, since_us, 10, deadline_s) == ["mem_1", "mem_3"]
    assert await store.most_used(scope_of(), EVERYTHING, NOW_US + DAY_US, 10, deadline_s) == []


@pytest.mark.usefixtures("tenants")
@pytest.mark.parametrize(("scope", "visible"), SCOPES)
async def test_the_most_used_lie_in_the_scope_and_are_active(
    store: RecordStore, deadline_s: float, scope: Scope, visible: set[str]
) -> None:
    for name in ("sales", "salesforce", "hr"):
        for pool in Pool:
            await use(store, deadline_s, f"mem_{name}_{pool.name}", 1, namespace=f"acme.{name}")
    assert set(await store.most_used(scope, EVERYTHING, 0, 10, deadline_s)) == visible
    hidden = memory_of("mem_sales_PRIVATE", version=2, fact_key="PRIVATE", state=State.SOFT_DELETED)
    await store.commit([commit_of(hidden, expected_version=1)], deadline_s)
    assert set(await store.most_used(scope, EVERYTHING, 0, 10, deadline_s)) == visible - {"mem_sales_PRIVATE"}


async def test_pending_is_newest_first_each_once_and_says_when_cut(store: RecordStore, deadline_s: float) -> None:
    await put_all(store, deadline_s, *(memory_of(f"mem_{n}") for n in range(4)))
    again = memory_of("mem_1", content="new", version=2)
    await store.commit([commit_of(again, expected_version=1)], deadline_s)
    whole = await store.pending(scope_of(), {INDEX: 0}, MODEL, 0, 4, deadline_s)
    assert [c.memory.memory_id for c in whole.candidates] == ["mem_1", "mem_3", "mem_2", "mem_0"]
    assert not whole.truncated
    cut = await store.pending(scope_of(), {INDEX: 0}, MODEL, 0, 2, deadline_s)
    assert ([c.memory.memory_id for c in cut.candidates], cut.truncated) == (["mem_1", "mem_3"], True)
    rest = await store.pending(scope_of(), {INDEX: 4}, MODEL, 0, 10, deadline_s)
    assert [c.memory.memory_id for c in rest.candidates] == ["mem_1"]
    assert (await store.pending(scope_of(), {INDEX: 5}, MODEL, 0, 10, deadline_s)).candidates == ()


async def test_pending_leaves_out_what_is_not_active(store: RecordStore, deadline_s: float) -> None:
    await put_all(store, deadline_s, *(memory_of(f"mem_{state}", state=state) for state in State))
    pending = await store.pending(scope_of(), {INDEX: 0}, MODEL, 0, 10, deadline_s)
    assert [c.memory.state for c in pending.candidates] == [State.ACTIVE]
    assert pending.candidates[0].embedding is not None


async def test_history_shows_what_was_believed_then(store: RecordStore, deadline_s: float) -> None:
    await put_all(store, deadline_s, memory_of(fact_key="f"))
    takeover = commit_of(
        memory_of("mem_2", fact_key="f"),
        now_us=NOW_US + 10,
        supersedes=(Supersession("mem_1", 1, NOW_US + 10),),
        embedding=vector_of(2),
    )
    update = commit_of(
        memory_of("mem_2", content="two", fact_key="f", version=2),
        expected_version=1,
        change=Change.UPDATED,
        now_us=NOW_US + 20,
    )
    await store.commit([takeover, update], deadline_s)
    believed = {}
    for after_us in (-1, 0, 9, 10, 20, 99):
        past = await store.history(scope_of(), NOW_US + after_us, MODEL, 10, deadline_s)
        believed[after_us] = [(c.memory.memory_id, c.memory.version, c.embedding is not None) for c in past.candidates]
    first, second, third = [("mem_1", 1, True)], [("mem_2", 1, True)], [("mem_2", 2, False)]
    assert believed == {-1: [], 0: first, 9: first, 10: second, 20: third, 99: third}


@pytest.mark.parametrize("state", [State.SOFT_DELETED, State.QUARANTINED])
async def test_history_leaves_out_what_was_withdrawn_since(store: RecordStore, deadline_s: float, state: State) -> None:
    await put_all(store, deadline_s, memory_of())
    withdrawn = commit_of(memory_of(version=2, state=state), expected_version=1, now_us=NOW_US + 5)
    assert (await store.commit([withdrawn], deadline_s))[0].error is None
    assert (await store.history(scope_of(), NOW_US + 1, MODEL, 10, deadline_s)).candidates == ()


async def test_history_is_newest_first_and_says_when_cut(store: RecordStore, deadline_s: float) -> None:
    for n in range(3):
        await store.commit([commit_of(memory_of(f"mem_{n}"), now_us=NOW_US + n)], deadline_s)
    past = await store.history(scope_of(), NOW_US + 9, MODEL, 2, deadline_s)
    assert ([c.memory.memory_id for c in past.candidates], past.truncated) == (["mem_2", "mem_1"], True)
    assert {c.recent_access_count for c in past.candidates} == {0}
