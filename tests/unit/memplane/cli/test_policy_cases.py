import json
from pathlib import Path

from click.testing import CliRunner, Result

from memplane.cli.main import cli

HOLDS = """\
order:
  - name: people are believed more than models
    given: {hits: {said: {vector: 0.5, source: HUMAN}, guessed: {vector: 0.5, source: LLM}}}
    expect: [said, guessed]
"""
FAILS = """\
write:
  - name: small talk is not kept for good
    given: {text: I always say hello, model_score: 0.9}
    expect: {layer: SHORT_TERM}
"""


def invoke(folder: Path, *arguments: str) -> Result:
    return CliRunner().invoke(cli, ["policy", "test", str(folder), *arguments])


def folder_of(path: Path, **files: str) -> Path:
    for name, text in files.items():
        (path / f"{name}.test.yaml").write_text(text)
    (path / "policy.yaml").write_text("write_policy: {}\n")
    return path


def test_cases_that_hold_are_counted(tmp_path: Path) -> None:
    result = invoke(folder_of(tmp_path, order=HOLDS))
    assert (result.exit_code, result.stdout) == (0, "valid: 1 held\n")


def test_a_case_that_fails_ends_the_command_with_1_and_its_line(tmp_path: Path) -> None:
    result = invoke(folder_of(tmp_path, order=HOLDS, write=FAILS), "--json")
    answer = json.loads(result.stdout)
    assert (result.exit_code, answer["valid"]) == (1, False)
    assert [(case["name"], case["file"], case["line"], case["result"]) for case in answer["cases"]] == [
        ("people are believed more than models", "order.test.yaml", 4, "held"),
        ("small talk is not kept for good", "write.test.yaml", 4, "failed"),
    ]
    [told] = answer["diagnostics"]
    assert (told["code"], told["file"], told["line"], told["column"]) == ("CASE_FAILED", "write.test.yaml", 4, 21)
    assert told["message"].endswith("expected layer SHORT_TERM; came layer LONG_TERM")


def test_a_folder_that_does_not_compile_is_told_without_trying(tmp_path: Path) -> None:
    folder = folder_of(tmp_path, order=HOLDS)
    (folder / "more.yaml").write_text("write_polcy: {}\n")
    result = invoke(folder)
    assert result.exit_code == 1
    assert "more.yaml:1:1: ERROR UNKNOWN_KEY" in result.stdout
    assert result.stdout.endswith("not valid: 1 untried\n")


def test_a_folder_without_policies_is_told(tmp_path: Path) -> None:
    result = invoke(tmp_path)
    assert result.exit_code == 1
    assert "NO_DOCUMENTS" in result.stdout
