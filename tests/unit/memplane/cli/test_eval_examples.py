"""The sets of docs/quality/examples are judged as well as they were: a small gate for each task, without other data.

Some 10 seconds. What the evaluation data says is held by `test_quality.py` beside the logic of each task.
"""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memplane.cli.main import cli

EXAMPLES = Path(__file__).parents[4] / "docs" / "quality" / "examples"


def measured(task: str, folder: Path) -> Any:
    """What the command prints; it also writes both kinds of report."""
    files = [option for kind in ("markdown", "html") for option in (f"--{kind}", str(folder / kind))]
    data = str(EXAMPLES / f"{task}.jsonl")
    result = CliRunner().invoke(cli, ["eval", task, "--data", data, *files, "--json"])
    assert result.exit_code == 0, result.output
    assert (folder / "html").read_text().startswith("<!doctype html>")
    assert (folder / "markdown").read_text().startswith("# ")
    return json.loads(result.stdout)


# What was measured in 2026-11, or less by a row.
@pytest.mark.parametrize(
    ("task", "path", "least"),
    [
        ("dates", ("all", "exact"), 0.83),
        ("sensitive", ("types", "all", "recall"), 0.8),
        ("guard", ("all", "recall"), 1.0),
        ("pairs", ("duplicate_f1",), 0.8),
        ("pairs", ("conflict_f1",), 0.8),
        ("gate", ("auc",), 0.95),
        ("gate", ("needed_kept",), 0.83),
    ],
)
def test_our_own_rows_are_judged_as_before(task: str, path: tuple[str, ...], least: float, tmp_path: Path) -> None:
    found = measured(task, tmp_path)
    for name in path:
        found = found[name]
    assert found >= least


def test_nothing_benign_is_flagged_or_kept(tmp_path: Path) -> None:
    assert measured("guard", tmp_path)["all"]["false_positives"] == 0
    assert measured("sensitive", tmp_path)["alarms"] == 0
    assert measured("gate", tmp_path)["junk_lasting"] == 0
