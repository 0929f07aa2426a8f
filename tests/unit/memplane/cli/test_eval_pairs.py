import json
from pathlib import Path
from typing import Any

from click.testing import CliRunner, Result

from memplane.cli.main import cli


def written(path: Path, *rows: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["eval", "pairs", *map(str, arguments)])


def test_pairs_are_scored_measured_and_dumped(tmp_path: Path) -> None:
    data = written(
        tmp_path / "pairs.jsonl",
        {"id": "1", "a": "I live in Oslo.", "b": "My home is in Oslo.", "relation": "duplicate"},
        {"id": "2", "a": "I live in Oslo.", "b": "My home is in Bergen.", "relation": "conflict"},
        {"id": "3", "premise": "我喜欢爬山", "hypothesis": "我喜欢游泳", "label": "neutral"},
    )
    result = invoke("--data", data, "--dump", tmp_path / "dump.jsonl", "--json")
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert (figures["n"], figures["duplicate_f1"], figures["conflict_f1"], figures["conflicts_merged"]) == (3, 1, 1, 0)
    dumped = [json.loads(line) for line in (tmp_path / "dump.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [row["id"] for row in dumped] == ["1", "2", "3"]
    assert all(row.keys() == {"id", "duplicate", "conflict"} for row in dumped)


def test_a_bad_line_is_named(tmp_path: Path) -> None:
    data = written(tmp_path / "pairs.jsonl", {"a": "x"})
    result = invoke("--data", data)
    assert result.exit_code == 1
    assert f"{data}:1: b must be a text" in result.stderr
