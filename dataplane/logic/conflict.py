"""Whom to believe when two memories state different things under one fact key.

The source type that stands earlier in the policy's `source_priority` wins. Types that the list leaves out rank last and
equal. Between equals the newer statement wins, and of two at the same instant the one that arrives now (DESIGN §4).
"""

from dataclasses import dataclass
from typing import Literal

from dataplane.model import SourceType
from memplane.policy.model import ConflictPolicy

EQUAL_CONFIDENCE = 0.1
"""How far apart the confidences of two statements of equal standing may be. Unmeasured."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Who said something, and when it is true of (event time, else the time of writing)."""

    source_type: SourceType
    time_us: int


@dataclass(frozen=True, slots=True)
class Standing:
    """What a statement rests on: who said it, and how sure it is, 0 to 1."""

    source_type: SourceType
    confidence: float


@dataclass(frozen=True, slots=True)
class Resolution:
    """Who won by which rule."""

    new_wins: bool
    rule: Literal["SOURCE_PRIORITY", "NEWEST"]


def resolve(new: Claim, old: Claim, policy: ConflictPolicy) -> Resolution:
    """The winner of two contradictory claims. It does not depend on which arrived first, but for exact ties."""
    new_rank, old_rank = _rank(new.source_type, policy), _rank(old.source_type, policy)
    if new_rank != old_rank:
        return Resolution(new_rank < old_rank, "SOURCE_PRIORITY")
    return Resolution(new.time_us >= old.time_us, "NEWEST")


def are_equals(new: Standing, old: Standing, policy: ConflictPolicy) -> bool:
    """Whether nobody but the user can tell which of two contradictory statements holds: alike in source and trust."""
    same_rank = _rank(new.source_type, policy) == _rank(old.source_type, policy)
    return same_rank and abs(new.confidence - old.confidence) <= EQUAL_CONFIDENCE


def _rank(source_type: SourceType, policy: ConflictPolicy) -> int:
    priority = policy.source_priority
    for position, name in enumerate(priority):
        if name == source_type.name:
            return position
    return len(priority)
