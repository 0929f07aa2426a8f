"""What holds in every profile."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import get_args

import pytest

from dataplane.logic.intent import Intent, read_intent
from dataplane.logic.profiles.table import FORMULAS, formula_of
from dataplane.logic.rank import Ranking, RankInput, rank
from dataplane.model import DAY_US
from memplane.policy.model import Credibility, DecayPolicy
from memplane.policy.retrieve import ProfileName, RetrievePolicy
from tests.unit.dataplane.logic.examples import a_candidate

NOW_US = int(datetime(2026, 12, 4, tzinfo=UTC).timestamp()) * 1_000_000
PROFILES = get_args(ProfileName)

each_profile = pytest.mark.parametrize("profile", PROFILES)


def item(
    memory_id: str, vector: float | None, text: float | None = None, days: float = 0.0, uses: int = 0
) -> RankInput:
    told_us = NOW_US - int(days * DAY_US)
    candidate = a_candidate(uses, memory_id=memory_id, event_time_us=told_us, access_count=uses)
    return RankInput(candidate, vector, text)


def order(items: list[RankInput], profile: ProfileName, intent: Intent | None = None) -> list[str]:
    policy = RetrievePolicy(profile=profile)
    ranking = Ranking(policy, DecayPolicy(), Credibility(), NOW_US, intent or Intent())
    return [one.candidate.memory.memory_id for one in rank(items, ranking)]


def test_every_profile_of_the_policy_has_a_formula() -> None:
    assert tuple(FORMULAS) == PROFILES


@each_profile
def test_the_weights_of_a_profile_sum_to_one(profile: ProfileName) -> None:
    assert formula_of(RetrievePolicy(profile=profile)).weights.total() == pytest.approx(1.0)


@each_profile
def test_what_holds_the_identifier_comes_first(profile: ProfileName) -> None:
    held = replace(item("mem_held", 0.3, 1.0, days=200), identifiers_held=1)
    assert order([item("mem_other", 0.9, 0.2, uses=50), held], profile, Intent(("inv-1",))) == ["mem_held", "mem_other"]


@each_profile
def test_the_latest_is_the_newest_of_those_that_answer(profile: ProfileName) -> None:
    items = [item("mem_old", 0.9, days=100), item("mem_new", 0.85, days=2), item("mem_beside", 0.2, days=0, uses=9)]
    assert order(items, profile, Intent((), wants_recent=True)) == ["mem_new", "mem_old", "mem_beside"]


@each_profile
def test_words_rank_when_nothing_has_a_meaning(profile: ProfileName) -> None:
    assert order([item("mem_a", None, 0.2), item("mem_b", None, 1.0)], profile) == ["mem_b", "mem_a"]


@each_profile
def test_what_was_told_in_the_time_asked_about_comes_first(profile: ProfileName) -> None:
    asked = read_intent("what did we order in October 2026", (), NOW_US)
    assert asked.period is not None
    assert order([item("mem_today", 0.8), item("mem_then", 0.8, days=45)], profile, asked) == ["mem_then", "mem_today"]


@each_profile
def test_equals_are_in_order_of_id(profile: ProfileName) -> None:
    assert order([item("mem_b", 0.5), item("mem_a", 0.5)], profile) == ["mem_a", "mem_b"]
