"""Fits how much a memory says about a question, given their cosine: a logistic regression for each language.

Sets weigh alike, within a set questions, and for a question its relevant and its unrelated memories, half to half. The
fit is by Newton's method (McCullagh and Nelder, Generalized Linear Models, 1989, 4.4).
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

ODDS = 10
"""Candidates of a search are many and few of them answer. By the default policy recall@10 on LoCoMo is .214 at odds 1,
.330 at 3, .428 at 10, .447 at 17, .450 at 30; on MemoryBank zh .981, .981, .969, .969, .951; on MemDaily zh .69 to .70
throughout (2026-11, e5-small). Beyond 10, clear answers come out below one half."""
SCALE = 50.0
"""Cosines are centred and stretched, so that the regression is well conditioned; no effect on the curve."""
RIDGE = 1e-6
"""Strength of the regularisation of the slope: none to speak of, but it ends where cosines tell all apart."""
STEEPEST = 30.0
"""Slope × (1 − even_at) at most: beyond, cosines near 1 would come out as the same relevance in 64-bit floats."""
ROUNDS = 100


class NotRising(Exception):
    """Relevant memories have no higher cosines than unrelated ones; the text says of whose questions."""


@dataclass(frozen=True)
class Asked:
    """One question: its cosines with the memories that are relevant, and with unrelated ones; one of each at least."""

    relevant: Floats
    unrelated: Floats


@dataclass(frozen=True)
class FittedCurve:
    """Relevance = 1 / (1 + ODDS × exp(−slope × (cosine − even_at)))."""

    slope: float
    even_at: float

    def __call__(self, cosines: Floats) -> Floats:
        """The relevance of each cosine, 0 to 1."""
        return np.asarray(1 / (1 + ODDS * np.exp(-self.slope * (cosines - self.even_at))), dtype=np.float64)


def fit_curve(sets: Sequence[Sequence[Asked]]) -> FittedCurve:
    """The curve of some sets of questions. Raises NotRising."""
    cosines, relevant, weights = _flat(sets)
    centre = float(np.average(cosines, weights=weights))
    intercept, steepness = _regress((cosines - centre) * SCALE, relevant, weights)
    slope = steepness * SCALE
    even_at = centre - intercept / slope if slope > 0 else float("nan")
    if not -1 < even_at < 1:
        raise NotRising("relevant memories have no higher cosines than unrelated ones; look at model, prefixes, labels")
    return FittedCurve(round(min(slope, STEEPEST / (1 - even_at)), 1), round(even_at, 4))


def measure_relevance(asked: Sequence[Asked], curve: FittedCurve) -> dict[str, float]:
    """Medians: of cosines, and of the relevance of each question's best memory and of unrelated ones, with its p95."""
    best = curve(np.array([each.relevant.max() for each in asked]))
    unrelated = np.concatenate([each.unrelated for each in asked])
    report = {
        "relevant_cosine": np.median(np.concatenate([each.relevant for each in asked])),
        "unrelated_cosine": np.median(unrelated),
        "best_relevant": np.median(best),
        "unrelated": np.median(curve(unrelated)),
        "unrelated_p95": np.quantile(curve(unrelated), 0.95),
    }
    return {"questions": len(asked), **{key: round(float(value), 4) for key, value in report.items()}}


def _flat(sets: Sequence[Sequence[Asked]]) -> tuple[Floats, Floats, Floats]:
    """Cosine, relevant (1 or 0) and weight of every memory of every question."""
    parts = [
        (part, label, 1000 / len(part) / len(asked))
        for asked in sets
        for question in asked
        for part, label in ((question.relevant, 1.0), (question.unrelated, 0.0))
    ]
    cosines = np.concatenate([part for part, _, _ in parts])
    relevant = np.concatenate([np.full(len(part), label) for part, label, _ in parts])
    return cosines, relevant, np.concatenate([np.full(len(part), weight) for part, _, weight in parts])


def _regress(inputs: Floats, labels: Floats, weights: Floats) -> tuple[float, float]:
    """Intercept and slope of the weighted logistic regression, by Newton's method with halved steps."""
    design = np.column_stack([np.ones_like(inputs), inputs])
    ridge = np.diag([0.0, RIDGE])
    found = np.zeros(2)
    lost = _loss(design, labels, weights, found)
    for _ in range(ROUNDS):
        chance = 1 / (1 + np.exp(-np.clip(design @ found, -500, 500)))
        gradient = design.T @ (weights * (chance - labels)) + ridge @ found
        curvature = (design * (weights * chance * (1 - chance))[:, None]).T @ design + ridge + 1e-12 * np.eye(2)
        step = np.linalg.solve(curvature, gradient)
        while (less := _loss(design, labels, weights, found - step)) > lost and np.abs(step).max() > 1e-10:
            step = step / 2
        found, lost = found - step, less
        if np.abs(step).max() < 1e-8:
            break
    return float(found[0]), float(found[1])


def _loss(design: Floats, labels: Floats, weights: Floats, found: Floats) -> float:
    signed = np.where(labels > 0.5, 1.0, -1.0) * (design @ found)
    return float((weights * np.logaddexp(0, -signed)).sum() + RIDGE / 2 * found[1] ** 2)
