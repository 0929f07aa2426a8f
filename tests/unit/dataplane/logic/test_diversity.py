import numpy as np
import pytest

from dataplane.logic.diversity import diverse
from dataplane.model import Vector


def unit(*values: float) -> Vector:
    vector = np.asarray(values, dtype=np.float32)
    return vector / np.linalg.norm(vector)


ONE, SAME, OTHER = unit(1, 0), unit(1, 0.01), unit(0, 1)


def order(scores: list[float], embeddings: list[Vector | None], weight: float, top_k: int = 10) -> list[int]:
    return diverse(scores, embeddings, lambda cosine: max(0.0, cosine), weight, top_k)


def test_a_repeat_goes_behind_what_is_new() -> None:
    assert order([0.9, 0.8, 0.7], [ONE, SAME, OTHER], 0.5) == [0, 2, 1]


def test_a_better_repeat_stays_before_what_is_far_worse() -> None:
    assert order([0.9, 0.8, 0.3], [ONE, SAME, OTHER], 0.5) == [0, 1, 2]


def test_without_weight_or_likeness_the_order_stands() -> None:
    assert order([0.9, 0.8, 0.7], [ONE, SAME, OTHER], 0.0) == [0, 1, 2]
    assert order([0.9, 0.8], [ONE, OTHER], 1.0) == [0, 1]


def test_what_has_no_embedding_is_like_none() -> None:
    assert order([0.9, 0.8, 0.7], [None, SAME, None], 1.0) == [0, 1, 2]


@pytest.mark.parametrize("count", [0, 1, 5])
def test_beyond_the_top_the_rest_follows_in_order(count: int) -> None:
    scores = [1.0 - n / 10 for n in range(count)]
    assert order(scores, [ONE] * count, 0.5, top_k=1) == list(range(count))
