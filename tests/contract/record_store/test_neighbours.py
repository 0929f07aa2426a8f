"""What stands beside a memory in its session."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from dataplane.model import SYSTEM_SCOPE, Memory, Pool, Scope, State
from dataplane.ports import RecordStore
from tests.contract.builders import MODEL, NOW_US, commit_of, memory_of, scope_of, vector_of
from tests.contract.record_store.test_reads import put_all


def turn(number: int, session_id: str = "s1", **overrides: Any) -> Memory:
    return memory_of(f"mem_{session_id}_{number}", session_id=session_id, sequence=number, **overrides)


async def beside(store: RecordStore, scope: Scope, of: Sequence[Memory], reach: int, deadline_s: float) -> list[str]:
    found = await store.neighbours(scope, of, reach, MODEL, 0, deadline_s)
    return sorted(row.memory.memory_id for row in found)


async def test_neighbours_are_within_reach_on_either_side_in_order_of_sequence(
    store: RecordStore, deadline_s: float
) -> None:
    turns = [turn(10 * number) for number in range(6)]
    await put_all(store, deadline_s, *reversed(turns), turn(25, "s2"))
    assert await beside(store, scope_of(), [turns[2]], 1, deadline_s) == ["mem_s1_10", "mem_s1_30"]
    assert await beside(store, scope_of(), [turns[0]], 2, deadline_s) == ["mem_s1_10", "mem_s1_20"]
    assert await beside(store, scope_of(), [turns[5]], 2, deadline_s) == ["mem_s1_30", "mem_s1_40"]


async def test_neighbours_of_several_come_once(store: RecordStore, deadline_s: float) -> None:
    turns = [turn(number) for number in range(4)]
    await put_all(store, deadline_s, *turns)
    assert await beside(store, scope_of(), [turns[1], turns[2]], 1, deadline_s) == [f"mem_s1_{n}" for n in range(4)]
    assert await beside(store, scope_of(), [], 1, deadline_s) == []


async def test_turns_without_numbers_follow_one_another_by_time_then_id(store: RecordStore, deadline_s: float) -> None:
    times = {"mem_b": NOW_US, "mem_a": NOW_US + 1, "mem_c": NOW_US + 1, "mem_d": NOW_US + 2}
    turns = {name: memory_of(name, session_id="s1", create_time_us=time_us) for name, time_us in times.items()}
    await put_all(store, deadline_s, *turns.values())
    assert await beside(store, scope_of(), [turns["mem_c"]], 1, deadline_s) == ["mem_a", "mem_d"]
    assert await beside(store, scope_of(), [turns["mem_b"]], 1, deadline_s) == ["mem_a"]


async def test_memories_without_a_session_have_no_neighbours(store: RecordStore, deadline_s: float) -> None:
    loose = [turn(number, "") for number in range(3)]
    await put_all(store, deadline_s, *loose)
    assert await beside(store, scope_of(), loose, 1, deadline_s) == []


async def test_what_is_not_active_is_passed_over(store: RecordStore, deadline_s: float) -> None:
    turns = [turn(number) for number in range(3)]
    await put_all(store, deadline_s, *turns)
    gone = replace(turns[1], version=2, state=State.SOFT_DELETED)
    await store.commit([commit_of(gone, expected_version=1)], deadline_s)
    assert await beside(store, scope_of(), [turns[0]], 1, deadline_s) == ["mem_s1_2"]


@pytest.mark.parametrize(
    ("scope", "seen"),
    [
        (scope_of("acme.sales"), ["mem_PRIVATE", "mem_SHARED"]),
        (scope_of("acme.hr", shared=("acme.sales",)), ["mem_SHARED"]),
        (scope_of("acme.hr"), []),
        (SYSTEM_SCOPE, ["mem_PRIVATE", "mem_SHARED"]),
    ],
)
async def test_neighbours_lie_in_the_scope_and_in_the_namespace_of_the_memory(
    store: RecordStore, deadline_s: float, scope: Scope, seen: list[str]
) -> None:
    asked = memory_of("mem_asked", session_id="s1", sequence=1)
    after = {pool: memory_of(f"mem_{pool.name}", session_id="s1", sequence=1 + pool, pool=pool) for pool in Pool}
    others = [memory_of(f"mem_{n}", namespace="acme.hr", session_id="s1", sequence=n) for n in range(5)]
    await put_all(store, deadline_s, asked, *after.values(), *others)
    assert await beside(store, scope, [asked], 2, deadline_s) == seen


async def test_a_neighbour_comes_with_its_embedding_and_its_sequence(store: RecordStore, deadline_s: float) -> None:
    await put_all(store, deadline_s, turn(1), turn(2))
    [row] = await store.neighbours(scope_of(), [turn(1)], 1, MODEL, 0, deadline_s)
    assert row.memory.sequence == 2
    assert row.embedding is not None
    assert row.embedding.tolist() == vector_of(1).tolist()
