from dataclasses import replace
from pathlib import Path

import pytest

from memplane.evaluation.bootstrap import Draw
from memplane.evaluation.dataset import BadDataset, Group, read_groups
from memplane.evaluation.retrieval import PolicyRun, as_json, both_answered, retrieval_report
from memplane.evaluation.runner import Answer, LoadedGroup, report

EXAMPLES = Path(__file__).parents[4] / "docs" / "quality" / "examples"
SECONDS = {"load": 1.0, "ask": 2.0}


def groups() -> list[Group]:
    return read_groups(EXAMPLES / "memories.jsonl", EXAMPLES / "questions.jsonl")


def answered(name: str, right: bool) -> PolicyRun:
    questions = [question for group in groups() for question in group.questions]
    answers = [
        Answer(each, [*each.optional, each.evidence[0][0] if right else "g8"], degraded=False) for each in questions
    ]
    return PolicyRun(name, report([LoadedGroup(group, "ns") for group in groups()], answers), answers, SECONDS)


def test_one_policy_is_told_by_category_with_the_worst_questions_and_their_lists() -> None:
    found = retrieval_report(groups(), [answered("evaluation", right=False)], Draw(resamples=100))
    assert found.data == as_json(answered("evaluation", right=False))
    assert [table.title for table in found.tables] == ["By category"]
    assert found.tables[0].rows[-1][:2] == ("all", 10)
    heated = next(case for case in found.worst if case.facts["id"] == "qg1")
    assert heated.text == "How is the greenhouse heated?"
    assert [(item.right, item.note) for item in heated.expected] == [(False, "g2, Iris, 2024-03-02; not found")]
    assert [item.text for item in heated.got] == ["The water butt holds two hundred litres."]
    context = next(case for case in found.worst if case.facts["id"] == "qc4")
    assert context.text == "我在用三号车床。 / 在哪里能找到它的操作手册？"


def test_questions_that_are_not_scored_are_not_compared() -> None:
    old, new = (answered(name, right=name == "new").answers for name in ("old", "new"))
    unscored = replace(old[0], question=replace(old[0].question, evidence=[]))
    assert len(both_answered([unscored, *old[1:]], new).rows) == len(old) - 1
    with pytest.raises(BadDataset, match="no row can be scored"):
        both_answered([unscored], new[:1])


def test_further_policies_are_compared_with_the_first() -> None:
    runs = [answered("old", right=False), answered("new", right=True)]
    found = retrieval_report(groups(), runs, Draw(resamples=100))
    assert [table.title for table in found.tables][:3] == [
        "By policy",
        "By category, policy old",
        "By category, policy new",
    ]
    assert found.data["comparisons"]["new"]["overall"]["recall_at_10"]["difference"] == 1.0
    assert set(found.data["policies"]) == {"old", "new"}
    assert found.worst == []
