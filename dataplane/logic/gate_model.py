"""The gate's model channel: how likely a text states something worth keeping.

    z = bias + weights · (embedding ⧺ features)                                    logistic regression
    score = 1 / (1 + exp(−z))          for z ≥ 0
          = 1 / (1 + exp(−low_slope z)) for z < 0

`low_slope`, 0 to 1, lifts doubtful texts without changing their order: refusing a text loses it, keeping it for a short
term does not.
Fitted by `tools/train_gate.py`; data, measures and limits are in `docs/models/gate.md`.
"""

import json
import re
from dataclasses import dataclass
from math import exp, log1p

import numpy as np

from dataplane.model import Vector

_WORD = re.compile(r"[A-Za-z'’]+|[\u3400-\u9fff]")
_FIRST_PERSON = re.compile(r"\b(?:i|i['’]m|i['’]ve|my|mine|we|our|me)\b|我|咱", re.IGNORECASE)
_OTHERS = re.compile(r"\b(?:he|she|they|his|her|their)\b|他|她", re.IGNORECASE)
_QUESTION = re.compile(r"[?？]|吗|呢\s*$")
_ASKS_ONLY = re.compile(r"^[^.!。！]*[?？]\s*$")
_COURTESY = re.compile(
    r"\b(?:hi|hey|hello|thanks|thank you|ok|okay|sure|great|wow|cool|nice|bye|lol|haha|yeah|yes|no problem|welcome|"
    r"good (?:morning|night|evening))\b|你好|您好|谢谢|多谢|好的|再见|晚安|早上好|哈哈|嗯|没问题|不客气",
    re.IGNORECASE,
)
_IDENTIFIER = re.compile(r"[A-Za-z0-9]+(?:[-_/.@:][A-Za-z0-9]+)+")
_LASTING = re.compile(
    r"\b(?:always|never|usually|every|favou?rite|prefer|love|hate|allergic|married|born|live|work|own|named)\b"
    r"|总是|一直|从不|每天|每周|喜欢|讨厌|偏好|过敏|住在|工作|职业|生日|名字|叫",
    re.IGNORECASE,
)
_PASSING = re.compile(
    r"\b(?:today|tonight|tomorrow|yesterday|this (?:morning|week|weekend|afternoon)|right now|just now)\b"
    r"|今天|今晚|明天|昨天|刚才|刚刚|这周|现在",
    re.IGNORECASE,
)
FEATURES = 11


class UnusableModel(ValueError):
    """Weights that cannot be used: what is wrong with them."""


@dataclass(frozen=True, slots=True)
class GateModel:
    """Weights for one embedding model: shape (dimension + FEATURES,), float64. `low_slope` is above 0, at most 1."""

    weights: np.ndarray[tuple[int], np.dtype[np.float64]]
    bias: float
    low_slope: float
    embedding_model: str
    name: str

    @classmethod
    def from_json(cls, content: bytes) -> "GateModel":
        """The model as `tools/train_gate.py` writes it. Raises UnusableModel."""
        try:
            stored = json.loads(content)
            model = cls(
                weights=np.asarray(stored["weights"], dtype=np.float64),
                bias=float(stored["bias"]),
                low_slope=float(stored["low_slope"]),
                embedding_model=str(stored["embedding_model"]),
                name=str(stored["name"]),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise UnusableModel(f"gate model: {error!r}") from error
        if (
            model.weights.ndim != 1
            or len(model.weights) <= FEATURES
            or not np.isfinite([*model.weights, model.bias]).all()
        ):
            raise UnusableModel(f"gate model {model.name}: weights are not a list of finite numbers")
        if not 0 < model.low_slope <= 1:
            raise UnusableModel(f"gate model {model.name}: low_slope {model.low_slope} is not above 0 and at most 1")
        return model

    def score(self, embedding: Vector, text: str) -> float:
        """The probability, 0 to 1. `embedding` is that of the text as a passage, by `embedding_model`."""
        inputs = np.concatenate([np.asarray(embedding, dtype=np.float64), features(text)])
        if len(inputs) != len(self.weights):
            raise ValueError(
                f"embedding has {len(embedding)} numbers; {self.name} wants {len(self.weights) - FEATURES}"
            )
        return calibrated(self.bias + float(inputs @ self.weights), self.low_slope)


def features(text: str) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    """What an embedding blurs: length, numbers, who speaks, questions, courtesy. Shape (FEATURES,), each 0 to 1."""
    shown = text[:2000]
    words = len(_WORD.findall(shown))
    return np.array(
        [
            min(1.0, log1p(words) / 5.0),
            float(words <= 4),
            float(any(character.isdigit() for character in shown)),
            float(_IDENTIFIER.search(shown) is not None),
            float(_FIRST_PERSON.search(shown) is not None),
            float(_OTHERS.search(shown) is not None),
            float(_QUESTION.search(shown) is not None),
            float(_ASKS_ONLY.search(shown) is not None),
            float(_COURTESY.search(shown) is not None),
            float(_LASTING.search(shown) is not None),
            float(_PASSING.search(shown) is not None),
        ]
    )


def calibrated(log_odds: float, low_slope: float) -> float:
    """The score, 0 to 1, of log-odds; monotone."""
    bounded = max(-50.0, min(50.0, log_odds))
    return 1.0 / (1.0 + exp(-bounded if bounded >= 0 else -low_slope * bounded))
