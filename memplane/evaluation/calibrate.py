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


class TooFew(Exception):
    """The file does not hold what a fit needs; the text says how many there are and how many it takes."""


@dataclass(frozen=True)
class Vectors:
    """Unit vectors by text, as questions and as memories, and the name of the model that made them."""

    model: str
    questions: Mapping[str, Floats]
    passages: Mapping[str, Floats]


def calibrate(file: PairsFile, vectors: Vectors) -> dict[str, Any]:
    """The calibration as it is written: `model`, and `similarity` and `relevance` as far as the file has pairs.

    Raises TooFew, or NotRising when relevant memories are no nearer than others.
    """
    fitted: dict[str, Any] = {"model": vectors.model}
    if file.pairs:
        fitted["similarity"] = calibrate_similarity(file.pairs, vectors)
    if file.answers:
        fitted["relevance"] = calibrate_relevance(file.answers, vectors)
    if len(fitted) == 1:
        raise TooFew("the file holds no pairs")
    return fitted


def calibrate_similarity(pairs: Sequence[LabelledPair], vectors: Vectors) -> dict[str, Any]:
    """Knots, and how a fit on half of the pairs does on the other half."""
    counts = [sum(pair.same == value for pair in pairs) for value in (1, 0)]
    if min(counts) < LEAST_PAIRS:
        raise TooFew(f"{counts[0]} same and {counts[1]} different pairs; it takes {LEAST_PAIRS} of each")
    fit, held_out = _halves(pairs, lambda pair: f"{pair.a}\0{pair.b}")
    everything = _measured(pairs, vectors)
    return {
        "knots": _knots(pairs, vectors),
        "pairs": len(pairs),
        "same_from_cosine": same_cosine([everything]),
        "held_out": measure_similarity(_measured(held_out, vectors), _knots(fit, vectors)),
    }


def calibrate_relevance(answers: Sequence[LabelledAnswer], vectors: Vectors) -> dict[str, Any]:
    """A curve for each language, and how curves of half of the questions do on the other half."""
    asked = {
        language: _asked([answer for answer in answers if is_chinese(answer.question) is chinese], vectors)
        for language, chinese in (("chinese", True), ("other", False))
    }
    enough = {language: questions for language, questions in asked.items() if len(questions) >= LEAST_QUESTIONS}
    if not enough:
        counts = " and ".join(f"{len(questions)} {language}" for language, questions in asked.items())
        raise TooFew(f"questions with relevant and unrelated memories: {counts}; it takes {LEAST_QUESTIONS} of one")
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


def _asked(answers: Sequence[LabelledAnswer], vectors: Vectors) -> dict[str, Asked]:
    """The cosines by question. One for which no unrelated memory is named has those of all other questions.

    Questions without a relevant memory, or without any unrelated one, are left out.
    """
    memories = dict.fromkeys(answer.memory for answer in answers)
    of: dict[str, tuple[set[str], set[str]]] = {}
    for answer in answers:
        of.setdefault(answer.question, (set(), set()))[0 if answer.relevant else 1].add(answer.memory)
    found = {}
    for question, (relevant, unrelated) in of.items():
        others = sorted(unrelated - relevant) or [memory for memory in memories if memory not in relevant]
        if relevant and others:
            vector = vectors.questions[question]
            near, far = (
                np.array([vectors.passages[text] @ vector for text in texts]) for texts in (sorted(relevant), others)
            )
            found[question] = Asked(near, far)
    return found


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
