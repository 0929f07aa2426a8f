from dataclasses import replace

import pytest

from dataplane.logic.profiles.relevance import by_meaning, own_relevance, relevance
from dataplane.logic.profiles.signals import Signals
from memplane.policy.retrieve import Weights

SIGNALS = Signals(0.8, 0.4, 0.0, 0.0, 0.0, 0.0, 1.0)
WEIGHTS = Weights(vector=0.3, text=0.1)


def test_own_relevance_is_the_weighted_mean_of_meaning_and_words() -> None:
    assert own_relevance(0.8, 0.4, WEIGHTS) == pytest.approx(0.7)
    assert own_relevance(0.2, 0.4, Weights(vector=0.0, text=0.0)) == 0.4
    assert relevance(SIGNALS, WEIGHTS) == pytest.approx(0.7)


def test_neighbours_lift_what_is_left_to_certainty() -> None:
    assert relevance(replace(SIGNALS, beside=0.5), WEIGHTS) == pytest.approx(0.85)


@pytest.mark.parametrize(("odds", "expected"), [(1.0, 0.7), (2.0, 1.4 / 1.7), (0.5, 0.35 / 0.65)])
def test_odds_multiply_the_odds(odds: float, expected: float) -> None:
    assert relevance(replace(SIGNALS, odds=odds), WEIGHTS) == pytest.approx(expected)


@pytest.mark.parametrize("odds", [0.01, 1.0, 100.0])
def test_what_is_certain_or_says_nothing_stays_so(odds: float) -> None:
    nothing, certain = Signals(0, 0, 0, 0, 0, 0, 1, odds=odds), Signals(1, 1, 0, 0, 0, 0, 1, odds=odds)
    assert relevance(nothing, WEIGHTS) == 0.0
    assert relevance(certain, WEIGHTS) == pytest.approx(1.0)


def test_words_give_their_weight_to_meaning() -> None:
    moved = by_meaning(Weights(vector=0.4, text=0.6), 0.5)
    assert (moved.vector, moved.text) == pytest.approx((0.7, 0.3))
