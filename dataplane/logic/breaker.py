"""When a backend counts as down: a circuit breaker as a state machine.

Rules. CLOSED: every call is admitted, and how it ended is kept: the last 20 calls, none older than 10 s. It opens when
at least `min_failures` of them failed and these are `failure_ratio` of them, or when the last `min_failures` calls all
failed. OPEN: none is admitted; only a good probe makes it HALF_OPEN. HALF_OPEN: one call is admitted, the trial, and no
other until it has ended; a good one closes the breaker, a bad one opens it again. A probe that is good in HALF_OPEN
closes it, too, so that it does not wait for a caller. How a call ends that was admitted before the last change of state
says nothing about now and is passed over.

The states are those of M. Nygard, Release It! (2007), ch. 5.
"""

from collections import deque
from dataclasses import dataclass
from enum import Enum

WINDOW_CALLS = 20
WINDOW_S = 10.0
"""What is remembered. Both are unmeasured."""


class BreakerState(Enum):
    """See the module."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half-open"


@dataclass(frozen=True, slots=True)
class Threshold:
    """When a breaker opens: failures over calls (0 to 1, above 0), and the least number of failures (1 or more)."""

    failure_ratio: float
    min_failures: int


class Breaker:
    """One breaker. Instants are seconds of one clock that does not go back.

    `since_s` is the instant of the last change of state, `opened_count` how often it opened, `reason` why it did last.
    """

    def __init__(self, now_s: float):
        self.state = BreakerState.CLOSED
        self.since_s = now_s
        self.opened_count = 0
        self.reason = ""
        self._period = 0
        self._on_trial = False
        self._outcomes: deque[tuple[float, bool]] = deque(maxlen=WINDOW_CALLS)

    def admit(self) -> int | None:
        """A ticket for one call, to be handed back when it has ended; None: it is not admitted."""
        if self.state is BreakerState.OPEN or self._on_trial:
            return None
        self._on_trial = self.state is BreakerState.HALF_OPEN
        return self._period

    def succeeded(self, ticket: int, now_s: float) -> None:
        """The backend did its part in a call."""
        if ticket != self._period:
            return
        if self.state is BreakerState.HALF_OPEN:
            self._turn(BreakerState.CLOSED, now_s)
        else:
            self._outcomes.append((now_s, True))

    def failed(self, ticket: int, now_s: float, threshold: Threshold, reason: str) -> None:
        """The backend did not do its part in a call."""
        if ticket != self._period:
            return
        self._outcomes.append((now_s, False))
        if self.state is BreakerState.HALF_OPEN or self._is_down(now_s, threshold):
            self._turn(BreakerState.OPEN, now_s)
            self.opened_count += 1
            self.reason = reason

    def unknown(self, ticket: int) -> None:
        """A call ended without telling of the backend; another one may be the trial."""
        if ticket == self._period:
            self._on_trial = False

    def probing(self) -> int:
        """A ticket for a probe, which is not held to be a call."""
        return self._period

    def probed(self, ticket: int, now_s: float) -> None:
        """A probe found the backend well."""
        if ticket != self._period or self._on_trial:
            return
        if self.state is BreakerState.OPEN:
            self._turn(BreakerState.HALF_OPEN, now_s)
        elif self.state is BreakerState.HALF_OPEN:
            self._turn(BreakerState.CLOSED, now_s)

    def _is_down(self, now_s: float, threshold: Threshold) -> bool:
        outcomes = [well for at_s, well in self._outcomes if at_s >= now_s - WINDOW_S]
        failures = outcomes.count(False)
        if failures < threshold.min_failures:
            return False
        is_run = not any(outcomes[-threshold.min_failures :])
        return is_run or failures >= threshold.failure_ratio * len(outcomes)

    def _turn(self, state: BreakerState, now_s: float) -> None:
        self.state, self.since_s = state, now_s
        self._period += 1
        self._on_trial = False
        self._outcomes.clear()
