"""What `rank` asks of a profile."""

from dataclasses import dataclass
from typing import Protocol

from dataplane.logic.profiles.signals import Signals
from dataplane.model import Memory
from memplane.policy.retrieve import Weights

UNKNOWN_TIME = 0.5
"""Freshness of what nobody knows the time of."""


@dataclass(frozen=True, slots=True)
class Times:
    """How long ago a memory was told and last used, at the reference time, in µs; negative: later than that.

    None: unknown; never used.
    """

    age_us: int | None
    idle_us: int | None


class Formula(Protocol):
    """A profile with the numbers of one policy."""

    @property
    def weights(self) -> Weights:
        """What counts, with a sum of 1; the weights of vector and text are those of relevance."""

    @property
    def floor(self) -> float:
        """The least confidence of a hit where the caller names none, 0 to 1."""

    def freshness(self, memory: Memory, times: Times) -> float:
        """How recent it is, 0 to 1."""

    def boost(self, memory: Memory) -> float:
        """What its uses multiply the score by, at least 1."""

    def score(self, signals: Signals, weights: Weights) -> float:
        """The score, 0 or more, by `weights`, in which the vector's may have moved to text."""
