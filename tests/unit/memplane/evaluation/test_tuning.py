from dataclasses import replace
from pathlib import Path

import yaml

from memplane.evaluation.bootstrap import Draw
from memplane.evaluation.comparable import TASKS
from memplane.evaluation.comparing import Answered
from memplane.evaluation.dataset import Group, read_groups
from memplane.evaluation.runner import LoadedGroup
from memplane.evaluation.tune_report import Tuned, fragment, tune_report
from memplane.evaluation.tuning import Setting, Trial, ascend, best_of, halves, nested, value_of

EXAMPLES = Path(__file__).parents[4] / "docs" / "quality" / "examples"
KEYS = {"weights.text": (0.0, 0.5, 1.0), "fusion.method": ("zscore", "rrf")}
START: Setting = {"weights.text": 0.0, "fusion.method": "zscore"}


def groups() -> list[Group]:
    return read_groups(EXAMPLES / "memories.jsonl", EXAMPLES / "questions.jsonl")


async def hill(setting: Setting) -> float:
    return float(setting["weights.text"]) / 2 - (setting["fusion.method"] == "rrf") * 0.1


async def test_every_key_is_climbed_and_nothing_is_tried_twice() -> None:
    trials = await ascend(hill, START, KEYS, 40)
    assert best_of(trials) == {"weights.text": 1.0, "fusion.method": "zscore"}
    assert len({tuple(trial.setting.items()) for trial in trials}) == len(trials)
    assert trials[0] == Trial(START, 0.0, kept=True)


async def test_trials_are_bounded() -> None:
    assert len(await ascend(hill, START, KEYS, 2)) == 3  # with the start


async def test_without_a_gain_the_start_stays() -> None:
    async def flat(_setting: Setting) -> float:
        return 0.5

    assert best_of(await ascend(flat, START, KEYS, 40)) == START


def test_halves_hold_whole_groups() -> None:
    training, held = halves([LoadedGroup(group, group.name) for group in groups()])
    assert {each.group.name for each in training} ^ {each.group.name for each in held} == {"garden", "车间"}


def test_a_single_group_is_divided_by_question() -> None:
    training, held = halves([LoadedGroup(groups()[0], "garden")])
    ids = [question.id for half in (training, held) for each in half for question in each.group.questions]
    assert sorted(ids) == ["qg1", "qg2", "qg3", "qg4", "qg5"]
    assert len(training[0].group.questions) == 2


def test_questions_that_are_not_scored_are_in_neither_half() -> None:
    garden = groups()[0]
    unscored = [replace(question, evidence=[]) for question in garden.questions[:3]]
    mixed = replace(garden, questions=[*unscored, *garden.questions[3:]])
    training, held = halves([LoadedGroup(mixed, "garden")])
    assert [len(half[0].group.questions) for half in (training, held)] == [1, 1]
    assert halves([LoadedGroup(replace(garden, questions=unscored), "garden")]) == ([], [])


def tuned(*gained: bool) -> Tuned:
    questions = [question for group in groups() for question in group.questions]
    before = [{"ids": ["none"]} for _ in questions]
    after = [
        {"ids": [question.evidence[0][0] if gained[place % len(gained)] else "none"]}
        for place, question in enumerate(questions)
    ]
    trials = [Trial(START, 0.1, kept=True), Trial({**START, "weights.text": 0.5}, 0.4, kept=True)]
    held = Answered(questions, before, after, [question.group for question in questions])
    return Tuned("recall_at_10", trials, START, held, TASKS["retrieval"], Draw(resamples=500))


def test_a_gain_that_holds_is_proposed() -> None:
    found = tuned(True)
    assert found.holds
    assert yaml.safe_load(fragment(found)) == {"retrieve_policy": {"weights": {"text": 0.5}}}
    assert tune_report(found).about["verdict"] == "take these values"


def test_a_gain_that_does_not_hold_is_none() -> None:
    found = tuned(False)
    assert not found.holds
    assert tune_report(found).about["verdict"] == "no gain: keep yours"


def test_values_are_numbers_where_they_can_be() -> None:
    assert [repr(value_of(text)) for text in ("2", "2.0", "0.5", "rrf")] == ["2", "2", "0.5", "'rrf'"]


def test_keys_become_sections() -> None:
    assert nested({"weights.text": 0.5, "weights.vector": 1.0, "top_k": 3}) == {
        "weights": {"text": 0.5, "vector": 1.0},
        "top_k": 3,
    }
