import json
from pathlib import Path
from typing import Any

import pytest

from memplane.evaluation.dataset import BadDataset
from memplane.evaluation.statements import StatementPair, auc, f1, measure, read_statement_pairs


def written(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def pair(*, duplicate: bool | None, conflict: bool | None) -> StatementPair:
    return StatementPair("p", "a", "b", duplicate, conflict)


def test_rows_of_every_kind_are_read(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        {"id": "1", "a": "x", "b": "y", "relation": "duplicate"},
        {"id": "2", "a": "x", "b": "y", "relation": "additive"},
        {"id": "3", "a": "x", "b": "y", "label": 1},
        {"id": "4", "premise": "x", "hypothesis": "y", "label": "contradiction"},
        {"id": "5", "a": "x", "b": "y"},
    )
    read = read_statement_pairs([path])
    assert [(each.is_duplicate, each.is_conflict) for each in read] == [
        (True, False),
        (False, False),
        (True, None),
        (None, True),
        (None, None),
    ]
    assert [each.pair_id for each in read] == ["1", "2", "3", "4", "5"]


@pytest.mark.parametrize(
    ("row", "told"), [({"a": "x"}, "b must be a text"), ({"a": "x", "b": "y", "label": 2}, "label must be 0, 1")]
)
def test_a_wrong_row_is_told(tmp_path: Path, row: dict[str, Any], told: str) -> None:
    with pytest.raises(BadDataset, match=told):
        read_statement_pairs([written(tmp_path, row)])


def test_f1_and_auc_of_known_scores() -> None:
    labelled = [(True, 0.9), (True, 0.4), (False, 0.6), (False, 0.1)]
    assert f1(labelled) == pytest.approx(0.5)
    assert auc(labelled) == pytest.approx(0.75)
    assert auc([(True, 0.5), (False, 0.5)]) == pytest.approx(0.5)
    assert f1([(False, 0.1)]) is None
    assert auc([(True, 0.1)]) is None


def test_the_two_mistakes_that_cost_most_are_counted() -> None:
    pairs = [
        pair(duplicate=True, conflict=False),
        pair(duplicate=False, conflict=True),
        pair(duplicate=False, conflict=False),
        pair(duplicate=False, conflict=False),
    ]
    scores = [{"duplicate": 0.9, "conflict": 0.0}, {"duplicate": 0.6, "conflict": 0.2}]
    scores += [{"duplicate": 0.1, "conflict": 0.7}, {"duplicate": 0.1, "conflict": 0.1}]
    found = measure(pairs, scores)
    assert (found.conflicts_merged, found.others_as_conflicts) == (1.0, 0.5)
    assert found.duplicate_f1 == pytest.approx(2 / 3)
    assert measure([], []).conflict_f1 is None
