"""The compiled index and casbin answer alike, whatever the rules: random policies, random questions.

`python -m bench.access --questions 200000` asks many more.
"""

import random
from collections import Counter

import pytest

from controlplane import reference
from controlplane.reference import MOST_QUESTIONS, CasbinReference, Question, differences, index_allows
from memplane.policy.access import AccessIndex
from tests.access_rules import random_question, random_rbac


def compare(seed: int, policies: int, questions: int) -> Counter[bool]:
    """How often both allowed and both refused; fails at the first question that they differ on."""
    dice, counted = random.Random(seed), Counter[bool]()
    for _ in range(policies):
        rbac = random_rbac(dice)
        index, casbin = AccessIndex(rbac, None), CasbinReference(rbac)
        for _ in range(questions):
            question: Question = random_question(dice)
            allowed = index_allows(index, question)
            assert allowed == casbin.allows(question), (question, rbac.model_dump_json(exclude_defaults=True))
            counted[allowed] += 1
    return counted


def test_the_index_and_casbin_answer_alike() -> None:
    counted = compare(seed=5, policies=40, questions=50)
    assert counted.total() == 2_000
    assert min(counted.values()) > 150  # neither answer is rare


def test_a_section_is_compared_by_some_of_its_principals(monkeypatch: pytest.MonkeyPatch) -> None:
    rbac = random_rbac(random.Random(11))
    assert differences(rbac) == []
    monkeypatch.setattr(reference, "index_allows", lambda _index, _question: True)
    assert 0 < len(differences(rbac)) <= MOST_QUESTIONS
