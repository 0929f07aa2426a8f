"""The plan of faults is a function of its seed, and keeps its rules."""

from itertools import islice

import pytest

from tests.chaos.plan import LATEST_START_S, Round, rounds

MENU = {
    "kill": ["data-1", "redis"],
    "cut": ["redis", "postgres"],
    "clock": ["data-1"],
    "index_deleted": ["data-1:texts", "data-1:vectors"],
}
DISHES = {(kind, target) for kind, targets in MENU.items() for target in targets}


def first(count: int, seed: int = 1) -> list[Round]:
    return list(islice(rounds(seed, MENU), count))


def test_the_same_seed_gives_the_same_plan_and_another_seed_another() -> None:
    assert first(50) == first(50)
    assert first(50) != first(50, seed=2)


def test_as_many_faults_as_can_happen_have_each_of_them_once() -> None:
    faults = [(fault.kind, fault.target) for each in first(50) for fault in each.faults]
    assert set(faults[: len(DISHES)]) == DISHES


def test_no_two_faults_at_once_hit_one_unit() -> None:
    pairs = [each.faults for each in first(500) if len(each.faults) > 1]
    assert len(pairs) > 100
    assert all(one.unit != other.unit for one, other in pairs)


def test_faults_are_short_and_begin_together() -> None:
    faults = [fault for each in first(500) for fault in each.faults]
    assert all(fault.start_s <= LATEST_START_S and 1 <= fault.duration_s <= 15 for fault in faults)
    assert all(0 <= fault.size < 1 for fault in faults)


def test_twice_the_pace_has_the_same_faults_in_half_the_time() -> None:
    for one, other in zip(first(50), islice(rounds(1, MENU, pace=2.0), 50), strict=True):
        assert [str(fault).split(" for ")[0] for fault in one.faults] == [
            str(fault).split(" for ")[0] for fault in other.faults
        ]
        assert [fault.duration_s for fault in other.faults] == [fault.duration_s / 2 for fault in one.faults]
        assert other.quiet_s == one.quiet_s / 2


def test_an_empty_menu_is_refused() -> None:
    with pytest.raises(ValueError, match="no fault"):
        next(rounds(1, {"kill": []}))
