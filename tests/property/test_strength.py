import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.logic.strength import after_hit, strength_at
from dataplane.model import DAY_US
from memplane.policy.model import DecayPolicy

INSTANTS = st.integers(min_value=0, max_value=4_000 * DAY_US)
STRENGTHS = st.floats(min_value=0.0, max_value=2.0)
POLICIES = st.builds(
    DecayPolicy,
    monthly_decay=st.floats(min_value=0.0, max_value=2.0),
    hit_increment=st.floats(min_value=0.0, max_value=1.0),
)


@given(STRENGTHS, INSTANTS, INSTANTS, INSTANTS, POLICIES)
@settings(max_examples=200)
def test_without_hits_strength_never_rises(
    strength: float, anchor_us: int, one_us: int, other_us: int, policy: DecayPolicy
) -> None:
    earlier, later = sorted((one_us, other_us))
    at_earlier = strength_at(strength, anchor_us, earlier, policy)
    assert strength >= at_earlier >= strength_at(strength, anchor_us, later, policy) >= 0.0


@given(STRENGTHS, INSTANTS, INSTANTS, POLICIES)
@settings(max_examples=200)
def test_moving_the_anchor_along_changes_nothing(
    strength: float, first_us: int, second_us: int, policy: DecayPolicy
) -> None:
    middle_us, end_us = sorted((first_us, second_us))
    through_middle = strength_at(strength_at(strength, 0, middle_us, policy), middle_us, end_us, policy)
    assert through_middle == pytest.approx(strength_at(strength, 0, end_us, policy), abs=1e-9)


@given(STRENGTHS, INSTANTS, INSTANTS, POLICIES)
@settings(max_examples=200)
def test_a_hit_never_weakens_nor_passes_the_maximum(
    strength: float, anchor_us: int, now_us: int, policy: DecayPolicy
) -> None:
    before = strength_at(strength, anchor_us, now_us, policy)
    assert before <= after_hit(strength, anchor_us, now_us, policy) <= policy.max_strength
