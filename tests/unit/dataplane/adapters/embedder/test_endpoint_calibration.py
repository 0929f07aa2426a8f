import json
from pathlib import Path
from typing import Any

import pytest

from dataplane.adapters.embedder.endpoint_calibration import EndpointMaps
from memplane.settings import BadConfig

MODEL = "endpoint:bge-m3@1024"
SIMILARITY = {"knots": [[-1, 0], [0.5, 0.1], [0.9, 0.95], [1, 1]]}
CURVE = {"slope": 20.0, "even_at": 0.6}
RELEVANCE = {"odds": 10, "curves": {"chinese": {"slope": 30.0, "even_at": 0.7}, "other": CURVE}}


def write(folder: Path, fitted: object) -> Path:
    path = folder / "calibration.json"
    path.write_text(json.dumps(fitted))
    return path


def test_the_maps_of_a_file_are_used(tmp_path: Path) -> None:
    path = write(tmp_path, {"model": MODEL, "similarity": SIMILARITY, "relevance": RELEVANCE})
    maps = EndpointMaps.load(path, MODEL)
    assert maps.calibrated
    assert maps.similarity(0.9) == pytest.approx(0.95)
    assert maps.relevance("Who?", [0.6]) == pytest.approx([1 / 11])
    assert maps.relevance("谁?", [0.7]) == pytest.approx([1 / 11])


@pytest.mark.parametrize("part", [{"similarity": SIMILARITY}, {"relevance": RELEVANCE}, {}])
def test_a_map_that_is_missing_is_the_default_and_the_model_not_calibrated(
    tmp_path: Path, part: dict[str, object]
) -> None:
    maps = EndpointMaps.load(write(tmp_path, {"model": MODEL, **part}), MODEL)
    assert not maps.calibrated
    default = EndpointMaps.default()
    assert (maps.similarity == default.similarity) is ("similarity" not in part)
    assert (maps.relevance == default.relevance) is ("relevance" not in part)


def test_the_default_merges_nothing_below_a_cosine_of_95_hundredths() -> None:
    maps = EndpointMaps.default()
    assert maps.similarity(0.95) < 0.95
    assert maps.similarity(0.97) == pytest.approx(0.95)
    assert maps.similarity(-0.5) < 0.01
    assert maps.similarity(0.5) == pytest.approx(0.5, abs=0.02)


def test_another_models_file_is_refused_and_both_are_named(tmp_path: Path) -> None:
    path = write(tmp_path, {"model": "endpoint:other@3", "similarity": SIMILARITY})
    with pytest.raises(BadConfig, match=f"fitted for 'endpoint:other@3', not for '{MODEL}'.*memplane eval calibrate"):
        EndpointMaps.load(path, MODEL)


@pytest.mark.parametrize(
    "broken",
    [
        {"similarity": {}},
        {"similarity": {"knots": [[0, 0], [1, 1]]}},
        {"similarity": {"knots": [[-1, 0], [0.5, 0.5], [0.4, 0.6], [1, 1]]}},
        {"similarity": {"knots": [[-1, 0, 0], [1, 1, 1]]}},
        {"similarity": []},
        {"relevance": {"odds": 10, "curves": {"other": CURVE}}},
        {"relevance": {**RELEVANCE, "odds": "many"}},
        {"relevance": {**RELEVANCE, "odds": 0}},
    ],
)
def test_a_broken_map_is_refused(tmp_path: Path, broken: dict[str, Any]) -> None:
    path = write(tmp_path, {"model": MODEL, **broken})
    with pytest.raises(
        BadConfig, match=r"calibration: .*calibration\.json is not as memplane eval calibrate writes it"
    ):
        EndpointMaps.load(path, MODEL)


@pytest.mark.parametrize("text", ["", "[]", "{", "\x00"])
def test_a_file_that_is_no_object_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "calibration.json"
    path.write_text(text)
    with pytest.raises(BadConfig, match=r"calibration: .*calibration\.json"):
        EndpointMaps.load(path, MODEL)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match="nowhere"):
        EndpointMaps.load(tmp_path / "nowhere", MODEL)
