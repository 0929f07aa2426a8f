"""The monotone map from a model's cosine to the similarity in which policies speak.

Knots are fitted by `tools/fit_calibration.py` on pairs that people judged, and shipped as JSON; between knots the map
is linear, outside them it goes straight to −1 → 0 and 1 → 1.
"""

import json
from bisect import bisect_right
from dataclasses import dataclass
from importlib import resources
from itertools import pairwise
from typing import Self


@dataclass(frozen=True, slots=True)
class Calibration:
    """A piecewise linear map; cosines and similarities rise strictly and reach from (−1, 0) to (1, 1)."""

    cosines: tuple[float, ...]
    similarities: tuple[float, ...]

    def __post_init__(self) -> None:
        for values in (self.cosines, self.similarities):
            if any(low >= high for low, high in pairwise(values)):
                raise ValueError(f"calibration knots do not rise: {values}")
        if len(self.cosines) != len(self.similarities) or len(self.cosines) < 2:
            raise ValueError("a calibration has two or more knots, each with a cosine and a similarity")

    @classmethod
    def load(cls, name: str) -> Self:
        """The calibration shipped as `name` beside this module."""
        knots = json.loads((resources.files(__package__) / name).read_text(encoding="utf-8"))["knots"]
        return cls(tuple(knot[0] for knot in knots), tuple(knot[1] for knot in knots))

    def __call__(self, cosine: float) -> float:
        """The calibrated similarity, 0 to 1; cosines beyond the knots are taken as the nearest."""
        if cosine >= self.cosines[-1]:
            return self.similarities[-1]
        if not cosine > self.cosines[0]:  # also for NaN
            return self.similarities[0]
        above = bisect_right(self.cosines, cosine)
        left, right = self.cosines[above - 1], self.cosines[above]
        share = (cosine - left) / (right - left)
        return self.similarities[above - 1] + share * (self.similarities[above] - self.similarities[above - 1])
