import json
from pathlib import Path

from click.testing import CliRunner, Result

from memplane.cli.main import cli


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["eval", "gate", *map(str, arguments)])


def test_texts_are_admitted_measured_and_dumped(tmp_path: Path) -> None:
    rows = [
        {"id": "1", "text": "I'm allergic to peanuts.", "label": 1, "n_qa": 1},
        {"id": "2", "text": "好的，谢谢！", "label": "chitchat", "worth": 0},
    ]
    data = tmp_path / "texts.jsonl"
    data.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    result = invoke("--data", data, "--dump", tmp_path / "dump.jsonl", "--json")
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout)
    assert (figures["texts"], figures["auc"], figures["needed_kept"]) == (2, 1, 1)
    dumped = [json.loads(line) for line in (tmp_path / "dump.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [(row["id"], row["layer"]) for row in dumped] == [("1", "LONG_TERM"), ("2", "WORKING")]
    assert dumped[0]["score"] > dumped[1]["score"]


def test_a_bad_line_is_named(tmp_path: Path) -> None:
    data = tmp_path / "texts.jsonl"
    data.write_text('{"text": "x"}\n', encoding="utf-8")
    result = invoke("--data", data)
    assert result.exit_code == 1
    assert f"{data}:1: label must be 1, 0 or a word" in result.stderr
