import json
from importlib import resources
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.adapters.embedder.relevance import Curve, Relevance

SHIPPED = "relevance_e5_small_q4.json"
ENGLISH, CHINESE = "Where does Olga volunteer?", "奥尔加在哪里做志愿者?"
COSINES = [float(np.float32(cosine)) for cosine in np.linspace(-1, 1, 20_001)]


def test_at_even_odds_the_middle_is_where_it_was_fitted() -> None:
    assert Curve(50.0, 0.8, 1.0)(0.8) == 0.5
    assert Curve(50.0, 0.8, 9.0)(0.8) == pytest.approx(0.1)


@pytest.mark.parametrize("values", [(0.0, 0.8, 1.0), (50.0, 1.5, 1.0), (50.0, 0.8, 0.5), (float("nan"), 0.8, 1.0)])
def test_a_curve_that_does_not_rise_is_refused(values: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="rising"):
        Curve(*values)


def test_what_is_no_cosine_is_taken_as_the_nearest_or_as_unrelated() -> None:
    curve = Curve(50.0, 0.8, 10.0)
    assert curve(1.0001) == curve(1.0)
    assert curve(float("nan")) == curve(-1.1) == 0.0


@pytest.mark.parametrize("question", [ENGLISH, CHINESE])
def test_the_shipped_curves_rise_strictly_from_0_to_1(question: str) -> None:
    values = Relevance.load(SHIPPED)(question, COSINES)
    assert all(low < high for low, high in pairwise(values))
    assert values[0] == pytest.approx(0.0, abs=1e-9)
    assert values[-1] == pytest.approx(1.0, abs=1e-3)


@given(st.floats(-1, 1), st.floats(-1, 1), st.sampled_from([ENGLISH, CHINESE]))
def test_the_shipped_curves_keep_order_within_0_and_1(one: float, other: float, question: str) -> None:
    low, high = Relevance.load(SHIPPED)(question, sorted((one, other)))
    assert 0 <= low <= high <= 1


@pytest.mark.parametrize(("question", "answers"), [(ENGLISH, (0.80, 0.86)), (CHINESE, (0.88, 0.93))])
def test_answers_that_differ_in_cosine_differ_visibly(question: str, answers: tuple[float, float]) -> None:
    fair, clear = Relevance.load(SHIPPED)(question, answers)
    assert clear - fair > 0.4
    assert clear < 0.99


def test_one_cosine_says_less_in_chinese_than_in_english() -> None:
    relevance = Relevance.load(SHIPPED)
    assert relevance(CHINESE, [0.85])[0] < 0.2
    assert relevance(ENGLISH, [0.85])[0] > 0.8


def test_the_shipped_curves_tell_answers_from_the_unrelated_on_every_set() -> None:
    shipped = json.loads(resources.files("dataplane.adapters.embedder").joinpath(SHIPPED).read_text(encoding="utf-8"))
    assert shipped["fitted"]
    for name, measured in shipped["sets"].items():
        assert measured["unrelated"] <= 0.15, name
        assert measured["best_relevant"] >= 5 * measured["unrelated"], name
