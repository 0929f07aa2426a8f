"""How old a policy is after a restart, and what a stale one leaves."""

from itertools import pairwise
from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.logic.staleness import STEP_BACK_S, AgeNote, age_at_start_s, stale_action
from memplane.policy.degradation import DegradationPolicy, StaleAction

S = 1_000_000
DAY = 86_400 * S
NOTED = AgeNote(generation=7, age_s=5.0, noted_us=100 * DAY)


def test_the_time_since_the_note_comes_on_top_of_the_noted_age() -> None:
    assert age_at_start_s(NOTED, 7, 0, NOTED.noted_us + 30 * S) == 35.0


def test_a_clock_set_back_by_a_day_leaves_the_age_unknown() -> None:
    assert age_at_start_s(NOTED, 7, 0, NOTED.noted_us - DAY) == inf


def test_a_clock_that_a_time_server_set_back_a_little_takes_nothing_away() -> None:
    assert age_at_start_s(NOTED, 7, 0, NOTED.noted_us - int(STEP_BACK_S) * S) == 5.0


def test_an_unknown_age_stays_unknown_over_restarts() -> None:
    assert age_at_start_s(AgeNote(7, inf, 0), 7, 0, DAY) == inf


@pytest.mark.parametrize("note", [None, AgeNote(6, 0.0, 99 * DAY)], ids=["none", "of another generation"])
def test_without_a_note_the_policy_counts_from_when_it_was_made(note: AgeNote | None) -> None:
    assert age_at_start_s(note, 7, 98 * DAY, 100 * DAY) == 2 * 86_400
    assert age_at_start_s(note, 7, 101 * DAY, 100 * DAY) == inf


@given(
    st.lists(st.tuples(st.floats(0.0, 1e5), st.integers(-2 * DAY, 2 * DAY)), min_size=1, max_size=20),
    st.integers(0, 200 * DAY),
)
def test_an_age_never_shrinks_over_restarts_whatever_the_clock_does(
    runs: list[tuple[float, int]], made_us: int
) -> None:
    note, now_us, ages = AgeNote(7, 0.0, made_us), made_us, [0.0]
    for ran_s, step_us in runs:
        now_us += step_us
        started_s = age_at_start_s(note, 7, made_us, now_us)
        note = AgeNote(7, started_s + ran_s, now_us)
        ages += [started_s, note.age_s]
    assert all(earlier <= later for earlier, later in pairwise(ages))
    assert ages[-1] >= sum(ran_s for ran_s, _ in runs) * 0.999


@pytest.mark.parametrize(
    ("after_s", "age_s", "expected"),
    [(0.0, inf, None), (60.0, 59.9, None), (60.0, 60.0, "deny"), (60.0, inf, "deny")],
)
def test_a_policy_is_stale_from_its_limit_on_and_never_without_one(
    after_s: float, age_s: float, expected: StaleAction | None
) -> None:
    assert stale_action(DegradationPolicy(stale_after_s=after_s, stale_action="deny"), age_s) == expected
