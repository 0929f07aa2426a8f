import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memplane.evaluation.metrics import Scores, hit, mean, ndcg, recall, reciprocal_rank, score, without_optional

IDS = st.sampled_from("abcdefghij")
EVIDENCE = st.lists(st.sets(IDS, min_size=1, max_size=3), min_size=1, max_size=4)


def test_recall_counts_pieces_not_ids():
    evidence = [{"a", "b"}, {"c"}]
    assert recall(["a", "b", "x"], evidence, 3) == 0.5
    assert recall(["x", "c", "b"], evidence, 3) == 1.0
    assert recall(["x", "c", "b"], evidence, 2) == 0.5


def test_hit_is_any_piece():
    assert hit(["x", "c"], [{"a"}, {"c"}], 2) == 1.0
    assert hit(["x", "c"], [{"a"}, {"c"}], 1) == 0.0


def test_ndcg_gains_once_for_each_piece():
    evidence = [{"a", "b"}, {"c"}]
    gained = 1 / math.log2(2) + 1 / math.log2(4)  # a at place 1; b states nothing new; c at place 3
    ideal = 1 / math.log2(2) + 1 / math.log2(3)
    assert ndcg(["a", "b", "c"], evidence, 10) == pytest.approx(gained / ideal)


def test_ndcg_of_many_pieces_is_held_against_as_many_places_as_there_are():
    evidence = [{str(index)} for index in range(15)]
    assert ndcg([str(index) for index in range(15)], evidence, 10) == pytest.approx(1.0)


def test_ndcg_gains_one_for_an_id_that_states_two_pieces():
    assert ndcg(["a"], [{"a"}, {"a"}], 10) == pytest.approx(1 / (1 + 1 / math.log2(3)))


def test_reciprocal_rank_ends_at_k():
    ranked = [*(f"x{index}" for index in range(20)), "a"]
    assert reciprocal_rank(ranked, [{"a"}], 20) == 0.0
    assert reciprocal_rank(ranked[1:], [{"a"}], 20) == pytest.approx(1 / 20)


def test_optional_ids_take_no_place():
    assert score(["o", "a"], [["a"]], ["o"]).mrr == 1.0
    assert without_optional(["o", "a"], [["a"], ["o"]], ["o"]) == ["o", "a"]


def test_the_mean_is_over_questions():
    zero = Scores(0, 0, 0, 0, 0, 0)
    assert mean([score(["a"], [["a"]]), zero]) == Scores(0.5, 0.5, 0.5, 0.5, 0.5, 0.5)
    assert mean([]) == zero


@given(st.lists(IDS, unique=True), EVIDENCE)
def test_every_metric_lies_between_zero_and_one_and_recall_grows_with_k(ranked, evidence):
    found = score(ranked, evidence)
    for name in Scores.__dataclass_fields__:
        assert 0.0 <= getattr(found, name) <= 1.0 + 1e-9
    assert found.recall_at_5 <= found.recall_at_10 <= found.recall_at_20
    assert (found.hit_at_10 > 0) == (found.recall_at_10 > 0) == (found.ndcg_at_10 > 0)
