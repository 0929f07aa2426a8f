"""The slope of memory is that of the processes, not of their restarts."""

import pytest

from tests.chaos.footprint import WARM_UP, Footprint, slope


def test_the_slope_is_taken_within_each_process() -> None:
    assert slope([[(0, 100.0), (10, 110.0)], [(20, 50.0), (30, 60.0)]]) == pytest.approx(1.0)


def test_no_slope_where_nothing_was_done() -> None:
    assert slope([[(5, 100.0), (5, 110.0)]]) == 0.0


def test_the_start_of_a_process_is_left_out() -> None:
    start = [(number, 10.0 * number) for number in range(WARM_UP)]
    then = [(WARM_UP + number, 300.0) for number in range(10)]
    footprint = Footprint({("data-1", 1): start + then, ("data-2", 2): start})
    assert footprint.slopes() == {"data-1": pytest.approx(0.0)}
    assert footprint.peak_mib() == 300.0
