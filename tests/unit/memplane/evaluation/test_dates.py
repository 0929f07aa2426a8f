import json
from pathlib import Path

import pytest

from memplane.evaluation.dataset import BadDataset
from memplane.evaluation.dates import DateScores, measure, read_expressions

NOW = "2026-11-30T09:00:00"
DAY = "2026-11-30"


def written(path: Path, *rows: dict[str, object]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def row(text: str, day: str | None) -> dict[str, object]:
    return {"now": NOW, "text": text, "start": day and f"{day}T00:00:00", "end": day and f"{day}T23:59:59"}


def test_shares_are_counted_by_script_and_over_all(tmp_path: Path) -> None:
    data = written(tmp_path / "a.jsonl", row("today", DAY), row("tea", None), row("今天", DAY), row("茶", None))
    expressions = read_expressions([data])
    scores = measure(expressions, [(DAY, DAY), (DAY, DAY), ("2026-11-29", DAY), None])
    assert scores["ASCII"] == (2, DateScores(exact=0.5, precision=0.5, recall=1.0, quiet=0.0))
    assert scores["Chinese"] == (2, DateScores(exact=0.5, precision=0.0, recall=0.0, quiet=1.0))
    assert scores["all"][1].exact == 0.5


def test_a_share_of_nothing_is_whole() -> None:
    assert measure([], [])["all"] == (0, DateScores(1.0, 1.0, 1.0, 1.0))


@pytest.mark.parametrize("change", [{"text": 5}, {"now": "soon"}, {"start": None}, {"end": "late"}])
def test_a_bad_row_is_named(tmp_path: Path, change: dict[str, object]) -> None:
    data = written(tmp_path / "a.jsonl", {**row("today", DAY), **change})
    with pytest.raises(BadDataset, match=r"a\.jsonl:1: "):
        read_expressions([data])
