import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.logic.pairs.features import FEATURES, features
from dataplane.logic.pairs.model import CLASSES, PairModel, UnusableModel
from dataplane.logic.pairs.reading import read
from dataplane.pair_model import shipped_pair_model

LEAF = {"feature": [-1], "threshold": [0.5], "left": [0], "right": [0]}
SPLIT = {"feature": [0, -1, -1], "threshold": [0.5, -1.0, 2.0], "left": [1, 0, 0], "right": [2, 0, 0]}
MODEL = shipped_pair_model()


def stored(**changes: Any) -> bytes:
    model = {"name": "m", "features": FEATURES, "classes": CLASSES, "priors": [0, 0, 0], "trees": [[SPLIT], [LEAF], []]}
    return json.dumps({**model, **changes}).encode()


def test_scores_are_the_softmax_of_priors_and_leaves() -> None:
    model = PairModel.from_json(stored())
    low, high = [0.5, *[0.0] * (len(FEATURES) - 1)], [0.6, *[0.0] * (len(FEATURES) - 1)]
    assert model.scores(low).duplicate == pytest.approx(0.1220, abs=1e-4)
    assert model.scores(high).duplicate == pytest.approx(0.7361, abs=1e-4)
    assert model.scores(high).conflict == pytest.approx(0.1643, abs=1e-4)


@pytest.mark.parametrize(
    "changes",
    [
        {"features": ["similarity"]},
        {"classes": ["duplicate"]},
        {"priors": [0, 0]},
        {"trees": [[], []]},
        {"trees": [[{**LEAF, "left": []}], [], []]},
        {"trees": [[{**SPLIT, "left": [0, 0, 0]}], [], []]},
        {"trees": [[{**SPLIT, "right": [9, 0, 0]}], [], []]},
        {"trees": [[{**SPLIT, "feature": [999, -1, -1]}], [], []]},
        {"priors": ["x", 0, 0]},
        {"trees": None},
    ],
)
def test_a_spoilt_model_is_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(UnusableModel):
        PairModel.from_json(stored(**changes))


def test_what_is_no_json_is_refused() -> None:
    with pytest.raises(UnusableModel):
        PairModel.from_json(b"{")


WORDS = st.sampled_from(
    (
        "I",
        "my sister",
        "Anna",
        "lives in",
        "Oslo",
        "not",
        "5",
        "tea",
        "我",
        "妹妹",
        "不",
        "喜欢",
        "茶",
        "3月5号",
        "?",
        "US",
    )
)
TEXTS = st.one_of(st.text(max_size=60), st.lists(WORDS, max_size=9).map(" ".join))


@settings(max_examples=150, deadline=None)
@given(TEXTS, TEXTS, st.floats(0, 1))
def test_a_pairs_scores_do_not_depend_on_its_order_and_lie_in_0_to_1(one: str, other: str, similarity: float) -> None:
    a, b = read(one), read(other)
    found = features(a, b, similarity)
    assert found == features(b, a, similarity)
    assert len(found) == len(FEATURES)
    assert all(0 <= value <= 1 for value in found)
    scores = MODEL.scores(found)
    assert 0 <= scores.duplicate <= 1
    assert 0 <= scores.conflict <= 1
    assert scores.duplicate + scores.conflict <= 1 + 1e-9
