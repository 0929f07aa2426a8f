"""Reads the pairs that a calibration is fitted on, one JSON object a line, of two kinds that may be mixed.

    {"a": "She likes tea.", "b": "Tea is what she likes.", "label": "same"}
    {"a": "She likes tea.", "b": "She drinks coffee.", "grade": 0.4}
    {"question": "What does she drink?", "memory": "She likes tea.", "relevant": true}

Two memories are `same` or `different` statements; `grade` says instead, or in addition, how alike they are, 0 to 1.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memplane.evaluation.dataset import BadDataset, json_rows, text_field

LABELS = {"same": 1, "different": 0}
SAME_GRADE, DIFFERENT_GRADE = 0.9, 0.6
"""Without a label, pairs graded from the one on are the same, those below the other are not."""


@dataclass(frozen=True)
class LabelledPair:
    """Two memories: `same` 1, 0, or −1 where that is not said; `grade` 0 to 1, NaN where it is not said."""

    a: str
    b: str
    same: int
    grade: float


@dataclass(frozen=True)
class LabelledAnswer:
    """A question, a memory, and whether that says something about it."""

    question: str
    memory: str
    relevant: bool


@dataclass(frozen=True)
class PairsFile:
    """What a file holds, of each kind in the order of its lines."""

    pairs: Sequence[LabelledPair]
    answers: Sequence[LabelledAnswer]

    @property
    def questions(self) -> list[str]:
        """Every text to be embedded as a question, once."""
        return list(dict.fromkeys(answer.question for answer in self.answers))

    @property
    def passages(self) -> list[str]:
        """Every text to be embedded as a memory, once."""
        paired = [text for pair in self.pairs for text in (pair.a, pair.b)]
        return list(dict.fromkeys((*paired, *(answer.memory for answer in self.answers))))


def read_pairs(path: Path) -> PairsFile:
    """The pairs of a file. Raises BadDataset, which names the line and what is wrong there."""
    pairs, answers = [], []
    for place, row in json_rows(path):
        if "question" in row:
            answers.append(_answer(place, row))
        elif "a" in row:
            pairs.append(_pair(place, row))
        else:
            raise BadDataset(f'{place}: neither "a", "b" and "label" nor "question", "memory" and "relevant"')
    return PairsFile(pairs, answers)


def _answer(place: str, row: Mapping[str, Any]) -> LabelledAnswer:
    relevant = row.get("relevant")
    if not isinstance(relevant, bool):
        raise BadDataset(f"{place}: relevant must be true or false, got {relevant!r}")
    return LabelledAnswer(text_field(place, row, "question"), text_field(place, row, "memory"), relevant)


def _pair(place: str, row: Mapping[str, Any]) -> LabelledPair:
    label, grade = row.get("label"), row.get("grade")
    if label not in (*LABELS, None) or (label is None and grade is None):
        raise BadDataset(f'{place}: label must be "same" or "different", got {label!r}')
    if grade is not None and (isinstance(grade, bool) or not isinstance(grade, int | float) or not 0 <= grade <= 1):
        raise BadDataset(f"{place}: grade must be a number from 0 to 1, got {grade!r}")
    number = math.nan if grade is None else float(grade)
    same = _same(number) if label is None else LABELS[str(label)]
    return LabelledPair(text_field(place, row, "a"), text_field(place, row, "b"), same, number)


def _same(grade: float) -> int:
    return 1 if grade >= SAME_GRADE else 0 if grade < DIFFERENT_GRADE else -1
