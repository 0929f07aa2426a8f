"""Worked examples: each number is worked out by hand from the formula of its profile."""

from math import exp
from typing import Any

import pytest

from dataplane.logic.intent import Intent
from dataplane.logic.rank import Ranked, Ranking, RankInput, rank
from dataplane.model import DAY_US, Kind, SourceType
from memplane.policy.model import Credibility, DecayPolicy
from memplane.policy.retrieve import (
    Freshness,
    KindDays,
    OrchestratedPolicy,
    OrchestratedWeights,
    ProfileName,
    RetrievePolicy,
    Weights,
)
from tests.unit.dataplane.logic.examples import a_candidate

NOW_US = 1_800_000_000_000_000
OLD = Weights(vector=0.0, freshness=1.0, frequency=0.0, credibility=0.0)
ORCHESTRATED = RetrievePolicy(profile="orchestrated")


def days_old(days: float) -> int:
    return NOW_US - int(days * DAY_US)


def hit(
    policy: RetrievePolicy, vector: float, *, text: float | None = None, uses: int = 0, task: str = "", **fields: Any
) -> Ranked:
    item = RankInput(a_candidate(uses, **fields), vector, text)
    [found] = rank([item], Ranking(policy, DecayPolicy(), Credibility(), NOW_US, Intent(), task))
    return found


def test_balanced_adds_up_six_tenths_of_relevance_whatever_the_weights() -> None:
    fields: dict[str, Any] = {"event_time_us": days_old(30), "source_type": SourceType.AGENT, "uses": 3}
    for weights in (Weights(), Weights(vector=5.0, freshness=0.0, frequency=3.0, credibility=0.0)):
        found = hit(RetrievePolicy(profile="balanced", weights=weights), 0.8, **fields)
        # 0.6 × 0.8 + 0.2 × e⁻¹ + 0.1 × 1 + 0.1 × 0.7 = 0.48 + 0.0736 + 0.1 + 0.07
        assert found.score == pytest.approx(0.7236, abs=1e-4)
        assert found.confidence == found.score


def test_balanced_equals_weighted_with_its_weights() -> None:
    fields: dict[str, Any] = {"event_time_us": days_old(12), "source_type": SourceType.LLM, "uses": 2, "text": 0.4}
    scores = [hit(RetrievePolicy(profile=name), 0.37, **fields).score for name in ("weighted", "balanced")]
    assert scores[0] == pytest.approx(scores[1])


def test_orchestrated_adds_up_recency_relevance_authority_and_task() -> None:
    fields: dict[str, Any] = {
        "event_time_us": days_old(7),
        "kind": Kind.EPISODE,
        "source_type": SourceType.AGENT,
        "category": "Billing",
    }
    # 0.3 × e⁻¹ + 0.4 × 0.8 + 0.2 × 0.7 + 0.1 × 1 = 0.1104 + 0.32 + 0.14 + 0.1
    assert hit(ORCHESTRATED, 0.8, task="billing", **fields).score == pytest.approx(0.6704, abs=1e-4)
    assert hit(ORCHESTRATED, 0.8, task="travel", **fields).score == pytest.approx(0.5704, abs=1e-4)
    assert hit(ORCHESTRATED, 0.8, task="travel", uses=9, **fields).score == pytest.approx(0.5704, abs=1e-4)


@pytest.mark.parametrize(("kind", "days"), [(Kind[name], days) for name, days in KindDays().model_dump().items()])
def test_recency_has_fallen_to_a_third_after_the_time_of_its_kind(kind: Kind, days: float) -> None:
    found = hit(ORCHESTRATED, 0.5, kind=kind, event_time_us=days_old(days))
    assert found.signals.freshness == pytest.approx(exp(-1))


def test_a_category_has_its_own_time_in_every_sum() -> None:
    freshness = Freshness(by_category={"sales_data": 2.0})
    for profile in ("weighted", "balanced", "orchestrated"):
        policy = RetrievePolicy(profile=profile, freshness=freshness)
        found = hit(policy, 0.5, category="sales_data", event_time_us=days_old(2))
        assert found.signals.freshness == pytest.approx(exp(-1))


def test_the_weights_of_orchestrated_are_divided_by_their_sum() -> None:
    weights = OrchestratedWeights(recency=0.0, relevance=3.0, authority=1.0, task_alignment=0.0)
    policy = RetrievePolicy(profile="orchestrated", orchestrated=OrchestratedPolicy(weights=weights))
    assert hit(policy, 0.8, source_type=SourceType.HUMAN).score == pytest.approx(0.75 * 0.8 + 0.25)


@pytest.mark.parametrize(("profile", "share"), [("balanced", 0.6), ("orchestrated", 0.4)])
def test_relevance_is_made_of_meaning_and_words_as_the_weights_divide_it(profile: ProfileName, share: float) -> None:
    by_meaning = RetrievePolicy(profile=profile)
    by_both = RetrievePolicy(profile=profile, weights=Weights(vector=1.0, text=3.0))
    difference = hit(by_both, 0.4, text=0.8).score - hit(by_meaning, 0.4, text=0.8).score
    assert difference == pytest.approx(share * ((0.4 + 3 * 0.8) / 4 - 0.4))
    of_none = RetrievePolicy(profile=profile, weights=OLD)
    assert hit(of_none, 0.4, text=0.8).score == pytest.approx(hit(by_meaning, 0.4, text=0.8).score)
