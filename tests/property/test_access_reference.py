"""The compiled index and casbin answer alike, whatever the rules: random policies, random questions."""

import random
from collections import Counter

import pytest

from controlplane.reference import CasbinReference, Question, index_allows
from memplane.policy.access import AccessIndex
from tests.access_rules import random_question, random_rbac


def compare(seed: int, policies: int, questions: int) -> Counter[bool]:
    """How often both allowed and both refused; fails at the first question that they differ on."""
    dice, counted = random.Random(seed), Counter[bool]()
    for _ in range(policies):
        rbac = random_rbac(dice)
        index, reference = AccessIndex(rbac, None), CasbinReference(rbac)
        for _ in range(questions):
            question: Question = random_question(dice)
            allowed = index_allows(index, question)
            assert allowed == reference.allows(question), (question, rbac.model_dump_json(exclude_defaults=True))
            counted[allowed] += 1
    return counted


def test_the_index_and_casbin_answer_alike() -> None:
    counted = compare(seed=5, policies=60, questions=50)
    assert counted.total() == 3_000
    assert min(counted.values()) > 300  # neither answer is rare


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(4))
def test_the_index_and_casbin_answer_alike_over_200_000_questions(seed: int) -> None:
    assert compare(seed=100 + seed, policies=500, questions=100).total() == 50_000
