import asyncio

import pytest

from dataplane.policy_holder import PolicyHolder, PolicyOrigin
from memplane.errors import PolicyAbsence, PolicyNotLoaded
from memplane.policy.access import AccessIndex
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
