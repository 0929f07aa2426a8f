import json
from pathlib import Path

from click.testing import CliRunner, Result

from memplane.cli.main import cli

EXAMPLES = Path(__file__).parents[4] / "docs" / "quality" / "examples"


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["eval", "compare", "--resamples", "200", *map(str, arguments)])


def dump(path: Path, right: int) -> Path:
    """Of the questions the first `right` get what they ask for."""
    rows = [json.loads(line) for line in (EXAMPLES / "questions.jsonl").read_text().splitlines()]
    lines = [{"id": row["id"], "ids": row["evidence"][0] if place < right else []} for place, row in enumerate(rows)]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_two_dumps_are_compared_and_reported(tmp_path: Path) -> None:
    a, b = dump(tmp_path / "a.jsonl", 2), dump(tmp_path / "b.jsonl", 9)
    files = ("--html", tmp_path / "r.html", "--markdown", tmp_path / "r.md")
    data = ("--questions", EXAMPLES / "questions.jsonl")
    result = invoke("--a", a, "--b", b, *data, *files, "--json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)["overall"]["recall_at_10"]
    assert (found["n"], found["a"], found["b"]) == (10, 0.2, 0.9)
    assert 0 < found["low"] < 0.7 < found["high"]
    assert "<svg" in (tmp_path / "r.html").read_text()
    assert "| recall_at_10 | 10 | 0.200 | 0.900 |" in (tmp_path / "r.md").read_text()
    by_group = invoke("--a", a, "--b", b, *data, "--groups", "group")
    assert "resamples of groups (seed 1)" in by_group.stdout


def test_questions_that_are_not_scored_do_not_count(tmp_path: Path) -> None:
    rows = [json.loads(line) for line in (EXAMPLES / "questions.jsonl").read_text().splitlines()]
    questions = tmp_path / "questions.jsonl"
    lines = [{**rows[0], "evidence": []}, *rows[1:]]
    questions.write_text("".join(json.dumps(line) + "\n" for line in lines))
    a, b = dump(tmp_path / "a.jsonl", 2), dump(tmp_path / "b.jsonl", 9)
    result = invoke("--a", a, "--b", b, "--data", questions, "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["overall"]["recall_at_10"]["n"] == len(rows) - 1


def test_dumps_of_other_data_are_refused(tmp_path: Path) -> None:
    a = dump(tmp_path / "a.jsonl", 2)
    result = invoke("--task", "gate", "--a", a, "--b", a, "--data", EXAMPLES / "gate.jsonl")
    assert result.exit_code == 1
    assert "no answer to 't1'" in result.stderr
