"""How much memories say about a question, from the cosines of their embeddings with the question's.

A logistic curve of the cosine, relevance = 1 / (1 + odds × exp(−slope × (cosine − even_at))), fitted by
`tools/fit_relevance.py` and shipped as JSON. `even_at` is the cosine at which a memory of a pair, one relevant and one
not, is as likely the one as the other; `odds` memories of a store are unrelated for each one that is relevant, so
relevance is the chance that a memory is relevant among its like.

Each language of a question has a curve of its own: the cosines of one and the same question with one and the same
memories lie about .09 higher in Chinese than in English, farther than relevant memories lie from unrelated ones.
"""

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Self

from memplane.language import is_chinese


@dataclass(frozen=True, slots=True)
class Curve:
    """One language's curve; `slope` is above 0, `even_at` a cosine, `odds` 1 or more."""

    slope: float
    even_at: float
    odds: float

    def __post_init__(self) -> None:
        if not (self.slope > 0 and -1 < self.even_at < 1 and self.odds >= 1):
            raise ValueError(f"not a rising curve over cosines: {self}")

    def __call__(self, cosine: float) -> float:
        """The relevance, 0 to 1, strictly rising; 0 for NaN."""
        if not cosine >= -1:
            return 0.0
        return 1 / (1 + self.odds * math.exp(-self.slope * (min(cosine, 1.0) - self.even_at)))


@dataclass(frozen=True, slots=True)
class Relevance:
    """The curves by the language of the question: Chinese, and all others (fitted on English)."""

    chinese: Curve
    other: Curve

    @classmethod
    def load(cls, name: str) -> Self:
        """The curves shipped as `name` beside this module."""
        fitted = json.loads((resources.files(__package__) / name).read_text(encoding="utf-8"))
        chinese, other = fitted["curves"]["chinese"], fitted["curves"]["other"]
        return cls(
            Curve(chinese["slope"], chinese["even_at"], fitted["odds"]),
            Curve(other["slope"], other["even_at"], fitted["odds"]),
        )

    def __call__(self, question: str, cosines: Sequence[float]) -> list[float]:
        """The relevance of each memory, 0 to 1, in the order of the cosines."""
        curve = self.chinese if is_chinese(question) else self.other
        return [curve(cosine) for cosine in cosines]
