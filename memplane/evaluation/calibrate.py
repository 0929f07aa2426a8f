"""Fits the two maps of an embedding model on labelled pairs, and measures how they do on pairs held out.

What ships is fitted on all pairs. Half of them, by a hash of their texts, are held out of a second fit, and the figures
tell how that one does on them.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeVar

import numpy as np

from memplane.evaluation.pairs import LabelledAnswer, LabelledPair, PairsFile
from memplane.evaluation.relevance_fit import ODDS, Asked, FittedCurve, fit_curve, measure_relevance
from memplane.evaluation.similarity_fit import (
    Floats,
    Knots,
    Pairs,
    fit_similarity,
    measure_similarity,
    same_cosine,
    spread_knots,
)
from memplane.language import is_chinese

LEAST_PAIRS = 40
"""Pairs of each label that a similarity needs, and graded pairs of a language for it to have a curve of its own."""
LEAST_QUESTIONS = 20
"""Questions of a language that a curve of its own needs. Both numbers are unmeasured."""
SHUFFLE = 7
"""Each pair's first text is set against the second text of the pair so many lines further, as unrelated."""

T = TypeVar("T")
Memories = tuple[Sequence[str], Sequence[str]]
"""A question's relevant and unrelated ones."""


class TooFew(Exception):
    """The file does not hold what a fit needs; the text says how many there are and how many it takes."""


@dataclass(frozen=True)
class Vectors:
    """Unit vectors by text, as questions and as memories, and the name of the model that made them."""

    model: str
    questions: Mapping[str, Floats]
    passages: Mapping[str, Floats]

    def cosines(self, question: str, memories: Sequence[str]) -> Floats:
        """The cosine of each memory with a question."""
        vector = self.questions[question]
        return np.array([self.passages[memory] @ vector for memory in memories])


def require_enough(file: PairsFile) -> None:
    """Raises TooFew unless every kind of pairs in the file, one at least, is enough for its fit."""
    if not file.pairs and not file.answers:
        raise TooFew("the file holds no pairs")
    counts = [sum(pair.same == value for pair in file.pairs) for value in (1, 0)]
    if file.pairs and min(counts) < LEAST_PAIRS:
        raise TooFew(f"{counts[0]} same and {counts[1]} different pairs; it takes {LEAST_PAIRS} of each")
    asked = {language: len(questions) for language, questions in _by_language(file.answers).items()}
    if file.answers and max(asked.values()) < LEAST_QUESTIONS:
        found = " and ".join(f"{count} {language}" for language, count in asked.items())
        raise TooFew(
            f"questions with relevant and unrelated memories: {found}; it takes {LEAST_QUESTIONS} of a language"
        )


def calibrate(file: PairsFile, vectors: Vectors) -> dict[str, Any]:
    """The calibration as it is written: `model`, and `similarity` and `relevance` as far as the file has pairs.

    Raises TooFew, or NotRising when relevant memories are no nearer than others.
    """
    require_enough(file)
    fitted: dict[str, Any] = {"model": vectors.model}
    if file.pairs:
        fitted["similarity"] = _similarity(file.pairs, vectors)
    if file.answers:
        fitted["relevance"] = _relevance(file.answers, vectors)
    return fitted


def _similarity(pairs: Sequence[LabelledPair], vectors: Vectors) -> dict[str, Any]:
    fit, held_out = _halves(pairs, lambda pair: f"{pair.a}\0{pair.b}")
    return {
        "knots": _knots(pairs, vectors),
        "pairs": len(pairs),
        "same_from_cosine": same_cosine([_measured(pairs, vectors)]),
        "held_out": measure_similarity(_measured(held_out, vectors), _knots(fit, vectors)),
    }


def _relevance(answers: Sequence[LabelledAnswer], vectors: Vectors) -> dict[str, Any]:
    asked = {language: _asked(questions, vectors) for language, questions in _by_language(answers).items()}
    enough = {language: questions for language, questions in asked.items() if len(questions) >= LEAST_QUESTIONS}
    curves = {language: fit_curve([list(questions.values())]) for language, questions in enough.items()}
    return {
        "odds": ODDS,
        "curves": {language: _curve(curves, language) for language in asked},
        "held_out": {language: _held_out(questions) for language, questions in enough.items()},
    }


def _curve(curves: Mapping[str, FittedCurve], language: str) -> dict[str, Any]:
    of = language if language in curves else next(iter(curves))  # the only one there is
    return {"slope": curves[of].slope, "even_at": curves[of].even_at, "questions": of}


def _held_out(asked: Mapping[str, Asked]) -> dict[str, float]:
    fit, held_out = _halves(list(asked), lambda question: question)
    return measure_relevance([asked[text] for text in held_out], fit_curve([[asked[text] for text in fit]]))


def _by_language(answers: Sequence[LabelledAnswer]) -> dict[str, dict[str, Memories]]:
    """The memories of each question, by its language.

    A question for which no unrelated memory is named has those of all other questions of its language. Questions
    without a relevant memory, or without any unrelated one, are left out.
    """
    return {
        language: _by_question([answer for answer in answers if is_chinese(answer.question) is chinese])
        for language, chinese in (("chinese", True), ("other", False))
    }


def _by_question(answers: Sequence[LabelledAnswer]) -> dict[str, Memories]:
    named: dict[str, tuple[dict[str, None], dict[str, None]]] = {}
    for answer in answers:
        named.setdefault(answer.question, ({}, {}))[0 if answer.relevant else 1][answer.memory] = None
    everything = dict.fromkeys(answer.memory for answer in answers)
    found: dict[str, Memories] = {}
    for question, (relevant, unrelated) in named.items():
        others = [memory for memory in unrelated or everything if memory not in relevant]
        if relevant and others:
            found[question] = (list(relevant), others)
    return found


def _asked(questions: Mapping[str, Memories], vectors: Vectors) -> dict[str, Asked]:
    return {
        question: Asked(*(vectors.cosines(question, memories) for memories in (relevant, unrelated)))
        for question, (relevant, unrelated) in questions.items()
    }


def _knots(pairs: Sequence[LabelledPair], vectors: Vectors) -> Knots:
    everything = _measured(pairs, vectors)
    same_from = same_cosine([everything])
    spread = spread_knots(everything, float(everything.cosines.max()) if same_from is None else same_from)
    return fit_similarity(_graded(pairs, vectors), [everything], spread)


def _graded(pairs: Sequence[LabelledPair], vectors: Vectors) -> list[Pairs]:
    """The graded pairs, by language where both have enough; labels are the grades where there are none to speak of."""
    graded = [pair for pair in pairs if not math.isnan(pair.grade)]
    if len(graded) < LEAST_PAIRS:
        graded = [LabelledPair(pair.a, pair.b, pair.same, float(pair.same)) for pair in pairs if pair.same >= 0]
    languages = [[pair for pair in graded if is_chinese(pair.a) is chinese] for chinese in (True, False)]
    sets = languages if min(map(len, languages)) >= LEAST_PAIRS else [graded]
    return [_measured(each, vectors) for each in sets]


def _measured(pairs: Sequence[LabelledPair], vectors: Vectors) -> Pairs:
    left = np.array([vectors.passages[pair.a] for pair in pairs])
    right = np.array([vectors.passages[pair.b] for pair in pairs])
    return Pairs(
        (left * right).sum(1),
        np.array([pair.grade for pair in pairs]),
        np.array([pair.same for pair in pairs]),
        (left * np.roll(right, SHUFFLE, axis=0)).sum(1),
    )


def _halves(items: Sequence[T], text: Callable[[T], str]) -> tuple[list[T], list[T]]:
    halves: tuple[list[T], list[T]] = ([], [])
    for item in items:
        halves[blake2b(text(item).encode("utf-8", "replace"), digest_size=1).digest()[0] % 2].append(item)
    return halves
