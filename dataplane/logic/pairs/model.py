"""The trained combiner: how likely a pair is a repeat, a contradiction, or two facts that stand beside each other.

Gradient-boosted trees for three classes (Friedman 2001): each class has a raw score, its prior plus the leaves that the
pair's features lead to, and the probabilities are the softmax of the raw scores.
Fitted by `tools/train_pairs.py`; data, measures and limits are in `docs/quality/pairs.md`.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from typing import NamedTuple

from dataplane.logic.pairs.features import FEATURES

CLASSES = ("duplicate", "conflict", "other")


class UnusableModel(ValueError):
    """A model that cannot be used: what is wrong with it."""


class PairScores(NamedTuple):
    """Probabilities, 0 to 1, that the second statement repeats the first, or contradicts it; the rest is neither."""

    duplicate: float
    conflict: float


@dataclass(frozen=True, slots=True)
class Tree:
    """A binary tree by index: at node i go to `left[i]` if feature `feature[i]` is at most `threshold[i]`.

    A leaf has feature −1 and its value in `threshold`.
    """

    feature: tuple[int, ...]
    threshold: tuple[float, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]

    def value(self, features: Sequence[float]) -> float:
        """The leaf that the features lead to."""
        node = 0
        while (feature := self.feature[node]) >= 0:
            node = self.left[node] if features[feature] <= self.threshold[node] else self.right[node]
        return self.threshold[node]


@dataclass(frozen=True, slots=True)
class PairModel:
    """The combiner: a prior and trees for each of CLASSES."""

    name: str
    priors: tuple[float, ...]
    trees: tuple[tuple[Tree, ...], ...]

    @classmethod
    def from_json(cls, content: bytes) -> "PairModel":
        """The model as `tools/train_pairs.py` writes it. Raises UnusableModel."""
        try:
            stored = json.loads(content)
            if tuple(stored["features"]) != FEATURES or tuple(stored["classes"]) != CLASSES:
                raise UnusableModel("pair model: it was fitted on other features or classes")
            trees = tuple(tuple(_tree(tree) for tree in of_class) for of_class in stored["trees"])
            model = cls(str(stored["name"]), tuple(float(prior) for prior in stored["priors"]), trees)
        except (ValueError, KeyError, TypeError, IndexError) as error:
            raise UnusableModel(f"pair model: {error!r}") from error
        if not len(model.priors) == len(model.trees) == len(CLASSES):
            raise UnusableModel(f"pair model {model.name}: it has not one prior and one list of trees for each class")
        return model

    def scores(self, features: Sequence[float]) -> PairScores:
        """The probabilities for a pair's features, in the order of FEATURES."""
        raw = [
            prior + sum(tree.value(features) for tree in trees)
            for prior, trees in zip(self.priors, self.trees, strict=True)
        ]
        highest = max(raw)
        weights = [exp(value - highest) for value in raw]
        total = sum(weights)
        return PairScores(weights[0] / total, weights[1] / total)


def _tree(stored: dict[str, list[float]]) -> Tree:
    """A tree whose children stand after their parent, so that every walk ends."""
    feature = tuple(int(number) for number in stored["feature"])
    left, right = (tuple(int(number) for number in stored[side]) for side in ("left", "right"))
    size = len(feature)
    if not size == len(stored["threshold"]) == len(left) == len(right) or size == 0:
        raise UnusableModel("a tree's lists are not of one length")
    for node, number in enumerate(feature):
        if number >= len(FEATURES) or (
            number >= 0 and not node < min(left[node], right[node]) <= max(left[node], right[node]) < size
        ):
            raise UnusableModel("a tree's nodes do not lead on to later ones")
    return Tree(feature, tuple(float(number) for number in stored["threshold"]), left, right)
