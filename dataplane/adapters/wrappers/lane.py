"""The way to a backend for one class of calls: a time limit, places, and a breaker that looks for its return.

A call may take what the policy allows or what its caller has left, whichever is less, waiting for a place included.
The adapter is told that limit and keeps it as it can; `GRACE_S` later the call is cancelled, so that an adapter that
waits for a silent socket keeps nobody. A backend that is slower than its limit has failed. A caller who had less time
than that tells nothing by running out of it, but is reason enough to ask the backend something small.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from dataplane.adapters.wrappers.places import NoPlace, Places
from dataplane.ending import end
from dataplane.errors import BackendUnavailable, NotYet
from dataplane.logic.breaker import Breaker, BreakerState, Threshold
from memplane.policy.degradation import BackendLimits

log = logging.getLogger("memplane.guard")

T = TypeVar("T")

GRACE_S = 0.02
"""How much later than its limit a call is cancelled. Unmeasured."""
NEARLY_S = 0.001
"""A failure so shortly before the limit is taken for the limit's. Unmeasured."""
LATE_S = 0.25
"""A failure so long after the limit says that this process was late itself, not what the backend did. Unmeasured."""
MOST_PROBES = 4
"""Probes under way at once: one that hangs on a dead connection must not keep the next from finding the backend.
Unmeasured."""

Probe = Callable[[float], Awaitable[object]]
"""Asks the backend something small, by a deadline. Raises BackendUnavailable."""


Ask = Callable[[float], Awaitable[T]]
"""Calls the backend, to be answered by a deadline."""


class Lane:
    """One class of calls of one backend.

    `operations` names the class for people, such as "reads". `limits` gives those in force, read at each call;
    `allowed_s` picks from them how long a call may take.
    """

    def __init__(
        self,
        backend: str,
        operations: str,
        limits: Callable[[], BackendLimits],
        allowed_s: Callable[[BackendLimits], float],
        probe: Probe,
    ):
        self.backend = backend
        self.operations = operations
        self._limits = limits
        self._allowed_s = allowed_s
        self._probe = probe
        self._places = Places()
        self._loop = asyncio.get_running_loop()
        self.breaker = Breaker(self._loop.time())
        self._mending: asyncio.Task[None] | None = None
        self._looking: asyncio.Task[None] | None = None

    async def run(self, asked_s: float, ask: Ask[T]) -> T:
        """The answer to a call whose caller waits until `asked_s`.

        Raises what the call raises, and BackendUnavailable when it is not made or not answered.
        """
        limits, begun_s = self._limits(), self._loop.time()
        until_s = min(asked_s, begun_s + self._allowed_s(limits))
        if until_s <= begun_s:
            raise BackendUnavailable(self.backend, "deadline passed")
        ticket = self.breaker.admit()
        if ticket is None:
            raise BackendUnavailable(self.backend, self._refusal())
        try:
            if not self._places.take_free(limits.concurrency):
                await self._wait_for_place(limits, until_s)
        except BaseException:
            self.breaker.unknown(ticket)
            raise
        try:
            async with asyncio.timeout_at(until_s + GRACE_S):
                answer = await ask(until_s)
        except BaseException as error:
            told = self._failed(error, ticket, limits, (asked_s, until_s))
            if told is error:
                raise
            raise told from error
        finally:
            self._places.leave(limits.concurrency)
        self._well(ticket)
        return answer

    async def close(self) -> None:
        """Ends what looks for the backend. Idempotent."""
        await end(*(task for task in (self._mending, self._looking) if task is not None))

    async def _wait_for_place(self, limits: BackendLimits, until_s: float) -> None:
        try:
            await self._places.take(until_s)
        except NoPlace:
            busy = f"busy: {limits.concurrency} {self.operations} are under way"
            is_open = self.breaker.state is BreakerState.OPEN
            raise BackendUnavailable(self.backend, self._refusal() if is_open else busy) from None

    def _refusal(self) -> str:
        return f"{self.operations} are not tried for now, it counts as down: {self.breaker.reason}"

    def _failed(
        self, error: BaseException, ticket: int, limits: BackendLimits, until: tuple[float, float]
    ) -> BaseException:
        """Notes how a call ended without its answer, and what the caller is told."""
        if isinstance(error, TimeoutError):
            error = BackendUnavailable(self.backend, "does not answer in time")
        if not isinstance(error, BackendUnavailable) or isinstance(error, NotYet):
            self.breaker.unknown(ticket)
            return error
        (asked_s, until_s), now_s = until, self._loop.time()
        if (asked_s > until_s or now_s < until_s - NEARLY_S) and now_s < until_s + LATE_S:
            self._ill(ticket, limits, error.words)
        else:
            self.breaker.unknown(ticket)
            self._doubt()
        return error

    def _well(self, ticket: int) -> None:
        before = self.breaker.state
        self.breaker.succeeded(ticket, self._loop.time())
        self._tell(before)

    def _ill(self, ticket: int, limits: BackendLimits, reason: str) -> None:
        before = self.breaker.state
        threshold = Threshold(limits.failure_ratio, limits.min_failures)
        self.breaker.failed(ticket, self._loop.time(), threshold, reason)
        self._tell(before)

    def _doubt(self) -> None:
        if self._looking is None or self._looking.done():
            self._looking = self._loop.create_task(self._look(), name=f"looking-at-{self.backend}")

    def _tell(self, before: BreakerState) -> None:
        """Logs a change of state, and does what it asks for."""
        now = self.breaker.state
        if now is before:
            return
        if now is BreakerState.CLOSED:
            log.warning("%s: %s go through again", self.backend, self.operations)
        if now is BreakerState.OPEN:
            log.warning("%s: %s are not tried for now: %s", self.backend, self.operations, self.breaker.reason)
            self._places.send_away()
            if self._mending is None or self._mending.done():
                self._mending = self._loop.create_task(self._mend(), name=f"probing-{self.backend}")

    async def _mend(self) -> None:
        """Probes while the breaker is not closed."""
        probes: set[asyncio.Task[None]] = set()
        try:
            while self.breaker.state is not BreakerState.CLOSED:
                await asyncio.sleep(self._limits().probe_interval_s)
                if len(probes) < MOST_PROBES:
                    probe = self._loop.create_task(self._probe_once(), name=f"probe-{self.backend}")
                    probes.add(probe)
                    probe.add_done_callback(probes.discard)
        finally:
            for probe in probes:
                probe.cancel()

    async def _probe_once(self) -> None:
        ticket, before = self.breaker.probing(), self.breaker.state
        if not await self._problem():
            self.breaker.probed(ticket, self._loop.time())
            self._tell(before)

    async def _look(self) -> None:
        """Asks in place of a caller who had too little time; not oftener than probes are."""
        ticket = self.breaker.admit()
        if ticket is None:
            return
        problem = await self._problem()
        if problem:
            self._ill(ticket, self._limits(), problem)
        else:
            self._well(ticket)
        await asyncio.sleep(self._limits().probe_interval_s)

    async def _problem(self) -> str:
        """What a probe finds wrong; "": nothing."""
        until_s = self._loop.time() + self._limits().timeout_s
        try:
            async with asyncio.timeout_at(until_s + GRACE_S):
                await self._probe(until_s)
        except BackendUnavailable as error:
            return error.words
        except TimeoutError:
            return "does not answer in time"
        except Exception as error:  # the looking must live on; the call that it stands for would fail, too
            log.exception("%s: a probe failed", self.backend)
            return type(error).__name__
        return ""
