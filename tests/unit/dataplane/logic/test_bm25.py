import math
from itertools import pairwise

import pytest

from dataplane.logic.bm25 import K1, TYPICAL_LENGTH, inverse_frequency, term_weights


def test_repeats_count_less_each_and_never_more_than_the_bound() -> None:
    padding = {f"w{number}": 1 for number in range(TYPICAL_LENGTH - 1)}
    once = term_weights({"a": 1, **padding})["a"]
    assert once == pytest.approx(1.0)
    counts = [term_weights({"a": count})["a"] for count in (1, 2, 4, 8)]
    steps = [late - early for early, late in pairwise(counts)]
    assert counts == sorted(counts)
    assert steps[0] > steps[1] / 2
    assert term_weights({"a": 10_000, "b": 1})["a"] < K1 + 1


def test_longer_memories_weigh_less() -> None:
    assert term_weights({"a": 1})["a"] > term_weights({"a": 1, "b": 100})["a"]


def test_rarer_tokens_tell_more_and_all_tell_something() -> None:
    assert inverse_frequency(10, 1) > inverse_frequency(10, 5) > inverse_frequency(10, 10) > 0
    assert inverse_frequency(10, 1) == pytest.approx(math.log(1 + 9.5 / 1.5))
