import pytest

from dataplane.logic.strength import after_hit, is_cold, strength_at
from dataplane.model import DAY_US
from memplane.policy.model import DecayPolicy
from tests.unit.dataplane.logic.examples import a_memory

POLICY = DecayPolicy()


def test_a_month_takes_the_monthly_decay() -> None:
    assert strength_at(1.0, 0, 30 * DAY_US, POLICY) == pytest.approx(0.9)
    assert strength_at(1.0, 0, 15 * DAY_US, POLICY) == pytest.approx(0.95)


def test_strength_never_falls_below_zero_nor_decays_before_its_anchor() -> None:
    assert strength_at(1.0, 0, 10_000 * DAY_US, POLICY) == 0.0
    assert strength_at(1.0, 30 * DAY_US, 0, POLICY) == 1.0


def test_a_hit_raises_up_to_the_maximum() -> None:
    assert after_hit(1.0, 0, 30 * DAY_US, POLICY) == pytest.approx(1.0)
    assert after_hit(1.95, 0, 0, POLICY) == 2.0


def test_a_memory_is_cold_below_the_threshold_and_not_at_it() -> None:
    policy = DecayPolicy(initial_strength=1.0, monthly_decay=0.5, cold_threshold=0.5)
    memory = a_memory(strength=1.0, strength_time_us=0)
    assert not is_cold(memory, 30 * DAY_US, policy)
    assert is_cold(memory, 30 * DAY_US + DAY_US, policy)
