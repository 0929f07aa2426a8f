"""Worked examples of the companion's formula."""

from math import exp
from typing import Any

import pytest

from dataplane.logic.intent import Intent
from dataplane.logic.profiles.table import least_confidence
from dataplane.logic.rank import Ranked, Ranking, RankInput, rank
from dataplane.model import DAY_US, SourceType
from memplane.policy.model import Credibility, DecayPolicy
from memplane.policy.retrieve import CompanionPolicy, RetrievePolicy, Weights
from tests.unit.dataplane.logic.examples import a_candidate

NOW_US = 1_800_000_000_000_000
COMPANION = RetrievePolicy(profile="companion")


def days_ago(days: float) -> int:
    return NOW_US - int(days * DAY_US)


def hit(vector: float | None, policy: RetrievePolicy = COMPANION, text: float | None = None, **fields: Any) -> Ranked:
    fields.setdefault("event_time_us", NOW_US)
    item = RankInput(a_candidate(**fields), vector, text)
    [found] = rank([item], Ranking(policy, DecayPolicy(), Credibility(), NOW_US, Intent()))
    return found


def test_the_score_is_the_product_of_similarity_rest_source_and_uses() -> None:
    found = hit(0.87, last_access_time_us=days_ago(12), access_count=3, source_type=SourceType.USER)
    # 0.87 × e^(−0.12) × 0.9 × (1 + 0.1 × ln 4) = 0.87 × 0.8869 × 0.9 × 1.1386
    assert found.score == pytest.approx(0.7907, abs=1e-4)
    assert (found.signals.freshness, found.signals.boost) == pytest.approx((0.8869, 1.1386), abs=1e-4)


def test_a_memory_counts_from_its_last_use_else_from_when_it_was_told() -> None:
    used = hit(1.0, event_time_us=days_ago(300), last_access_time_us=days_ago(10), access_count=1)
    told = hit(1.0, event_time_us=days_ago(20), create_time_us=days_ago(3))
    created = hit(1.0, event_time_us=None, create_time_us=days_ago(30))
    unknown = hit(1.0, event_time_us=None, create_time_us=0)
    found = [one.signals.freshness for one in (used, told, created, unknown)]
    assert found == pytest.approx([exp(-0.1), exp(-0.2), exp(-0.3), 0.5])
    assert (used.idle_us, told.idle_us) == (10 * DAY_US, None)


def test_a_use_after_the_reference_time_is_as_recent_as_can_be() -> None:
    assert hit(1.0, last_access_time_us=NOW_US + DAY_US, access_count=1).signals.freshness == 1.0
    assert hit(1.0, event_time_us=NOW_US + DAY_US).signals.freshness == 1.0


def test_uses_count_up_to_the_greatest_boost() -> None:
    assert hit(0.5).signals.boost == 1.0
    assert hit(0.5, access_count=147).signals.boost == pytest.approx(1.4997, abs=1e-4)
    assert hit(0.5, access_count=10_000).signals.boost == 1.5
    steeper = RetrievePolicy(profile="companion", companion=CompanionPolicy(use_gain=1.0, max_boost=1.2))
    assert hit(0.5, steeper, access_count=1).signals.boost == 1.2


def test_confidence_is_the_score_cut_at_one() -> None:
    found = hit(1.0, access_count=10_000, source_type=SourceType.HUMAN, last_access_time_us=NOW_US)
    assert (found.score, found.confidence) == (1.5, 1.0)


@pytest.mark.parametrize("decay_per_day", [0.005, 0.02, 0.0])
def test_the_days_of_rest_weigh_as_the_policy_says(decay_per_day: float) -> None:
    policy = RetrievePolicy(profile="companion", companion=CompanionPolicy(decay_per_day=decay_per_day))
    assert hit(1.0, policy, event_time_us=days_ago(50)).signals.freshness == pytest.approx(exp(-50 * decay_per_day))


def test_similarity_is_of_words_where_nothing_has_a_meaning() -> None:
    assert hit(None, text=0.8).score == pytest.approx(0.8 * 0.9)
    both = RetrievePolicy(profile="companion", weights=Weights(vector=0.5, text=0.5))
    assert hit(0.4, both, text=0.8).score == pytest.approx(0.6 * 0.9)


def test_the_floor_is_the_profiles_unless_the_call_names_one() -> None:
    assert least_confidence(COMPANION) == 0.6
    assert least_confidence(COMPANION, 0.1) == 0.1
    assert least_confidence(COMPANION, 0.0) == 0.0
    assert least_confidence(RetrievePolicy(profile="companion", min_confidence=0.7)) == 0.7
    assert least_confidence(RetrievePolicy(min_confidence=0.2)) == 0.2
    assert least_confidence(RetrievePolicy(profile="balanced")) == 0.0
