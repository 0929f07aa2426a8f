import json
from pathlib import Path
from typing import Any

import pytest

from memplane.evaluation.bootstrap import Draw
from memplane.evaluation.comparable import TASKS
from memplane.evaluation.comparing import Answered, by_category, compared, comparison, read_dump, read_group_names
from memplane.evaluation.dataset import BadDataset

EXAMPLES = Path(__file__).parents[4] / "docs" / "quality" / "examples"
QUICK = Draw(resamples=200)


def written(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))
    return path


def questions() -> list[Any]:
    return TASKS["retrieval"].read([EXAMPLES / "questions.jsonl"])


def answered(a: list[dict[str, Any]], b: list[dict[str, Any]]) -> Answered:
    rows = questions()
    return Answered(rows, a, b, [row.group for row in rows])


def test_answers_are_found_by_id_in_any_order(tmp_path: Path) -> None:
    rows = questions()
    dump = written(tmp_path / "dump.jsonl", [{"id": row.id, "ids": [row.id]} for row in reversed(rows)])
    assert [line["ids"] for line in read_dump(dump, TASKS["retrieval"], rows)] == [[row.id] for row in rows]


def test_rows_of_one_key_have_their_answers_in_order(tmp_path: Path) -> None:
    task = TASKS["dates"]
    data = written(tmp_path / "data.jsonl", [{"now": "2026-11-30T09:00:00", "text": "x"}] * 2)
    day = "2026-11-29T00:00:00"
    lines = [{"now": "2026-11-30T09:00:00", "text": "x", "start": each, "end": each} for each in (None, day)]
    found = read_dump(written(tmp_path / "dump.jsonl", lines), task, task.read([data]))
    assert [line["start"] for line in found] == [None, day]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda lines: lines[1:], "no answer to"),
        (lambda lines: [*lines, {"id": "more", "ids": []}], "'more' answers nothing"),
        (lambda lines: [{"score": 1}, *lines], "dump.jsonl:1: id is missing"),
    ],
)
def test_a_dump_of_other_data_is_refused(tmp_path: Path, change: Any, told: str) -> None:
    lines = [{"id": row.id, "ids": []} for row in questions()]
    with pytest.raises(BadDataset, match=told):
        read_dump(written(tmp_path / "dump.jsonl", change(lines)), TASKS["retrieval"], questions())


def test_figures_differ_overall_and_by_category() -> None:
    rows = questions()
    right = [{"ids": [row.evidence[0][0]]} for row in rows]
    both = answered([{"ids": ["none"]}] * len(rows), right)
    overall = compared(TASKS["retrieval"], both, QUICK)
    assert (overall["recall_at_10"].difference, overall["mrr"].difference) == (1.0, 1.0)
    assert set(by_category(TASKS["retrieval"], both, QUICK)) == {"fact", "上下文", "事实"}
    told = comparison(TASKS["retrieval"], both, Draw(by_group=True, resamples=200), ("old", "new"))
    assert [table.title for table in told.tables] == ["All", "By category: recall_at_10"]
    assert "Fewer than 10 groups" in told.tables[0].note
    json.dumps(told.data)


@pytest.mark.parametrize(
    ("task", "good", "bad", "figure"),
    [
        ("gate", {"score": 1.0, "layer": "LONG_TERM"}, {"score": 0.0, "layer": None}, "worth_kept"),
        ("pairs", {"duplicate": 1.0, "conflict": 0.0}, {"duplicate": 0.0, "conflict": 0.0}, "duplicate_f1"),
        ("guard", {"score": 1.0, "action": "quarantine"}, {"score": 0.0, "action": "allow"}, "recall"),
    ],
)
def test_every_task_has_figures(task: str, good: dict[str, Any], bad: dict[str, Any], figure: str) -> None:
    rows = TASKS[task].read([EXAMPLES / f"{task}.jsonl"])
    both = Answered(rows, [bad] * len(rows), [good] * len(rows), [""] * len(rows))
    assert compared(TASKS[task], both, QUICK)[figure].difference > 0


def test_found_spans_are_compared() -> None:
    texts = TASKS["sensitive"].read([EXAMPLES / "sensitive.jsonl"])
    full = [
        {"spans": [{"type": span.type, "start": span.start, "end": span.end} for span in text.spans]} for text in texts
    ]
    found = compared(TASKS["sensitive"], Answered(texts, [{"spans": []}] * len(texts), full, [""] * len(texts)), QUICK)
    assert (found["recall"].a, found["recall"].b) == (0.0, 1.0)


def test_rows_without_the_field_have_no_groups() -> None:
    assert read_group_names([EXAMPLES / "questions.jsonl"], "group")["qg1"] == "garden"
    with pytest.raises(BadDataset, match=r"gate.jsonl:1: dialogue is missing"):
        read_group_names([EXAMPLES / "gate.jsonl"], "dialogue")
