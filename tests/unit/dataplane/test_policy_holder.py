import asyncio
from math import inf

import pytest

from dataplane.policy_holder import PolicyHolder, PolicyOrigin
from memplane.errors import PolicyAbsence, PolicyNotLoaded
from memplane.policy.access import AccessIndex
from memplane.policy.degradation import DegradationPolicy, StaleAction
from memplane.policy.effective import EffectivePolicies
from memplane.policy.model import PolicySet
from memplane.policy.snapshot import PolicySnapshot

SNAPSHOT = PolicySnapshot("sha256:1", 1, 0, EffectivePolicies(PolicySet()), AccessIndex(None, None))


async def test_waiting_ends_with_the_first_policy() -> None:
    holder = PolicyHolder()
    waiting = asyncio.create_task(holder.wait_loaded())
    await asyncio.sleep(0)
    assert not waiting.done()
    holder.swap(SNAPSHOT, PolicyOrigin.LAST_GOOD, 7)
    assert await waiting is SNAPSHOT
    assert (holder.current, holder.origin, holder.loaded_time_us) == (SNAPSHOT, PolicyOrigin.LAST_GOOD, 7)


@pytest.mark.parametrize(
    ("version", "generation", "origin"),
    [
        ("sha256:1", 1, PolicyOrigin.CONTROL_PLANE),
        ("sha256:1", 2, PolicyOrigin.LAST_GOOD),
        ("sha256:2", 1, PolicyOrigin.LAST_GOOD),
        ("", 0, PolicyOrigin.LAST_GOOD),
    ],
)
def test_only_the_same_version_and_generation_confirm_the_last_good_policy(
    version: str, generation: int, origin: PolicyOrigin
) -> None:
    holder = PolicyHolder()
    holder.swap(SNAPSHOT, PolicyOrigin.LAST_GOOD, 7)
    holder.confirm(version, generation)
    assert holder.origin is origin


def test_nothing_is_confirmed_before_there_is_a_policy() -> None:
    holder = PolicyHolder()
    holder.confirm("", 0)
    assert holder.origin is PolicyOrigin.NONE


def test_without_a_policy_callers_hear_why() -> None:
    holder = PolicyHolder()
    holder.absence = PolicyAbsence.UNTRUSTED
    with pytest.raises(PolicyNotLoaded, match="--trusted-key") as raised:
        holder.require()
    assert raised.value.metadata["cause"] == "UNTRUSTED"
    holder.swap(SNAPSHOT, PolicyOrigin.CONTROL_PLANE, 7)
    assert holder.require() is SNAPSHOT


class Ticks:
    """A clock that nobody sets but the test."""

    def __init__(self) -> None:
        self.now_s = 1_000.0

    def __call__(self) -> float:
        return self.now_s


def snapshot(stale_after_s: float, action: StaleAction, generation: int = 1) -> PolicySnapshot:
    policy = PolicySet(degradation_policy=DegradationPolicy(stale_after_s=stale_after_s, stale_action=action))
    return PolicySnapshot("sha256:1", generation, 0, EffectivePolicies(policy), AccessIndex(None, None))


def test_a_policy_that_nobody_confirms_is_stale_until_it_is_confirmed() -> None:
    ticks = Ticks()
    holder = PolicyHolder(ticks)
    assert (holder.age_s, holder.stale_action) == (inf, None)
    holder.swap(snapshot(60.0, "read_only"), PolicyOrigin.CONTROL_PLANE, 7)
    ticks.now_s += 59.0
    assert (holder.age_s, holder.stale_action) == (59.0, None)
    ticks.now_s += 1.0
    assert holder.stale_action == "read_only"
    holder.confirm("sha256:2", 2)
    assert holder.stale_action == "read_only"
    holder.confirm("sha256:1", 1)
    assert (holder.age_s, holder.stale_action) == (0.0, None)


def test_an_old_copy_is_stale_from_the_start_and_a_new_policy_brings_its_own_limit() -> None:
    ticks = Ticks()
    holder = PolicyHolder(ticks)
    holder.swap(snapshot(60.0, "deny"), PolicyOrigin.LAST_GOOD, 7, age_s=inf)
    assert (holder.age_s, holder.stale_action) == (inf, "deny")
    holder.swap(snapshot(0.0, "deny", generation=2), PolicyOrigin.CONTROL_PLANE, 8)
    ticks.now_s += 1e9
    assert holder.stale_action is None
