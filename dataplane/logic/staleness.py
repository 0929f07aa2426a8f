"""How old the policy is, and what that means.

Rules:
1. A policy is as old as the time since the control plane last confirmed that it is in force. Within a run that time is
   measured by a clock that nobody sets.
2. Over a restart it is the age that was noted last, plus what the time of day says has passed since. An age that was
   noted never shrinks but by a confirmation: however often a process starts, and wherever its clock is set meanwhile,
   its policy grows as old as the processes ran.
3. A time of day from before the note says nothing about how long the process was down: then the age is unknown, which
   counts as older than any limit until the control plane confirms.
4. Without a note, the policy counts as confirmed last when it was made.
"""

from dataclasses import dataclass
from math import inf

from memplane.policy.degradation import DegradationPolicy, StaleAction

STEP_BACK_S = 60.0
"""How far a clock may be behind the note before it counts as wrong: time servers set clocks back a little.
Unmeasured."""


@dataclass(frozen=True, slots=True)
class AgeNote:
    """At `noted_us` (microseconds since 1970 UTC) the policy of `generation` was `age_s` old; inf: unknown."""

    generation: int
    age_s: float
    noted_us: int


def age_at_start_s(note: AgeNote | None, generation: int, create_time_us: int, now_us: int) -> float:
    """How old a policy from the disk is by now, in seconds; inf: unknown. A note of another generation is none."""
    known = note if note is not None and note.generation == generation else AgeNote(generation, 0.0, create_time_us)
    passed_s = (now_us - known.noted_us) / 1_000_000
    return inf if passed_s < -STEP_BACK_S else known.age_s + max(0.0, passed_s)


def stale_action(policy: DegradationPolicy, age_s: float) -> StaleAction | None:
    """What to do with a policy of this age; None: it is not stale."""
    if policy.stale_after_s == 0 or age_s < policy.stale_after_s:
        return None
    return policy.stale_action
