import pytest

from dataplane.logic.conflict import Claim, Resolution, Standing, are_equals, resolve
from dataplane.model import SourceType
from memplane.policy.model import ConflictPolicy

POLICY = ConflictPolicy()


def test_the_better_source_wins_though_it_is_older() -> None:
    human, model = Claim(SourceType.HUMAN, 1), Claim(SourceType.LLM, 2)
    assert resolve(model, human, POLICY) == Resolution(new_wins=False, rule="SOURCE_PRIORITY")
    assert resolve(human, model, POLICY) == Resolution(new_wins=True, rule="SOURCE_PRIORITY")


def test_between_equals_the_newer_statement_wins_whenever_it_arrives() -> None:
    early, late = Claim(SourceType.USER, 1), Claim(SourceType.USER, 2)
    assert resolve(late, early, POLICY) == Resolution(new_wins=True, rule="NEWEST")
    assert resolve(early, late, POLICY) == Resolution(new_wins=False, rule="NEWEST")


def test_an_exact_tie_goes_to_the_arrival() -> None:
    claim = Claim(SourceType.USER, 1)
    assert resolve(claim, claim, POLICY).new_wins


def test_types_that_the_policy_leaves_out_rank_last_and_equal() -> None:
    policy = ConflictPolicy(source_priority=("USER",))
    assert not resolve(Claim(SourceType.HUMAN, 9), Claim(SourceType.USER, 1), policy).new_wins
    assert resolve(Claim(SourceType.LLM, 9), Claim(SourceType.HUMAN, 1), policy).rule == "NEWEST"


@pytest.mark.parametrize("one", SourceType)
@pytest.mark.parametrize("other", SourceType)
def test_the_winner_does_not_depend_on_the_order_of_arrival(one: SourceType, other: SourceType) -> None:
    first, second = Claim(one, 1), Claim(other, 2)
    assert resolve(first, second, POLICY).new_wins != resolve(second, first, POLICY).new_wins


def test_statements_alike_in_source_and_confidence_are_equals() -> None:
    user = Standing(SourceType.USER, 0.9)
    assert are_equals(user, Standing(SourceType.USER, 0.85), POLICY)
    assert not are_equals(user, Standing(SourceType.USER, 0.5), POLICY)
    assert not are_equals(user, Standing(SourceType.LLM, 0.9), POLICY)
