"""A small regression gate on the evaluation data: without embeddings, as the slots decide."""

import os
from pathlib import Path

import pytest

from dataplane.logic.pairs.features import features
from dataplane.logic.pairs.reading import read
from dataplane.pair_model import shipped_pair_model
from memplane.evaluation.statements import measure, read_statement_pairs

NEAR = 0.9
"""The similarity that is taken for granted: of memories this near a write asks."""


@pytest.mark.data
@pytest.mark.parametrize("name", ["memdaily_pairs_zh", "conflict_en_own"])
def test_repeats_and_contradictions_are_told_apart(name: str) -> None:
    folder = os.environ.get("MEMPLANE_EVAL_DATA")
    if not folder:
        pytest.skip("MEMPLANE_EVAL_DATA is not set")
    model = shipped_pair_model()
    pairs = read_statement_pairs([Path(folder, name, "pairs.jsonl")])
    found = measure(pairs, [model.scores(features(read(pair.a), read(pair.b), NEAR))._asdict() for pair in pairs])
    assert found.duplicate_f1 is not None
    assert found.conflict_f1 is not None
    assert found.duplicate_f1 >= 0.94
    assert found.conflict_f1 >= 0.92
    assert found.conflicts_merged is not None
    assert found.conflicts_merged <= 0.01
    assert found.others_as_conflicts is not None
    assert found.others_as_conflicts <= 0.02
