"""Dead letters: every one on some page, once, and due again when they are replayed."""

import pytest

from dataplane.pipelines.dead_letters import DeadLetters
from memplane.errors import InvalidField, PermissionDenied
from tests.unit.dataplane.pipelines.upkeep_parts import OPERATOR, TEXT, VECTOR, Upkeep, an_upkeep, grants, soon


async def with_dead_letters() -> Upkeep:
    """Three memories that neither index takes: each change has one position in both."""
    upkeep = await an_upkeep("mem_good")
    await upkeep.remember("mem_1", "mem_2", "mem_3")
    assert await upkeep.give_up(VECTOR) == await upkeep.give_up(TEXT) == 3
    return upkeep


async def test_pages_of_any_size_hold_every_dead_letter_once() -> None:
    upkeep = await with_dead_letters()
    letters = DeadLetters(upkeep.store)
    for page_size in (1, 2, 4, 6, 10):
        found, after = [], (0, "")
        while page := await letters.page("", after, page_size, OPERATOR, soon()):
            found += [(each.position, each.index, each.memory_id) for each in page]
            after = (page[-1].position, page[-1].index)
        ids = [memory_id for memory_id in ("mem_1", "mem_2", "mem_3") for _ in range(2)]
        assert [memory_id for *_, memory_id in found] == ids
        assert found == sorted(found)


async def test_one_kind_of_index_is_listed_alone() -> None:
    upkeep = await with_dead_letters()
    page = await DeadLetters(upkeep.store).page("text_index:", (0, ""), 10, OPERATOR, soon())
    assert {(each.index, each.attempts, each.reason) for each in page} == {(TEXT, 1, "too odd")}


async def test_replayed_ones_are_due_again() -> None:
    upkeep = await with_dead_letters()
    letters = DeadLetters(upkeep.store)
    page = await letters.page("vector_index:", (0, ""), 1, OPERATOR, soon())
    assert await letters.replay(VECTOR, [page[0].position], OPERATOR, soon()) == 1
    assert await letters.replay(VECTOR, [], OPERATOR, soon()) == 2
    assert await letters.replay(VECTOR, [], OPERATOR, soon()) == 0
    await upkeep.project()
    assert len(upkeep.index[VECTOR].entries) == 4
    assert len(await letters.page("", (0, ""), 10, OPERATOR, soon())) == 3


async def test_an_index_that_nobody_follows_is_named_with_those_there_are() -> None:
    upkeep = await with_dead_letters()
    with pytest.raises(InvalidField, match=f"{TEXT}, {VECTOR}"):
        await DeadLetters(upkeep.store).replay("vector_index:typo", [], OPERATOR, soon())


async def test_dead_letters_need_maintenance_on_every_namespace() -> None:
    upkeep = await an_upkeep()
    letters, caller = DeadLetters(upkeep.store), grants("maintenance", namespace="dept")
    with pytest.raises(PermissionDenied):
        await letters.page("", (0, ""), 10, caller, soon())
    with pytest.raises(PermissionDenied):
        await letters.replay(VECTOR, [], caller, soon())
