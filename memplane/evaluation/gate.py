"""Reads texts that are labelled as worth keeping or not, and measures what the write gate made of them.

    {"id": "1", "text": "I am allergic to nuts.", "label": 1, "n_qa": 2}
    {"id": "2", "text": "我对花生过敏", "label": "durable", "worth": 1}

`label` is 1 for a text worth keeping, 0 for junk, or a word for its sort; then `worth` says 1 or 0. `n_qa`, where a set
has it, counts the later questions that need the text.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memplane.evaluation.dataset import BadDataset, json_rows
from memplane.evaluation.report.model import WORST, Case, Report, Table, plain, table_of
from memplane.evaluation.statements import auc, f1

LASTING = ("LONG_TERM", "KNOWLEDGE")
KEPT = ("SHORT_TERM", *LASTING)
FORGOTTEN = "NONE"
LAYERS = (FORGOTTEN, "WORKING", *KEPT)
SORTS = {"1": "worth", "0": "junk"}


@dataclass(frozen=True)
class GateText:
    """A line of the file. `sort` is its label in words; `is_needed`: a later question needs it, None: not told."""

    id: str
    text: str
    sort: str
    is_worth: bool
    is_needed: bool | None


@dataclass(frozen=True)
class GateFigures:
    """Shares of 0 to 1; a share of nothing is None.

    Attributes:
        texts: How many there are.
        auc: Of the scores, worth keeping against junk.
        f1_kept: Of worth keeping, where SHORT_TERM and above count as kept.
        f1_half: The same where a score of 0.5 and above counts as kept.
        f1_best: The same at the best threshold.
        junk_lasting: Share of the junk in LONG_TERM or KNOWLEDGE.
        worth_kept: Share of what is worth keeping in SHORT_TERM or above.
        needed_kept: The same of what later questions need.
        layers: For each sort of text the share in each layer; NONE is refused.
    """

    texts: int
    auc: float | None
    f1_kept: float | None
    f1_half: float | None
    f1_best: float | None
    junk_lasting: float | None
    worth_kept: float | None
    needed_kept: float | None
    layers: Mapping[str, Mapping[str, float]]


def read_gate_texts(paths: Sequence[Path]) -> list[GateText]:
    """The rows of the files in order. Raises BadDataset, which names the line and what is wrong there."""
    return [_text(place, row) for path in paths for place, row in json_rows(path)]


def measure(texts: Sequence[GateText], answers: Sequence[Mapping[str, Any]]) -> GateFigures:
    """Figures of the answers, `{"score", "layer"}` each; layer None: refused."""
    worth = [text.is_worth for text in texts]
    scores = [float(answer["score"]) for answer in answers]
    layers = [str(answer["layer"] or FORGOTTEN) for answer in answers]
    needed = [layer in KEPT for text, layer in zip(texts, layers, strict=True) if text.is_needed]
    return GateFigures(
        texts=len(texts),
        auc=auc(list(zip(worth, scores, strict=True))),
        f1_kept=f1([(is_worth, float(layer in KEPT)) for is_worth, layer in zip(worth, layers, strict=True)]),
        f1_half=f1(list(zip(worth, scores, strict=True))),
        f1_best=_f1_best(worth, scores),
        junk_lasting=_share([layer in LASTING for is_worth, layer in zip(worth, layers, strict=True) if not is_worth]),
        worth_kept=_share([layer in KEPT for is_worth, layer in zip(worth, layers, strict=True) if is_worth]),
        needed_kept=_share(needed),
        layers=_by_sort([text.sort for text in texts], layers),
    )


def report(texts: Sequence[GateText], answers: Sequence[Mapping[str, Any]]) -> Report:
    """The figures, the layers by sort of text, and the texts whose scores miss their label by most."""
    figures = plain(measure(texts, answers))
    told = [(name, value) for name, value in figures.items() if name != "layers" and value is not None]
    layers = {sort: {layer: shares.get(layer, 0.0) for layer in LAYERS} for sort, shares in figures["layers"].items()}
    wrong = sorted(zip(texts, answers, strict=True), key=lambda pair: _error(*pair), reverse=True)
    return Report(
        title="Write gate",
        about={"texts": len(texts)},
        tables=[
            Table("All texts", ("measure", "value"), told),
            table_of("Layer by sort of text", "label", layers, charted=LAYERS),
        ],
        worst=[_case(text, answer) for text, answer in wrong[:WORST] if _error(text, answer) > 0.5],
        data=figures,
    )


def _error(text: GateText, answer: Mapping[str, Any]) -> float:
    return abs(text.is_worth - float(answer["score"]))


def _case(text: GateText, answer: Mapping[str, Any]) -> Case:
    return Case(text.text, {"label": text.sort, "score": float(answer["score"]), "layer": answer["layer"]})


def _by_sort(sorts: Sequence[str], layers: Sequence[str]) -> dict[str, dict[str, float]]:
    found: dict[str, dict[str, float]] = {}
    for sort in dict.fromkeys(sorts):
        of_sort = [layer for told, layer in zip(sorts, layers, strict=True) if told == sort]
        found[sort] = {name: of_sort.count(name) / len(of_sort) for name in LAYERS if name in of_sort}
    return found


def _f1_best(worth: Sequence[bool], scores: Sequence[float]) -> float | None:
    """One pass from the highest score down; texts of equal scores are kept together."""
    pairs = sorted(zip(scores, worth, strict=True), reverse=True)
    total, hits, best = sum(worth), 0, 0.0
    for kept, (score, is_worth) in enumerate(pairs, start=1):
        hits += is_worth
        if kept == len(pairs) or pairs[kept][0] != score:
            best = max(best, 2 * hits / (total + kept))
    return best if total else None


def _share(hits: Sequence[bool]) -> float | None:
    return sum(hits) / len(hits) if hits else None


def _text(place: str, row: Mapping[str, Any]) -> GateText:
    text, label, worth = row.get("text"), row.get("label"), row.get("worth")
    if not isinstance(text, str):
        raise BadDataset(f"{place}: text must be a text, got {text!r}")
    if isinstance(label, bool) or (label not in (0, 1) and not isinstance(label, str)):
        raise BadDataset(f"{place}: label must be 1, 0 or a word, got {label!r}")
    told = label if worth is None else worth
    if told not in (0, 1):
        raise BadDataset(f"{place}: worth must be 1 or 0 beside the label {label!r}, got {worth!r}")
    needs = row.get("n_qa")
    is_needed = None if needs is None else bool(needs)
    return GateText(str(row.get("id") or place), text, SORTS.get(str(label), str(label)), bool(told), is_needed)
