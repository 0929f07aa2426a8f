"""Paired bootstrap: how sure the difference of two systems is that answered the same rows.

Rows are drawn with replacement, the same ones for both systems, and the difference is taken anew each time (Efron and
Tibshirani, An Introduction to the Bootstrap, 1993, ch. 13; for retrieval Sakai, SIGIR 2006). The interval holds the
middle 95 % of these differences; p is twice the share of them on the other side of 0, at least 2 / (resamples + 1).

Rows of one group, such as questions about one dialogue, are alike. Drawing rows tells what holds for more questions
about *these* groups; drawing whole groups tells what holds for other groups, and takes FEW_GROUPS of them to be worth
anything.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RESAMPLES = 10_000
CHUNK_CELLS = 1_000_000
"""Weights held at once, 8 MB of them."""
INTERVAL = (2.5, 97.5)
FEW_GROUPS = 10
"""Below so many groups their bootstrap is too sure of itself (Cameron, Gelbach and Miller 2008 warn below 20 to 30)."""


class Statistic(Protocol):
    """A figure of rows that can be weighted."""

    def at(self, weights: Floats) -> Floats:
        """The figure under each line of weights (lines × rows, ≥ 0); NaN where it is of nothing."""


@dataclass(frozen=True)
class Ratio:
    """A sum over a sum: a mean, a share, precision, recall, F1. Both arrays have a value a row."""

    numerator: Floats
    denominator: Floats

    def at(self, weights: Floats) -> Floats:
        """The ratio of the weighted sums."""
        below = weights @ self.denominator
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(below > 0, (weights @ self.numerator) / below, np.nan)


class Auc:
    """The chance that a positive scores above a negative, ties half (Mann and Whitney 1947)."""

    def __init__(self, labels: Sequence[bool], scores: Sequence[float]) -> None:
        values = np.array(scores, dtype=np.float64)
        self._order = np.argsort(values, kind="stable")
        self._positive = np.array(labels, dtype=np.float64)[self._order]
        distinct = np.diff(values[self._order], prepend=np.nan) != 0
        self._starts = np.flatnonzero(distinct)

    def at(self, weights: Floats) -> Floats:
        """The area of the weighted rows."""
        ordered = weights[:, self._order]
        positive = np.add.reduceat(ordered * self._positive, self._starts, axis=1)
        negative = np.add.reduceat(ordered * (1 - self._positive), self._starts, axis=1)
        below = np.cumsum(negative, axis=1) - negative / 2
        pairs = positive.sum(1) * negative.sum(1)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(pairs > 0, (positive * below).sum(1) / pairs, np.nan)


@dataclass(frozen=True)
class Difference:
    """What b has more than a.

    Attributes:
        n: Rows.
        a: The figure of the first system.
        b: That of the second.
        difference: b − a.
        low: Lower end of the 95 % interval of the difference.
        high: Its upper end.
        p: Two-sided, of "there is no difference".
    """

    n: int
    a: float
    b: float
    difference: float
    low: float
    high: float
    p: float


@dataclass(frozen=True)
class Draw:
    """How rows are drawn: the same seed gives the same numbers; whole groups or single rows; how often."""

    seed: int = 1
    by_group: bool = False
    resamples: int = RESAMPLES


def compare(
    a: Mapping[str, Statistic], b: Mapping[str, Statistic], groups: Sequence[str], draw: Draw
) -> dict[str, Difference]:
    """The difference of each statistic, all over the same rows; those that are of nothing are left out.

    `groups` names the group of each row; there is at least one row.
    """
    rows = len(groups)
    once = np.ones((1, rows))
    values = {name: (float(a[name].at(once)[0]), float(b[name].at(once)[0])) for name in a}
    told = {name: pair for name, pair in values.items() if not np.isnan(pair).any()}
    drawn: dict[str, list[Floats]] = {name: [] for name in told}
    for weights in _weights(groups, draw):
        for name, differences in drawn.items():
            differences.append(b[name].at(weights) - a[name].at(weights))
    return {name: _difference(rows, *told[name], np.concatenate(drawn[name])) for name in told}


def _weights(groups: Sequence[str], draw: Draw) -> Iterator[Floats]:
    """How often each row is drawn: a line a resample, some lines at once."""
    names, member = np.unique(np.array(groups), return_inverse=True)
    units = len(names) if draw.by_group else len(groups)
    generator = np.random.default_rng(draw.seed)
    chunk = max(1, CHUNK_CELLS // max(units, len(groups)))
    for start in range(0, draw.resamples, chunk):
        lines = min(chunk, draw.resamples - start)
        taken = generator.integers(units, size=(lines, units)) + units * np.arange(lines)[:, None]
        counts = np.bincount(taken.ravel(), minlength=lines * units).reshape(lines, units).astype(np.float64)
        yield counts[:, member] if draw.by_group else counts


def _difference(rows: int, a: float, b: float, drawn: Floats) -> Difference:
    told = drawn[~np.isnan(drawn)]  # a resample without a positive says nothing
    if not len(told):
        return Difference(rows, a, b, b - a, b - a, b - a, 1.0)
    low, high = (float(end) for end in np.percentile(told, INTERVAL))
    other_side = min(int((told <= 0).sum()), int((told >= 0).sum()))
    p = min(1.0, 2 * (other_side + 1) / (len(told) + 1))
    return Difference(rows, a, b, b - a, low, high, p)
