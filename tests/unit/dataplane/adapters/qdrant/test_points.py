import numpy as np
import pytest

from dataplane.adapters.qdrant.points import best, check_vector, latest, point_id
from dataplane.model import Candidate
from tests.contract.index_suite import DIMENSION, entry

AXIS = np.eye(DIMENSION, dtype=np.float32)[0]


@pytest.mark.parametrize("length", [0.0, 0.5, 0.99, 1.01, 2.0, float("nan"), float("inf")])
def test_a_vector_that_is_not_of_length_1_is_refused_by_the_memory_s_name(length: float) -> None:
    with pytest.raises(ValueError, match="the vector of mem_1 has length"):
        latest([entry("mem_1", embedding=np.where(AXIS > 0, length, 0).astype(np.float32))], DIMENSION)


@pytest.mark.parametrize("seed", range(5))
def test_rounding_is_forgiven(seed: int) -> None:
    vector = np.random.default_rng(seed).standard_normal(3072).astype(np.float32)
    check_vector(vector / np.linalg.norm(vector), 3072, "it")


def test_entries_are_told_apart_by_partition_and_the_last_of_an_id_wins() -> None:
    entries = [entry("a", partition="x"), entry("b"), entry("a", version=2)]
    found = {partition: [each.memory_id for each in group] for partition, group in latest(entries, DIMENSION).items()}
    assert found == {"": ["a", "b"]}


def test_ids_of_points_are_stable_and_apart() -> None:
    assert point_id("mem_1") == point_id("mem_1")
    assert len({point_id(each) for each in ("mem_1", "mem_2", "中文", "")}) == 4


def test_the_newest_version_of_a_memory_stands_whatever_its_score() -> None:
    found = [Candidate("a", 1, 0.9), Candidate("b", 1, 0.5), Candidate("a", 2, 0.1)]
    assert [(hit.memory_id, hit.version) for hit in best(found, 10)] == [("b", 1), ("a", 2)]
    assert [hit.memory_id for hit in best(found, 1)] == ["b"]
