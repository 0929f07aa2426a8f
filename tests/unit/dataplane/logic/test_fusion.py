from collections.abc import Mapping

from dataplane.logic.fusion import fuse
from dataplane.model import Candidate
from memplane.policy.retrieve import FusionPolicy

ZSCORE = FusionPolicy()
RRF = FusionPolicy(method="rrf", vector_weight=1.0, text_weight=1.0)


def candidates(scores: Mapping[str, float]) -> list[Candidate]:
    return [Candidate(memory_id, 1, score) for memory_id, score in scores.items()]


def test_a_memory_that_both_lists_like_comes_first() -> None:
    lists = {
        "vector": candidates({"a": 0.9, "b": 0.8, "c": 0.1}),
        "text": candidates({"d": 9.0, "b": 8.0, "e": 1.0}),
    }
    assert fuse(lists, ZSCORE, 10)[0] == "b"
    assert fuse(lists, RRF, 10)[0] == "b"


def test_the_weights_decide_between_lists() -> None:
    lists = {"vector": candidates({"a": 0.9, "b": 0.1}), "text": candidates({"b": 9.0, "a": 1.0})}
    assert fuse(lists, FusionPolicy(vector_weight=1.0, text_weight=0.5), 2) == ["a", "b"]
    assert fuse(lists, FusionPolicy(vector_weight=0.5, text_weight=1.0), 2) == ["b", "a"]


def test_ties_are_in_order_of_id() -> None:
    flat = {"vector": candidates({"c": 0.5, "a": 0.5, "b": 0.5})}
    assert fuse(flat, ZSCORE, 10) == ["a", "b", "c"]
    assert fuse({"x": candidates({"b": 2.0}), "y": candidates({"a": 1.0})}, RRF, 10) == ["a", "b"]


def test_a_list_of_one_says_only_that_it_found() -> None:
    lists = {"vector": candidates({"a": 0.9, "b": 0.8, "c": 0.1}), "text": candidates({"b": 3.0})}
    assert fuse(lists, ZSCORE, 3)[0] == "b"


def test_a_tiny_spread_is_no_spread() -> None:
    lists = {"vector": candidates({"a": 0.1 + 0.2, "b": 0.3}), "text": candidates({"b": 2.0, "a": 1.0})}
    assert fuse(lists, ZSCORE, 2) == ["b", "a"]


def test_absence_from_a_list_is_worse_than_its_last_place() -> None:
    lists = {"vector": candidates({"b": 0.5, "a": 0.5}), "text": candidates({"x": 3.0, "b": 1.0})}
    fused = fuse(lists, ZSCORE, 3)
    assert fused.index("b") < fused.index("a")


def test_no_more_than_asked_for_and_each_once() -> None:
    lists = {"vector": candidates({"a": 1.0, "b": 0.5}), "text": candidates({"a": 1.0, "c": 0.5})}
    assert len(fuse(lists, ZSCORE, 2)) == 2
    assert sorted(fuse(lists, ZSCORE, 10)) == ["a", "b", "c"]
    assert fuse(lists, ZSCORE, 0) == []


def test_an_id_listed_twice_counts_by_its_best_score() -> None:
    twice = [Candidate("a", 1, 0.1), Candidate("b", 1, 0.5), Candidate("a", 2, 0.9)]
    assert fuse({"vector": twice}, ZSCORE, 2) == ["a", "b"]


def test_empty_lists_give_nothing() -> None:
    assert fuse({"vector": [], "text": []}, ZSCORE, 5) == []
    assert fuse({}, RRF, 5) == []
