"""The two maps of an endpoint's model, from the file that `memplane eval calibrate` writes.

    {"model": "endpoint:bge-m3@1024", "fitted": "2026-11",
     "similarity": {"knots": [[-1, 0], …, [1, 1]], …},
     "relevance": {"odds": 10, "curves": {"chinese": {"slope", "even_at"}, "other": {…}}, …}}

Each map may be missing; further keys say how the fit did and are not read.

Without a map nothing is known of the model, so the default takes care (unmeasured). Similarity is about the cosine
itself, 0 below 0, and two passages count as the same statement only from a cosine of .97. Relevance is one half at a
cosine of .62, on a slope gentle enough for models whose cosines lie anywhere from .2 to .9: the order is that of the
cosines, but freshness and use weigh more beside it than beside a fitted map.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from dataplane.adapters.embedder.calibration import Calibration
from dataplane.adapters.embedder.relevance import Curve, Relevance
from memplane.settings import BadConfig

DEFAULT_SIMILARITY = Calibration((-1.0, 0.0, 0.97, 1.0), (0.0, 0.01, 0.95, 1.0))
DEFAULT_CURVE = Curve(slope=12.0, even_at=0.5, odds=4.0)


@dataclass(frozen=True, slots=True)
class EndpointMaps:
    """Similarity and relevance of a model; `calibrated` where both were fitted for it."""

    similarity: Calibration
    relevance: Relevance
    calibrated: bool

    @classmethod
    def default(cls) -> Self:
        """The maps of a model that nothing is known of."""
        return cls(DEFAULT_SIMILARITY, Relevance(DEFAULT_CURVE, DEFAULT_CURVE), calibrated=False)

    @classmethod
    def load(cls, path: Path, model: str) -> Self:
        """The maps in a file. Raises BadConfig when it is no calibration of this model."""
        fitted = _read(path)
        if fitted.get("model") != model:
            raise BadConfig(
                f"calibration: {path} was fitted for {fitted.get('model')!r}, not for {model!r}; "
                "fit it again with memplane eval calibrate"
            )
        default = cls.default()
        try:
            similarity = _similarity(fitted["similarity"]) if "similarity" in fitted else None
            relevance = _relevance(fitted["relevance"]) if "relevance" in fitted else None
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise BadConfig(f"calibration: {path} is not as memplane eval calibrate writes it: {error!r}") from None
        calibrated = similarity is not None and relevance is not None
        return cls(similarity or default.similarity, relevance or default.relevance, calibrated)


def _read(path: Path) -> Mapping[str, Any]:
    try:
        fitted = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise BadConfig(f"calibration: {path} cannot be read: {error}") from None
    if not isinstance(fitted, dict):
        raise BadConfig(f"calibration: {path} is not a JSON object")
    return fitted


def _similarity(fitted: Mapping[str, Any]) -> Calibration:
    knots = [(float(cosine), float(similarity)) for cosine, similarity in fitted["knots"]]
    made = Calibration(tuple(cosine for cosine, _ in knots), tuple(similarity for _, similarity in knots))
    if knots[0] != (-1, 0) or knots[-1] != (1, 1):
        raise ValueError("the knots do not reach from (-1, 0) to (1, 1)")
    return made


def _relevance(fitted: Mapping[str, Any]) -> Relevance:
    chinese, other = (
        Curve(float(curve["slope"]), float(curve["even_at"]), float(fitted["odds"]))
        for curve in (fitted["curves"]["chinese"], fitted["curves"]["other"])
    )
    return Relevance(chinese, other)
