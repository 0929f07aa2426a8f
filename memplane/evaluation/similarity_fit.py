"""Fits the map from the cosine of two passages to their similarity, on pairs that people judged.

The similarity is the mean grade of the pairs at that cosine, made monotone (isotonic regression by pooling adjacent
violators: Barlow et al., Statistical Inference under Order Restrictions, 1972), with shuffled pairs as grade 0, for
each set apart and then averaged. `SAME` is the lowest cosine above which that share of the judged pairs are the same
statement.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Knots = list[tuple[float, float]]

SAME = 0.95
GRADED_FOR_A_SHUFFLED = 4
"""Graded pairs for each shuffled one: with more shuffled ones the map is flat over half of the cosines. Unmeasured for
dedup, which happens far above."""
LEAST_STEP = 0.005
"""Similarity rises by at least this from knot to knot, so that order is kept."""
LEAST_ABOVE = 5
"""Judged pairs that must lie above the cosine of `SAME`; of fewer a share says nothing. Unmeasured."""
LOWEST_SAME_FROM, HIGHEST_SAME_FROM = -0.9999, 0.9999
"""Where the cosine of `SAME` may lie: apart from the outer knots, −1 and 1, in the four digits that a map keeps."""


@dataclass(frozen=True)
class Pairs:
    """Judged pairs: cosines, grades 0 to 1 (NaN: not graded), same (1, 0, or −1 in between), shuffled cosines."""

    cosines: Floats
    grades: Floats
    same: NDArray[np.int64]
    shuffled: Floats

    def only(self, mask: NDArray[np.bool_]) -> "Pairs":
        """The pairs where the mask is true."""
        return Pairs(self.cosines[mask], self.grades[mask], self.same[mask], self.shuffled[mask])


def fit_similarity(graded: Sequence[Pairs], judged: Sequence[Pairs], knot_cosines: Sequence[float]) -> Knots:
    """The knots of the map, from (−1, 0) to (1, 1); those of `knot_cosines` at or above the cosine of `SAME` drop out.

    `graded` are weighed alike. Where no cosine has its share of same pairs, `SAME` lies halfway from the highest
    cosine to 1, so that none of these pairs would count as the same.
    """
    curves = [_grade_curve(pairs) for pairs in graded]
    found = same_cosine(judged)
    same_from = round(_beyond(judged) if found is None else found, 4)
    inner = [cosine for cosine in knot_cosines if -1 < cosine < same_from]
    knots = [(-1.0, 0.0)]
    for place, cosine in enumerate(inner):
        grade = float(np.mean([np.interp(cosine, at, grades) for at, grades in curves]))
        least, most = knots[-1][1] + LEAST_STEP, SAME - LEAST_STEP * (len(inner) - place)
        knots.append((cosine, round(min(max(grade, least), most), 4)))
    return [*knots, (same_from, SAME), (1.0, 1.0)]


def same_cosine(sets: Sequence[Pairs]) -> float | None:
    """The lowest cosine above which `SAME` of the judged pairs are the same statement; None when there is none."""
    cosines = np.concatenate([pairs.cosines[pairs.same >= 0] for pairs in sets])
    same = np.concatenate([pairs.same[pairs.same >= 0] for pairs in sets])
    order = np.argsort(-cosines)
    precision = np.cumsum(same[order]) / np.arange(1, len(order) + 1)
    precise = np.flatnonzero(precision >= SAME)
    if not len(precise) or precise[-1] + 1 < LEAST_ABOVE:
        return None
    return _inside(float(cosines[order][precise[-1]]))


def spread_knots(pairs: Pairs, same_from: float, count: int = 13) -> list[float]:
    """Cosines for the inner knots of a model: evenly from what unrelated texts have up to the cosine of `SAME`."""
    low = min(float(np.quantile(pairs.shuffled, 0.05)), same_from - 0.01)
    return sorted({round(float(cosine), 4) for cosine in np.linspace(low, same_from, count + 1)[:-1]})


def measure_similarity(pairs: Pairs, knots: Knots) -> dict[str, float]:
    """How a map does on pairs: precision and recall of "the same" from `SAME`, and where shuffled pairs come out."""
    at, values = zip(*knots, strict=True)
    similarities, shuffled = np.interp(pairs.cosines, at, values), np.interp(pairs.shuffled, at, values)
    chosen = (pairs.same >= 0) & (similarities >= SAME)
    report = {
        "pairs": len(similarities),
        "judged_same": int(chosen.sum()),
        "precision_at_same": float((pairs.same[chosen] == 1).mean()) if chosen.any() else 0.0,
        "recall_at_same": float(chosen[pairs.same == 1].mean()) if (pairs.same == 1).any() else 0.0,
        "shuffled_median": float(np.median(shuffled)),
        "shuffled_p95": float(np.quantile(shuffled, 0.95)),
    }
    if not np.isnan(pairs.grades).any():
        report["mean_error_of_grade"] = float(np.abs(similarities - pairs.grades).mean())
    return {key: round(value, 4) for key, value in report.items()}


def isotonic(at: Floats, values: Floats) -> tuple[Floats, Floats]:
    """The rising step values nearest to `values` in squares: distinct `at`, ascending, and the value there."""
    places, inverse, counts = np.unique(at, return_inverse=True, return_counts=True)
    means = np.bincount(inverse, weights=values) / counts
    blocks: list[tuple[float, float, int]] = []  # value, weight, places
    for mean, weight in zip(means.tolist(), counts.tolist(), strict=True):
        block = (mean, float(weight), 1)
        while blocks and blocks[-1][0] >= block[0]:
            block = _pooled(blocks.pop(), block)
        blocks.append(block)
    return places, np.repeat([value for value, _, _ in blocks], [size for _, _, size in blocks])


def _pooled(left: tuple[float, float, int], right: tuple[float, float, int]) -> tuple[float, float, int]:
    weight = left[1] + right[1]
    return (left[0] * left[1] + right[0] * right[1]) / weight, weight, left[2] + right[2]


def _grade_curve(pairs: Pairs) -> tuple[Floats, Floats]:
    unrelated = pairs.shuffled[::GRADED_FOR_A_SHUFFLED]
    return isotonic(
        np.concatenate([pairs.cosines, unrelated]), np.concatenate([pairs.grades, np.zeros(len(unrelated))])
    )


def _beyond(sets: Sequence[Pairs]) -> float:
    return _inside((max(float(pairs.cosines.max()) for pairs in sets) + 1) / 2)


def _inside(cosine: float) -> float:
    return min(max(cosine, LOWEST_SAME_FROM), HIGHEST_SAME_FROM)
