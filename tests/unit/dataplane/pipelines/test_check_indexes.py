"""What a check of the indexes finds, and what it does not take for a fault."""

from dataclasses import replace

import pytest

from dataplane.changes import Erasure
from dataplane.errors import BackendUnavailable
from dataplane.pipelines.check_indexes import MAX_IDS, CheckQuestion
from memplane.errors import PermissionDenied, Unavailable
from memplane.v1 import maintenance_service_pb2 as pb
from tests.contract.builders import NOW_US, scope_of, vector_of
from tests.unit.dataplane.pipelines.upkeep_parts import (
    NEXT,
    OPERATOR,
    TEXT,
    VECTOR,
    Upkeep,
    an_upkeep,
    grants,
    soon,
)

IDS = tuple(f"mem_{1_700_000_000_000 + number:012x}{number:020x}" for number in range(20))
FULL = CheckQuestion(full=True)


async def checked(upkeep: Upkeep, question: CheckQuestion = FULL, name: str = VECTOR) -> pb.IndexCheck:
    """The check of one index."""
    checks = await upkeep.checks.check(question, OPERATOR, soon())
    return next(each for each in checks if each.name == name)


def faults(check: pb.IndexCheck) -> tuple[int, int, int, int]:
    return check.missing_count, check.stale_count, check.different_count, check.orphan_count


async def test_level_indexes_are_consistent_by_sample_and_in_full() -> None:
    upkeep = await an_upkeep(*IDS)
    for question in (FULL, CheckQuestion(), CheckQuestion(sample_size=5)):
        checks = await upkeep.checks.check(question, OPERATOR, soon())
        assert [(each.name, each.active, each.consistent) for each in checks] == [
            (VECTOR, True, True),
            (TEXT, True, True),
        ]
        assert {(each.record_count, each.index_count, each.due_count) for each in checks} == {(20, 20, 0)}
        assert [each.sampled_count for each in checks] == [min(20, question.sample_size)] * 2


async def test_what_is_missing_stale_different_or_orphaned_is_counted_and_named() -> None:
    upkeep = await an_upkeep(*IDS)
    entries = upkeep.index[VECTOR].entries
    del entries[IDS[0]]
    entries[IDS[1]] = replace(entries[IDS[1]], version=7)
    entries[IDS[2]] = replace(entries[IDS[2]], embedding=vector_of(77))
    entries["mem_gone"] = replace(entries[IDS[3]], memory_id="mem_gone")
    check = await checked(upkeep)
    assert faults(check) == (1, 1, 1, 1)
    assert list(check.memory_ids) == [*IDS[:3], "mem_gone"]
    assert not check.consistent
    assert (await checked(upkeep, name=TEXT)).consistent


async def test_other_tokens_at_the_same_version_are_different_content() -> None:
    upkeep = await an_upkeep(*IDS)
    entries = upkeep.index[TEXT].entries
    entries[IDS[4]] = replace(entries[IDS[4]], tokens=("something", "else"))
    assert faults(await checked(upkeep, name=TEXT)) == (0, 0, 1, 0)


async def test_a_sample_leaves_orphans_to_the_counts() -> None:
    upkeep = await an_upkeep(*IDS)
    entries = upkeep.index[VECTOR].entries
    entries["mem_gone"] = replace(entries[IDS[3]], memory_id="mem_gone")
    check = await checked(upkeep, CheckQuestion())
    assert faults(check) == (0, 0, 0, 0)
    assert (check.index_count, check.consistent) == (21, False)


async def test_what_awaits_delivery_is_no_fault() -> None:
    upkeep = await an_upkeep(*IDS)
    await upkeep.remember("mem_new")
    await upkeep.revise(IDS[0])
    erasure = Erasure(scope=scope_of(), memory_id=IDS[1], now_us=NOW_US, principal_id="user")
    await upkeep.store.erase(erasure, soon())
    check = await checked(upkeep)
    assert faults(check) == (0, 0, 0, 0)
    assert (check.due_count, check.consistent) == (3, True)
    await upkeep.project()
    assert (await checked(upkeep)).consistent


async def test_a_change_projected_between_two_looks_is_no_fault() -> None:
    upkeep = await an_upkeep(*IDS)
    index, looks = upkeep.index[VECTOR], 0
    held = index.held

    async def held_after_a_change(*arguments):
        nonlocal looks
        looks += 1
        if looks == 1:
            await upkeep.revise(IDS[5])
            await upkeep.project()
        return await held(*arguments)

    index.held = held_after_a_change  # type: ignore[method-assign]
    assert faults(await checked(upkeep, CheckQuestion())) == (0, 0, 0, 0)
    assert looks > 1


async def test_given_up_changes_are_not_consistent() -> None:
    upkeep = await an_upkeep(*IDS)
    await upkeep.remember("mem_bad")
    await upkeep.give_up(VECTOR)
    check = await checked(upkeep)
    assert (faults(check), check.dead_count, check.consistent) == ((0, 0, 0, 0), 1, False)


async def test_an_index_that_is_being_built_is_told_as_not_active() -> None:
    upkeep = await an_upkeep(*IDS, names=(VECTOR, NEXT, TEXT))
    del upkeep.index[NEXT].entries[IDS[0]]
    check = await checked(upkeep, name=NEXT)
    assert (check.active, check.missing_count) == (False, 1)
    only = await upkeep.checks.check(CheckQuestion(pb.INDEX_KIND_TEXT), OPERATOR, soon())
    assert [each.name for each in only] == [TEXT]


async def test_at_most_100_faulty_memories_are_named() -> None:
    upkeep = await an_upkeep(*(f"mem_{number:032x}" for number in range(150)))
    upkeep.index[VECTOR].entries.clear()
    check = await checked(upkeep)
    assert (check.missing_count, len(check.memory_ids)) == (150, MAX_IDS)


async def test_checking_needs_maintenance_on_every_namespace() -> None:
    upkeep = await an_upkeep(*IDS)
    for caller in (grants("memory.read"), grants("maintenance", namespace="dept")):
        with pytest.raises(PermissionDenied, match="maintenance"):
            await upkeep.checks.check(FULL, caller, soon())


async def test_an_index_that_does_not_answer_is_unavailable() -> None:
    upkeep = await an_upkeep(*IDS)
    upkeep.index[VECTOR].down = 1
    with pytest.raises(Unavailable, match="vector_index"):
        await upkeep.checks.check(FULL, OPERATOR, soon())
    with pytest.raises(BackendUnavailable):
        await upkeep.checks.look(FULL, 0.0)
