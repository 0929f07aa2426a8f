"""What it takes to compare two dumps of a task: whose answer a line is, and the figures as bootstrap statistics."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

import numpy as np

from memplane.evaluation.bootstrap import Auc, Floats, Ratio, Statistic
from memplane.evaluation.dataset import Question, read_questions
from memplane.evaluation.dates import Expression, days_of, read_expressions
from memplane.evaluation.gate import KEPT, LASTING, GateText, read_gate_texts
from memplane.evaluation.guard import Suspect, read_suspects
from memplane.evaluation.metrics import Scores, score
from memplane.evaluation.sensitive import Span, Text, read_texts
from memplane.evaluation.statements import LIKELY, StatementPair, read_statement_pairs

Row = TypeVar("Row")
Answer = Mapping[str, Any]
"""A line of a dump."""
Statistics = Mapping[str, Statistic]


@dataclass(frozen=True)
class Comparable(Generic[Row]):
    """A task.

    Attributes:
        read: The rows of its files. Raises BadDataset.
        key: What a row is found by in a dump.
        answer_key: The same of a line of a dump. Raises KeyError where the line lacks it.
        category: What kind of row it is; empty: there are no kinds.
        statistics: The figures of rows and their answers, the one to look at first. Raises KeyError, TypeError or
            ValueError where an answer is not of the format.
        counts: Whether there is a figure of a row; others have an answer that nobody judges.
    """

    read: Callable[[Sequence[Path]], list[Row]]
    key: Callable[[Row], str]
    answer_key: Callable[[Answer], str]
    category: Callable[[Row], str]
    statistics: Callable[[Sequence[Row], Sequence[Answer]], Statistics]
    counts: Callable[[Row], bool] = lambda _row: True


def _id(answer: Answer) -> str:
    return str(answer["id"])


def _no_category(_row: object) -> str:
    return ""


def mean_of(values: Sequence[float]) -> Ratio:
    """The mean of a value a row."""
    return Ratio(_floats(values), np.ones(len(values)))


def share_of(hits: Sequence[bool], counted: Sequence[bool]) -> Ratio:
    """Of the rows that are counted, the share that hit."""
    return Ratio(_floats([hit and whole for hit, whole in zip(hits, counted, strict=True)]), _floats(counted))


def f1_of(wanted: Sequence[bool], taken: Sequence[bool]) -> Ratio:
    """The harmonic mean of precision and recall: 2 × right / (wanted + taken)."""
    right = [want and take for want, take in zip(wanted, taken, strict=True)]
    return Ratio(2 * _floats(right), _floats(wanted) + _floats(taken))


def retrieval_statistics(questions: Sequence[Question], answers: Sequence[Answer]) -> Statistics:
    """Every metric of searches; answers have `ids`, questions evidence."""
    found = [
        score([str(each) for each in answer["ids"]], question.evidence, question.optional)
        for question, answer in zip(questions, answers, strict=True)
    ]
    names = ("recall_at_10", *(name for name in Scores.__dataclass_fields__ if name != "recall_at_10"))
    return {name: mean_of([getattr(each, name) for each in found]) for name in names}


def _gate_statistics(texts: Sequence[GateText], answers: Sequence[Answer]) -> Statistics:
    worth = [text.is_worth for text in texts]
    kept = [answer["layer"] in KEPT for answer in answers]
    return {
        "auc": Auc(worth, [float(answer["score"]) for answer in answers]),
        "f1_kept": f1_of(worth, kept),
        "junk_lasting": share_of([answer["layer"] in LASTING for answer in answers], [not each for each in worth]),
        "worth_kept": share_of(kept, worth),
        "needed_kept": share_of(kept, [bool(text.is_needed) for text in texts]),
    }


def _pair_statistics(pairs: Sequence[StatementPair], answers: Sequence[Answer]) -> Statistics:
    taken = {name: [float(answer[name]) >= LIKELY for answer in answers] for name in ("duplicate", "conflict")}
    said = {
        "duplicate": [pair.is_duplicate for pair in pairs],
        "conflict": [pair.is_conflict for pair in pairs],
    }
    found: dict[str, Statistic] = {}
    for name, labels in said.items():
        if any(label is not None for label in labels):
            counted = [take and label is not None for take, label in zip(taken[name], labels, strict=True)]
            found[f"{name}_f1"] = f1_of([label is True for label in labels], counted)
    found["conflicts_merged"] = share_of(taken["duplicate"], [pair.is_conflict is True for pair in pairs])
    found["others_as_conflicts"] = share_of(taken["conflict"], [pair.is_neither for pair in pairs])
    return found


def _sensitive_statistics(texts: Sequence[Text], answers: Sequence[Answer]) -> Statistics:
    found = [
        {Span(int(each["start"]), int(each["end"]), str(each["type"])) for each in line["spans"]} for line in answers
    ]
    used = {span.type for text in texts for span in text.spans}
    counted = [{span for span in spans if span.type in used} for spans in found]
    hits = _floats([len(spans & set(text.spans)) for spans, text in zip(counted, texts, strict=True)])
    empty = [not text.spans for text in texts]
    return {
        "recall": Ratio(hits, _floats([len(text.spans) for text in texts])),
        "precision": Ratio(hits, _floats([len(spans) for spans in counted])),
        "alarms": share_of([bool(spans) for spans in found], empty),
    }


def _guard_statistics(suspects: Sequence[Suspect], answers: Sequence[Answer]) -> Statistics:
    caught = [answer["action"] != "allow" for answer in answers]
    return {
        "recall": share_of(caught, [suspect.is_attack is True for suspect in suspects]),
        "false_positives": share_of(caught, [suspect.is_attack is False for suspect in suspects]),
    }


def _date_statistics(expressions: Sequence[Expression], answers: Sequence[Answer]) -> Statistics:
    right = [expected.days == days_of(answer) for expected, answer in zip(expressions, answers, strict=True)]
    return {"exact": mean_of([float(each) for each in right])}


def _floats(values: Sequence[float] | Sequence[bool]) -> Floats:
    return np.array(values, dtype=np.float64)


TASKS: Mapping[str, Comparable[Any]] = {
    "retrieval": Comparable(
        read_questions,
        lambda row: row.id,
        _id,
        lambda row: row.category,
        retrieval_statistics,
        counts=lambda row: bool(row.evidence),
    ),
    "gate": Comparable(read_gate_texts, lambda row: row.id, _id, lambda row: row.sort, _gate_statistics),
    "pairs": Comparable(read_statement_pairs, lambda row: row.pair_id, _id, _no_category, _pair_statistics),
    "sensitive": Comparable(read_texts, lambda row: row.id, _id, _no_category, _sensitive_statistics),
    "guard": Comparable(
        lambda paths: read_suspects(paths, []), lambda row: row.id, _id, lambda row: row.set, _guard_statistics
    ),
    "dates": Comparable(
        read_expressions,
        lambda row: f"{row.now} {row.text}",
        lambda answer: f"{answer['now']} {answer['text']}",
        lambda row: row.script,
        _date_statistics,
    ),
}
