import json
from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest

from memplane.evaluation.calibrate import TooFew, Vectors, calibrate, require_enough
from memplane.evaluation.pairs import LabelledAnswer, LabelledPair, PairsFile
from memplane.evaluation.relevance_fit import NotRising

NAN = float("nan")


def vectors(file: PairsFile, group_of: Callable[[str], str], noise: float = 0.3) -> Vectors:
    """Texts of one group lie near each other; the group is the text up to its last word by default."""
    generator = np.random.default_rng(3)
    centres: dict[str, np.ndarray] = {}

    def made(text: str) -> np.ndarray:
        centre = centres.setdefault(group_of(text), generator.normal(size=32))
        vector = centre + noise * generator.normal(size=32)
        return np.asarray(vector / np.linalg.norm(vector))

    return Vectors(
        "a-model", {text: made(text) for text in file.questions}, {text: made(text) for text in file.passages}
    )


def group(text: str) -> str:
    return text.rpartition(" ")[0]


def pairs(count: int = 60, language: str = "pair") -> list[LabelledPair]:
    same = [LabelledPair(f"{language} {n} a", f"{language} {n} b", 1, NAN) for n in range(count)]
    return same + [LabelledPair(f"{language} {n} c", f"{language} {n + count} d", 0, NAN) for n in range(count)]


def answers(count: int = 40, word: str = "topic") -> list[LabelledAnswer]:
    return [LabelledAnswer(f"{word} {n} asked", f"{word} {n} told", relevant=True) for n in range(count)]


def test_both_maps_are_fitted_and_measured_on_pairs_held_out() -> None:
    file = PairsFile(pairs(), [*answers(), *answers(30, "话题")])
    fitted = calibrate(file, vectors(file, group))
    assert json.loads(json.dumps(fitted))["model"] == "a-model"
    knots = fitted["similarity"]["knots"]
    assert all(left < right and low < high for (left, low), (right, high) in pairwise(knots))
    assert fitted["similarity"]["held_out"]["precision_at_same"] >= 0.9
    assert 0 < fitted["similarity"]["held_out"]["pairs"] < 120
    held_out = fitted["relevance"]["held_out"]
    assert {language: found["best_relevant"] > 0.5 for language, found in held_out.items()} == {
        "chinese": True,
        "other": True,
    }


def test_a_language_without_questions_takes_the_curve_of_the_other() -> None:
    file = PairsFile([], answers())
    fitted = calibrate(file, vectors(file, group))
    assert "similarity" not in fitted
    curves = fitted["relevance"]["curves"]
    assert curves["chinese"] == curves["other"]
    assert curves["chinese"]["questions"] == "other"


def test_unrelated_memories_that_are_named_stand_instead_of_all_others() -> None:
    named = [LabelledAnswer(f"topic {n} asked", f"near {n} miss", relevant=False) for n in range(40)]
    file = PairsFile([], [*answers(), *named])
    fitted = calibrate(file, vectors(file, group))
    plain = calibrate(PairsFile([], answers()), vectors(file, group))
    assert fitted["relevance"]["held_out"]["other"] != plain["relevance"]["held_out"]["other"]


def test_grades_shape_the_map_where_there_are_enough() -> None:
    graded = [LabelledPair(pair.a, pair.b, pair.same, 1.0 if pair.same else 0.4) for pair in pairs()]
    labelled, file = PairsFile(pairs(), []), PairsFile(graded, [])
    by_label = calibrate(labelled, vectors(labelled, group))["similarity"]["knots"]
    by_grade = calibrate(file, vectors(file, group))["similarity"]["knots"]
    assert sum(value for _, value in by_grade) > sum(value for _, value in by_label) + 1


@pytest.mark.parametrize(
    ("file", "words"),
    [
        (PairsFile([], []), "holds no pairs"),
        (PairsFile(pairs(20), []), "20 same and 20 different pairs; it takes 40 of each"),
        (PairsFile(pairs()[:60], []), "60 same and 0 different pairs"),
        (PairsFile([], answers(9)), "0 chinese and 9 other; it takes 20 of a language"),
        (PairsFile([], [LabelledAnswer("who?", "he", relevant=False)] * 50), "0 chinese and 0 other"),
    ],
)
def test_too_few_pairs_are_refused_before_anything_is_embedded(file: PairsFile, words: str) -> None:
    with pytest.raises(TooFew, match=words):
        require_enough(file)


def test_a_model_that_knows_nothing_of_the_answers_is_refused() -> None:
    file = PairsFile([], answers())
    found = vectors(file, group)
    wrong = Vectors("a-model", {q: -v for q, v in found.questions.items()}, found.passages)
    with pytest.raises(NotRising):
        calibrate(file, wrong)
