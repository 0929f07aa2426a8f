"""Strength in closed form: what a memory weighs when it is read, from the strength stored at an anchor.

    strength(now) = max(0, strength(anchor) − monthly_decay × (now − anchor) / 30 days)         (DESIGN §4, §9)
    after a hit   = min(max_strength, strength(now) + hit_increment), anchored at now

Decay is continuous; a month is 30 days. Before the anchor nothing has decayed.
"""

from dataplane.model import DAY_US, Memory
from memplane.policy.model import DecayPolicy

MONTH_US = 30 * DAY_US


def strength_at(strength: float, anchor_us: int, now_us: int, policy: DecayPolicy) -> float:
    """Strength at `now_us` of a memory whose strength was `strength` at `anchor_us`; at least 0."""
    elapsed_us = max(0, now_us - anchor_us)
    return max(0.0, strength - policy.monthly_decay * elapsed_us / MONTH_US)


def after_hit(strength: float, anchor_us: int, now_us: int, policy: DecayPolicy) -> float:
    """Strength right after a hit at `now_us`, to be anchored there."""
    current = strength_at(strength, anchor_us, now_us, policy)
    return min(policy.max_strength, current + policy.hit_increment)


def is_cold(memory: Memory, now_us: int, policy: DecayPolicy) -> bool:
    """True when the strength has fallen below the policy's `cold_threshold`."""
    return strength_at(memory.strength, memory.strength_time_us, now_us, policy) < policy.cold_threshold
