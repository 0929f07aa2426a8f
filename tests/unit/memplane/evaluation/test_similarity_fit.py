from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memplane.evaluation.similarity_fit import (
    SAME,
    Pairs,
    fit_similarity,
    isotonic,
    measure_similarity,
    same_cosine,
    spread_knots,
)

KNOTS = (0.3, 0.5, 0.7, 0.9, 0.99)


def pairs(cosines: Sequence[float], same: Sequence[int], shuffled: Sequence[float] = (0.1, 0.2)) -> Pairs:
    return Pairs(np.array(cosines), np.array(same, dtype=np.float64), np.array(same), np.array(shuffled))


def test_neighbours_that_fall_are_pooled() -> None:
    at, values = isotonic(np.array([1.0, 2, 3, 4]), np.array([1.0, 3, 2, 4]))
    assert at.tolist() == [1, 2, 3, 4]
    assert values.tolist() == [1, 2.5, 2.5, 4]


def test_equal_places_count_together() -> None:
    at, values = isotonic(np.array([2.0, 1, 2]), np.array([1.0, 0.5, 0]))
    assert (at.tolist(), values.tolist()) == ([1, 2], [0.5, 0.5])


@given(st.lists(st.tuples(st.floats(-1, 1), st.floats(0, 1)), min_size=1, max_size=40))
def test_an_isotonic_fit_rises_keeps_the_mean_and_changes_nothing_twice(points: list[tuple[float, float]]) -> None:
    places, grades = np.array(points).T
    at, values = isotonic(places, grades)
    assert all(low <= high + 1e-12 for low, high in pairwise(values))
    assert np.interp(places, at, values).mean() == pytest.approx(grades.mean())
    np.testing.assert_allclose(isotonic(at, values)[1], values)


def test_same_begins_where_95_of_100_are_the_same() -> None:
    cosines = np.linspace(0.999, 0.8, 200)
    judged = pairs(cosines.tolist(), [1] * 19 + [0] + [1] * 76 + [0] * 104)
    found = same_cosine([judged])
    assert found is not None
    above = judged.same[judged.cosines >= found]
    assert above.mean() >= SAME
    assert len(above) == 100


@pytest.mark.parametrize("same", [[0] * 40, [1] * 4 + [0] * 36])
def test_without_enough_same_pairs_on_top_nothing_is_the_same(same: list[int]) -> None:
    judged = pairs(np.linspace(0.9, 0.5, 40).tolist(), same)
    assert same_cosine([judged]) is None
    knots = fit_similarity([judged], [judged], KNOTS)
    assert knots[-2] == (0.95, SAME)
    assert measure_similarity(judged, knots)["judged_same"] == 0


@given(st.lists(st.tuples(st.floats(-1, 1), st.booleans()), min_size=5, max_size=60))
@example([(-1.0, True)] * 5)
@example([(0.0, True)] * 5)
@example([(1.0, True)] * 5)
@example([(-1.0, False)] * 5)
def test_knots_rise_from_0_to_1_whatever_the_pairs(points: list[tuple[float, bool]]) -> None:
    judged = pairs([cosine for cosine, _ in points], [int(same) for _, same in points])
    found = same_cosine([judged])
    knots = fit_similarity([judged], [judged], spread_knots(judged, 0.9 if found is None else found))
    assert (knots[0], knots[-1]) == ((-1, 0), (1, 1))
    for (left, low), (right, high) in pairwise(knots):
        assert left < right
        assert low < high


@pytest.mark.parametrize("cosine", [-0.5, 0.0, 0.5])
def test_same_begins_at_the_cosine_that_was_found_whichever_it_is(cosine: float) -> None:
    judged = pairs([cosine] * 5, [1] * 5)
    assert fit_similarity([judged], [judged], KNOTS)[-2] == (cosine, SAME)


def test_a_good_model_is_measured_as_one() -> None:
    generator = np.random.default_rng(1)
    cosines = np.concatenate([generator.normal(0.9, 0.02, 200), generator.normal(0.5, 0.1, 200)])
    judged = pairs(cosines.tolist(), [1] * 200 + [0] * 200, generator.normal(0.2, 0.1, 400).tolist())
    found = same_cosine([judged])
    assert found is not None
    measured = measure_similarity(judged, fit_similarity([judged], [judged], spread_knots(judged, found)))
    assert measured["precision_at_same"] >= 0.95
    assert measured["recall_at_same"] > 0.95
    assert measured["shuffled_median"] < 0.05
