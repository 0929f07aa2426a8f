"""Reads labelled pairs of statements, and measures what was made of them.

    {"id": "p1", "a": "I live in Oslo.", "b": "My home is in Oslo.", "relation": "duplicate"}
    {"id": "p2", "premise": "Two men are asleep.", "hypothesis": "Nobody sleeps.", "label": "contradiction"}
    {"id": "p3", "a": "How old is she?", "b": "What is her age?", "label": 1}

`relation` is `duplicate`, `conflict`, or any other word for what is neither; a `label` of 1 or 0 says only whether the
two are the same; of inference sets, `contradiction` is a conflict, and `entailment` and `neutral` are none.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memplane.evaluation.dataset import BadDataset, json_rows, text_field
from memplane.evaluation.report.model import WORST, Case, Report, Table, plain

LIKELY = 0.5
"""From this score on a pair counts as a duplicate, or as a conflict."""


@dataclass(frozen=True)
class StatementPair:
    """Two statements; `is_duplicate` and `is_conflict` are None where the set does not say."""

    pair_id: str
    a: str
    b: str
    is_duplicate: bool | None
    is_conflict: bool | None

    @property
    def is_neither(self) -> bool:
        """Whether the set says that they stand beside each other."""
        return self.is_duplicate is False and self.is_conflict is False


@dataclass(frozen=True)
class PairFigures:
    """Each 0 to 1, None where the set has no such pairs.

    Attributes:
        duplicate_f1, duplicate_auc: How well repeats are told from all other pairs.
        conflict_f1, conflict_auc: How well contradictions are told from all other pairs.
        conflicts_merged: Of the contradictions, those taken for repeats.
        others_as_conflicts: Of the pairs that are neither, those taken for contradictions.
    """

    duplicate_f1: float | None
    duplicate_auc: float | None
    conflict_f1: float | None
    conflict_auc: float | None
    conflicts_merged: float | None
    others_as_conflicts: float | None


def read_statement_pairs(paths: Sequence[Path]) -> list[StatementPair]:
    """The rows of the files in order. Raises BadDataset, which names the line and what is wrong there."""
    return [_pair(place, row) for path in paths for place, row in json_rows(path)]


def measure(pairs: Sequence[StatementPair], scores: Sequence[Mapping[str, float]]) -> PairFigures:
    """The figures over all pairs; `scores` have `duplicate` and `conflict` of each."""
    found = list(zip(pairs, scores, strict=True))
    same = [(pair.is_duplicate, score["duplicate"]) for pair, score in found if pair.is_duplicate is not None]
    against = [(pair.is_conflict, score["conflict"]) for pair, score in found if pair.is_conflict is not None]
    return PairFigures(
        duplicate_f1=f1(same),
        duplicate_auc=auc(same),
        conflict_f1=f1(against),
        conflict_auc=auc(against),
        conflicts_merged=_share(found, "duplicate", lambda pair: pair.is_conflict is True),
        others_as_conflicts=_share(found, "conflict", lambda pair: pair.is_neither),
    )


def report(pairs: Sequence[StatementPair], scores: Sequence[Mapping[str, float]]) -> Report:
    """The figures, and the pairs that were judged wrong by most."""
    figures = plain(measure(pairs, scores))
    known = [(name, value) for name, value in figures.items() if value is not None]
    wrong = [(_error(pair, score), pair, score) for pair, score in zip(pairs, scores, strict=True)]
    wrong.sort(key=lambda each: each[0], reverse=True)
    return Report(
        title="Repeats and contradictions",
        about={"pairs": len(pairs)},
        tables=[Table("All pairs", ("measure", "value"), known, charted=("value",))],
        worst=[_case(pair, score) for error, pair, score in wrong[:WORST] if error > LIKELY],
        data={"n": len(pairs), **figures},
    )


def _error(pair: StatementPair, score: Mapping[str, float]) -> float:
    """By how much the worse of its two scores misses what the set says, 0 to 1."""
    said = (("duplicate", pair.is_duplicate), ("conflict", pair.is_conflict))
    return max((abs(score[name] - label) for name, label in said if label is not None), default=0.0)


def _case(pair: StatementPair, score: Mapping[str, float]) -> Case:
    said = {"is a repeat": pair.is_duplicate, "is a contradiction": pair.is_conflict}
    return Case(f"{pair.a} / {pair.b}", {**{name: value for name, value in said.items() if value is not None}, **score})


def f1(labelled: Sequence[tuple[bool, float]]) -> float | None:
    """The harmonic mean of precision and recall at LIKELY; None without a positive."""
    wanted = sum(label for label, _ in labelled)
    taken = sum(score >= LIKELY for _, score in labelled)
    right = sum(label and score >= LIKELY for label, score in labelled)
    return 2 * right / (wanted + taken) if wanted else None


def auc(labelled: Sequence[tuple[bool, float]]) -> float | None:
    """The chance that a positive scores above a negative, ties half (Mann and Whitney 1947); None without either."""
    ordered = sorted(labelled, key=lambda pair: pair[1])
    wanted = sum(label for label, _ in ordered)
    if not 0 < wanted < len(ordered):
        return None
    ranks, start = 0.0, 0
    while start < len(ordered):
        end = start
        while end < len(ordered) and ordered[end][1] == ordered[start][1]:
            end += 1
        ranks += sum(label for label, _ in ordered[start:end]) * (start + end + 1) / 2
        start = end
    return (ranks - wanted * (wanted + 1) / 2) / (wanted * (len(ordered) - wanted))


def _share(
    found: Sequence[tuple[StatementPair, Mapping[str, float]]], name: str, concerns: Callable[[StatementPair], bool]
) -> float | None:
    taken = [score[name] >= LIKELY for pair, score in found if concerns(pair)]
    return sum(taken) / len(taken) if taken else None


def _pair(place: str, row: Mapping[str, Any]) -> StatementPair:
    first, second = ("a", "b") if "a" in row else ("premise", "hypothesis")
    a, b = text_field(place, row, first), text_field(place, row, second)
    return StatementPair(str(row.get("id", place)), a, b, *_labels(place, row))


def _labels(place: str, row: Mapping[str, Any]) -> tuple[bool | None, bool | None]:
    relation, label = row.get("relation"), row.get("label")
    if isinstance(relation, str):
        return relation == "duplicate", relation == "conflict"
    if label in (0, 1):
        return label == 1, None
    if isinstance(label, str):
        return None, label == "contradiction"
    if label is not None:
        raise BadDataset(f"{place}: label must be 0, 1 or a word such as contradiction, got {label!r}")
    return None, None
