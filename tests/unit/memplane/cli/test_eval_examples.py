"""The sets of docs/quality/examples are judged as well as they were: a small gate for each task, without other data.

Some 10 seconds. What the evaluation data says is held by `test_quality.py` beside the logic of each task.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from memplane.cli.main import cli

Where = tuple[str, ...]
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


def figure(found: Any, where: Where) -> float:
    for name in where:
        found = found[name]
    return float(found)


# What was measured in 2026-11, or less by a row.
@pytest.mark.parametrize(
    ("task", "least", "none"),
    [
        ("dates", {("all", "exact"): 0.83}, ()),
        ("sensitive", {("types", "all", "recall"): 0.8}, [("alarms",)]),
        ("guard", {("all", "recall"): 1.0}, [("all", "false_positives")]),
        ("pairs", {("duplicate_f1",): 0.8, ("conflict_f1",): 0.8}, ()),
        ("gate", {("auc",): 0.95, ("needed_kept",): 0.83}, [("junk_lasting",)]),
    ],
    ids=["dates", "sensitive", "guard", "pairs", "gate"],
)
def test_our_own_rows_are_judged_as_before(
    task: str, least: Mapping[Where, float], none: Sequence[Where], tmp_path: Path
) -> None:
    found = measured(task, tmp_path)
    assert {path: figure(found, path) for path in least if figure(found, path) < least[path]} == {}
    assert {path: figure(found, path) for path in none if figure(found, path)} == {}
