import json
from importlib import resources

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.adapters.embedder.calibration import Calibration

SHIPPED = "calibration_e5_small_q4.json"


def test_is_linear_between_knots_and_flat_beyond() -> None:
    calibration = Calibration((0.0, 0.5, 1.0), (0.0, 0.2, 1.0))
    assert [calibration(cosine) for cosine in (-1, 0.25, 0.5, 0.75, 2)] == pytest.approx([0, 0.1, 0.2, 0.6, 1])
    assert calibration(float("nan")) == 0


@pytest.mark.parametrize(
    ("cosines", "similarities"), [((0, 0), (0, 1)), ((0, 1), (1, 0)), ((0, 1), (0, 0.5, 1)), ((0,), (0,))]
)
def test_knots_that_do_not_rise_are_refused(cosines: tuple[float, ...], similarities: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="knots"):
        Calibration(cosines, similarities)


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_the_shipped_map_keeps_order(one: float, other: float) -> None:
    calibration = Calibration.load(SHIPPED)
    low, high = sorted((one, other))
    assert 0 <= calibration(low) <= calibration(high) <= 1


def test_the_shipped_map_reaches_from_0_to_1() -> None:
    calibration = Calibration.load(SHIPPED)
    assert (calibration(-1), calibration(1)) == (0, 1)


def test_the_shipped_map_holds_its_promise_on_held_out_pairs() -> None:
    shipped = json.loads(resources.files("dataplane.adapters.embedder").joinpath(SHIPPED).read_text(encoding="utf-8"))
    for name in ("stsb_en", "stsb_zh", "lcqmc_zh"):
        assert shipped["held_out"][name]["precision_at_same"] >= 0.95, name
        assert shipped["held_out"][name]["shuffled_median"] <= 0.21, name
    assert shipped["fitted"]
    assert shipped["data"]
