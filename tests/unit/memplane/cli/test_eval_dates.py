import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from memplane.cli.main import cli

NOW = "2026-11-30T09:00:00"
TODAY = {"now": NOW, "text": "today", "start": "2026-11-30T00:00:00", "end": "2026-11-30T23:59:59.999999"}
NOTHING = {"now": NOW, "text": "tea", "start": None, "end": None}


def written(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["eval", "dates", *map(str, arguments)])


def test_the_rows_are_resolved_measured_and_dumped(tmp_path: Path) -> None:
    data = written(tmp_path / "rows.jsonl", TODAY, NOTHING, {**TODAY, "text": "no time"})
    result = invoke("--data", data, "--dump", tmp_path / "dump.jsonl", "--json")
    assert result.exit_code == 0, result.output
    scores = json.loads(result.stdout)["all"]
    assert (scores["n"], scores["precision"], scores["recall"], scores["quiet"]) == (3, 1.0, 0.5, 1.0)
    dumped = [json.loads(line) for line in (tmp_path / "dump.jsonl").read_text().splitlines()]
    assert dumped[0].keys() == TODAY.keys()
    assert dumped[1] == NOTHING


def test_a_bad_line_is_named(tmp_path: Path) -> None:
    data = written(tmp_path / "rows.jsonl", TODAY, {**TODAY, "end": None})
    result = invoke("--data", data)
    assert result.exit_code == 1
    assert f"{data}:2: start and end must both be times or both null" in result.stderr
