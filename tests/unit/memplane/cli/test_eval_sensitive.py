import json
from pathlib import Path

from click.testing import CliRunner, Result

from memplane.cli.main import cli

TEXT = "手机13812345678"


def invoke(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["eval", "sensitive", *map(str, arguments)])


def test_texts_are_looked_through_measured_and_dumped(tmp_path: Path) -> None:
    data = tmp_path / "rows.jsonl"
    spans = [{"type": "PHONE", "start": 2, "end": 13}]
    rows = [
        {"id": "1", "text": TEXT, "spans": spans},
        {"id": "2", "text": "a plain sentence"},
    ]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = invoke("--data", data, "--dump", tmp_path / "dump.jsonl", "--json")
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["types"]["PHONE"] == {"labelled": 1, "found": 1, "recall": 1.0, "precision": 1.0, "covered": 1.0}
    assert (told["alarms"], told["unlabelled"]) == (0, 1)
    dumped = [json.loads(line) for line in (tmp_path / "dump.jsonl").read_text().splitlines()]
    assert dumped == [{"id": "1", "spans": spans}, {"id": "2", "spans": []}]
    assert "something was found: 0 of 1" in invoke("--data", data).stdout


def test_a_bad_line_is_named(tmp_path: Path) -> None:
    data = tmp_path / "rows.jsonl"
    data.write_text('{"text": 1}\n')
    result = invoke("--data", data)
    assert result.exit_code == 1
    assert f"{data}:1: text must be a text" in result.stderr
