"""What every ranking formula keeps, whatever the memory."""

from dataclasses import replace
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.logic.intent import Intent
from dataplane.logic.profiles.formula import Times
from dataplane.logic.profiles.signals import Signals
from dataplane.logic.profiles.table import formula_of
from dataplane.logic.rank import Ranking, RankInput, rank
from dataplane.model import DAY_US, Kind, SourceType
from memplane.policy.model import Credibility, DecayPolicy
from memplane.policy.retrieve import CompanionPolicy, ProfileName, RetrievePolicy, Weights
from tests.unit.dataplane.logic.examples import a_candidate, a_memory

NOW_US = 1_800_000_000_000_000
UNIT = st.floats(min_value=0.0, max_value=1.0)
NAMES = ("vector", "text", "freshness", "frequency", "credibility", "task_alignment")
AGES_US = st.integers(min_value=-10 * DAY_US, max_value=20_000 * DAY_US)

each_profile = pytest.mark.parametrize("profile", get_args(ProfileName))

signals = st.builds(
    Signals, UNIT, UNIT, UNIT, UNIT, UNIT, UNIT, strength=st.just(1.0), boost=st.floats(min_value=1.0, max_value=1.5)
)
weights = st.builds(Weights, vector=st.floats(min_value=0.1, max_value=2.0), text=UNIT, freshness=UNIT)
items = st.lists(
    st.builds(
        lambda number, age_us, idle_us, uses, kind, source, vector, text: RankInput(
            a_candidate(
                uses,
                memory_id=f"mem_{number}",
                event_time_us=NOW_US - age_us,
                last_access_time_us=None if idle_us is None else NOW_US - idle_us,
                access_count=uses,
                kind=kind,
                source_type=source,
            ),
            vector,
            text,
        ),
        st.integers(min_value=0, max_value=999),
        AGES_US,
        st.none() | AGES_US,
        st.integers(min_value=0, max_value=10**6),
        st.sampled_from(Kind),
        st.sampled_from(SourceType),
        st.none() | UNIT,
        st.none() | UNIT,
    ),
    max_size=8,
    unique_by=lambda item: item.candidate.memory.memory_id,
)


@each_profile
@given(given_signals=signals, given_weights=weights, name=st.sampled_from(NAMES), more=UNIT)
def test_more_of_a_signal_never_scores_less(
    profile: ProfileName, given_signals: Signals, given_weights: Weights, name: str, more: float
) -> None:
    formula = formula_of(RetrievePolicy(profile=profile, weights=given_weights))
    raised = replace(given_signals, **{name: max(more, getattr(given_signals, name))})
    assert formula.score(raised, formula.weights) >= formula.score(given_signals, formula.weights) - 1e-12


@each_profile
@given(given_signals=signals, given_weights=weights)
def test_a_score_lies_between_nothing_and_the_boost(
    profile: ProfileName, given_signals: Signals, given_weights: Weights
) -> None:
    formula = formula_of(RetrievePolicy(profile=profile, weights=given_weights))
    most = given_signals.boost if profile == "companion" else 1.0
    assert 0.0 <= formula.score(given_signals, formula.weights) <= most + 1e-9


@each_profile
@given(kind=st.sampled_from(Kind), first_us=AGES_US, second_us=AGES_US, is_used=st.booleans())
def test_freshness_falls_with_time_and_is_bounded(
    profile: ProfileName, kind: Kind, first_us: int, second_us: int, is_used: bool
) -> None:
    formula, memory = formula_of(RetrievePolicy(profile=profile)), a_memory(kind=kind)
    newer, older = (
        formula.freshness(memory, Times(time_us, time_us if is_used else None))
        for time_us in sorted((first_us, second_us))
    )
    assert 1.0 >= newer >= older >= 0.0


@given(uses=st.integers(min_value=0, max_value=10**9), gain=UNIT, most=st.floats(min_value=1.0, max_value=10.0))
def test_one_more_use_never_boosts_less_and_never_beyond_the_most(uses: int, gain: float, most: float) -> None:
    companion = CompanionPolicy(use_gain=gain, max_boost=most)
    formula = formula_of(RetrievePolicy(profile="companion", companion=companion))
    fewer, more = (formula.boost(a_memory(access_count=count)) for count in (uses, uses + 1))
    assert 1.0 <= fewer <= more <= most


@each_profile
@given(given_items=items)
def test_the_order_depends_on_the_hits_alone_and_confidence_is_bounded(
    profile: ProfileName, given_items: list[RankInput]
) -> None:
    ranking = Ranking(RetrievePolicy(profile=profile), DecayPolicy(), Credibility(), NOW_US, Intent())
    ranked = rank(given_items, ranking)
    assert rank(given_items[::-1], ranking) == ranked
    assert all(0.0 <= hit.confidence <= 1.0 for hit in ranked)
    keys = [(-hit.score, hit.candidate.memory.memory_id) for hit in ranked]
    assert keys == sorted(keys)
