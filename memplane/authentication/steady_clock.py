"""A time of day that cannot be set back, for credentials that end."""

from collections.abc import Callable
from typing import Protocol

BACK_US = 60 * 1_000_000
"""A clock that was set back by more is a problem to tell of: 60 s. Unmeasured."""


class Clock(Protocol):
    """The time of day, so that tests own it."""

    def now_us(self) -> int:
        """Microseconds since 1970-01-01 UTC."""
        ...


class SteadyClock:
    """The time of day, but never less than at the start plus what the monotonic clock has counted since.

    A clock set back by a day would otherwise let credentials that have ended in again for a day. The price: when the
    clock was ahead at the start and is put right, credentials end too early until the process is started again.
    `monotonic_s` counts seconds.
    """

    def __init__(self, clock: Clock, monotonic_s: Callable[[], float]):
        self._clock = clock
        self._monotonic_s = monotonic_s
        self._offset_us = clock.now_us() - round(monotonic_s() * 1_000_000)

    def now_us(self) -> int:
        """Microseconds since 1970-01-01 UTC."""
        return max(self._clock.now_us(), self._counted_us())

    def back_us(self) -> int:
        """How far the time of day was set back since the start, in microseconds; 0: not, or by less than BACK_US."""
        behind_us = self._counted_us() - self._clock.now_us()
        return behind_us if behind_us > BACK_US else 0

    def _counted_us(self) -> int:
        return self._offset_us + round(self._monotonic_s() * 1_000_000)
