"""The gate's model channel: how likely a text states something worth keeping, and of what sort it is.

    z = bias + weights · (embedding ⧺ features)                                    logistic regression
    keep  = 1 / (1 + exp(−high_slope (z − middle)))   for z ≥ middle
          = 1 / (1 + exp(−low_slope (z − middle)))    for z < middle

`middle` and the slopes move scores to where the policy's thresholds expect them, without changing their order:
refusing a text loses it, keeping it for a short term does not. Beside it the same inputs give four outputs, each a
logistic regression of its own: factual, preference, reusable (of use to others), sensitive.
Fitted by `tools/train_gate.py`; data, measures and limits are in `docs/models/gate.md`.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import exp
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dataplane.logic.gate_features import FEATURES, features
from dataplane.model import Vector

OUTPUTS = ("factual", "preference", "reusable", "sensitive")


class UnusableModel(ValueError):
    """Weights that cannot be used: what is wrong with them."""


@dataclass(frozen=True, slots=True)
class Opinion:
    """What the model thinks of a text, each 0 to 1. `outputs` has those of OUTPUTS that it knows."""

    keep: float
    outputs: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Scale:
    """From log-odds to the keep score: monotone; the slopes are above 0."""

    middle: float
    low_slope: float
    high_slope: float

    def score(self, log_odds: float) -> float:
        """The score, 0 to 1."""
        moved = log_odds - self.middle
        return _sigmoid(moved * (self.high_slope if moved >= 0 else self.low_slope))


@dataclass(frozen=True, slots=True)
class GateModel:
    """Weights for embeddings of one kind: a row for keep and one for each of `outputs`, float64.

    `weights` has shape (1 + outputs, dimension + FEATURES), `biases` (1 + outputs,). Embeddings may be longer than
    `dimension`: the model reads their beginning.
    """

    weights: NDArray[np.float64]
    biases: NDArray[np.float64]
    outputs: tuple[str, ...]
    scale: Scale
    embedding_models: tuple[str, ...]
    name: str

    @classmethod
    def from_json(cls, content: bytes) -> "GateModel":
        """The model as `tools/train_gate.py` writes it. Raises UnusableModel."""
        try:
            model = cls._of(json.loads(content))
        except (ValueError, KeyError, TypeError) as error:
            raise UnusableModel(f"gate model: {error!r}") from error
        rows, columns = model.weights.shape if model.weights.ndim == 2 else (0, 0)
        finite = np.isfinite(model.weights).all() and np.isfinite(model.biases).all()
        if rows != len(model.outputs) + 1 or model.biases.shape != (rows,) or columns <= FEATURES or not finite:
            raise UnusableModel(f"gate model {model.name}: weights are not a table of finite numbers")
        if not set(model.outputs) <= set(OUTPUTS):
            raise UnusableModel(f"gate model {model.name}: outputs {model.outputs} are not of {OUTPUTS}")
        if model.scale.low_slope <= 0 or model.scale.high_slope <= 0:
            raise UnusableModel(f"gate model {model.name}: a slope is not above 0")
        return model

    @classmethod
    def _of(cls, stored: Mapping[str, Any]) -> "GateModel":
        return cls(
            weights=np.asarray(stored["weights"], dtype=np.float64),
            biases=np.asarray(stored["biases"], dtype=np.float64),
            outputs=tuple(map(str, stored["outputs"])),
            scale=Scale(float(stored["middle"]), float(stored["low_slope"]), float(stored["high_slope"])),
            embedding_models=tuple(map(str, stored["embedding_models"])),
            name=str(stored["name"]),
        )

    def opinion(self, embedding: Vector, text: str) -> Opinion:
        """What it thinks of a text. `embedding` is the text's as a passage, by one of `embedding_models`."""
        dimension = self.weights.shape[1] - FEATURES
        if len(embedding) < dimension:
            raise ValueError(f"embedding has {len(embedding)} numbers; {self.name} wants {dimension}")
        inputs = np.concatenate([_direction(embedding[:dimension]), features(text)])
        keep, *others = (self.biases + self.weights @ inputs).tolist()
        return Opinion(
            self.scale.score(keep), {name: _sigmoid(odds) for name, odds in zip(self.outputs, others, strict=True)}
        )

    def score(self, embedding: Vector, text: str) -> float:
        """How much the text is worth keeping, 0 to 1."""
        return self.opinion(embedding, text).keep


def _direction(part: Vector) -> NDArray[np.float64]:
    """A part of an embedding, of length 1 as the model was trained on."""
    exact = np.asarray(part, dtype=np.float64)
    return exact / max(1e-9, float(np.linalg.norm(exact)))


def _sigmoid(log_odds: float) -> float:
    return 1.0 / (1.0 + exp(-max(-50.0, min(50.0, log_odds))))
