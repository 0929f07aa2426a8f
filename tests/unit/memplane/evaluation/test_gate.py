import json
from pathlib import Path
from typing import Any

import pytest

from memplane.evaluation.dataset import BadDataset
from memplane.evaluation.gate import GateText, measure, read_gate_texts


def written(folder: Path, *rows: dict[str, Any]) -> Path:
    path = folder / "texts.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def test_labels_are_numbers_or_words(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        {"id": "a", "text": "x", "label": 1, "n_qa": 2},
        {"id": "b", "text": "x", "label": 0, "n_qa": 0},
        {"id": "c", "text": "x", "label": "episodic", "worth": 1},
        {"text": "x", "label": "chitchat", "worth": 0},
    )
    assert read_gate_texts([path]) == [
        GateText("a", "x", "worth", True, True),
        GateText("b", "x", "junk", False, False),
        GateText("c", "x", "episodic", True, None),
        GateText(f"{path}:4", "x", "chitchat", False, None),
    ]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"label": 1}, "text must be a text"),
        ({"text": "x", "label": 2}, "label must be 1, 0 or a word"),
        ({"text": "x", "label": "durable"}, "worth must be 1 or 0 beside the label 'durable'"),
    ],
)
def test_a_bad_line_is_named(row: dict[str, Any], told: str, tmp_path: Path) -> None:
    with pytest.raises(BadDataset, match=f"texts.jsonl:1: {told}"):
        read_gate_texts([written(tmp_path, row)])


def test_figures_are_of_scores_and_of_layers() -> None:
    texts = [
        GateText("1", "x", "worth", True, True),
        GateText("2", "x", "worth", True, False),
        GateText("3", "x", "junk", False, False),
        GateText("4", "x", "junk", False, False),
    ]
    answers: list[dict[str, Any]] = [
        {"score": 0.9, "layer": "LONG_TERM"},
        {"score": 0.4, "layer": "SHORT_TERM"},
        {"score": 0.45, "layer": "SHORT_TERM"},
        {"score": 0.1, "layer": None},
    ]
    found = measure(texts, answers)
    assert found.auc == 0.75
    assert found.f1_kept == pytest.approx(0.8)
    assert found.f1_half == pytest.approx(2 / 3)
    assert found.f1_best == pytest.approx(0.8)
    assert (found.junk_lasting, found.worth_kept, found.needed_kept) == (0, 1, 1)
    assert found.layers == {"worth": {"SHORT_TERM": 0.5, "LONG_TERM": 0.5}, "junk": {"NONE": 0.5, "SHORT_TERM": 0.5}}


def test_a_share_of_nothing_is_none() -> None:
    found = measure([GateText("1", "x", "worth", True, None)], [{"score": 0.9, "layer": "LONG_TERM"}])
    assert (found.auc, found.junk_lasting, found.needed_kept) == (None, None, None)
