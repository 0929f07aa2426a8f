import math

import numpy as np
import pytest

from memplane.evaluation.relevance_fit import (
    ODDS,
    STEEPEST,
    Asked,
    FittedCurve,
    NotRising,
    fit_curve,
    measure_relevance,
)


def questions(near: float, far: float, spread: float, count: int = 200) -> list[Asked]:
    generator = np.random.default_rng(7)
    return [Asked(generator.normal(near, spread, 1), generator.normal(far, spread, 9)) for _ in range(count)]


def test_two_bells_give_the_curve_that_theory_says() -> None:
    curve = fit_curve([questions(0.6, 0.4, 0.08, count=4000)])
    assert curve.even_at == pytest.approx(0.5, abs=0.005)
    assert curve.slope == pytest.approx((0.6 - 0.4) / 0.08**2, rel=0.05)  # log odds of two normal densities


def test_sets_weigh_alike_whatever_their_size() -> None:
    small, large = questions(0.7, 0.5, 0.05, count=500), questions(0.5, 0.3, 0.05, count=5000)
    assert fit_curve([small, large]).even_at == pytest.approx(0.5, abs=0.02)


def test_cosines_that_tell_all_apart_still_give_a_curve_that_floats_can_tell_apart() -> None:
    curve = fit_curve([questions(0.8, 0.2, 0.001)])
    assert 0.2 < curve.even_at < 0.8
    assert curve.slope * (1 - curve.even_at) <= STEEPEST * 1.01
    values = 1 / (1 + ODDS * np.exp(-curve.slope * (np.linspace(0, 1, 101) - curve.even_at)))
    assert (np.diff(values) > 0).all()


@pytest.mark.parametrize(("near", "far"), [(0.4, 0.6), (0.2, 0.8)])
def test_relevant_memories_that_lie_farther_are_an_error(near: float, far: float) -> None:
    with pytest.raises(NotRising, match="look at model, prefixes, labels"):
        fit_curve([questions(near, far, 0.05)])


def test_cosines_that_say_nothing_are_an_error() -> None:
    with pytest.raises(NotRising):
        fit_curve([[Asked(np.array([0.5]), np.array([0.5]))] * 30])


def test_even_at_means_one_among_as_many_unrelated_as_the_odds() -> None:
    assert FittedCurve(50, 0.6)(np.array([0.6])) == pytest.approx(1 / (1 + ODDS))
    assert FittedCurve(50, 0.6)(np.array([0.6 + math.log(ODDS) / 50])) == pytest.approx(0.5)


def test_answers_and_others_are_measured_apart() -> None:
    asked = questions(0.8, 0.3, 0.02)
    measured = measure_relevance(asked, fit_curve([asked]))
    assert measured["questions"] == 200
    assert measured["best_relevant"] > 0.9
    assert measured["unrelated_p95"] < 0.1
    assert measured["relevant_cosine"] == pytest.approx(0.8, abs=0.01)
