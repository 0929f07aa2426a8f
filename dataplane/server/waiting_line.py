"""The line in which calls wait for a place, fair between namespaces and bounded in calls, bytes and time.

Rules:
1. A call holds as many places as it is worth units of work, at most half of all (`PLACES_OF_ONE`), so that what is
   long does not fill the house; it pays for all of them. Bytes of running requests are bounded as those of waiting ones
   are.
2. Every call passes through the fair queue, also when a place is free: what somebody had alone counts when others come.
3. When the line is too long, in calls or bytes, the newest of whoever fills most of it is refused, which is seldom the
   one who comes. A call that was begun, and waits between two parts of its work, is never refused.
4. Who hangs up, or waited too long, leaves the line.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from math import exp

from dataplane.logic.fair_queue import Entry, FairQueue
from memplane.errors import Overloaded
from memplane.policy.degradation import Admission

PLACES_OF_ONE = 2
"""One call may hold one place in so many: beside 64 clients that write batches of 1,000 without pause, a quiet tenant's
call took 0.8 s at 2 and 1.5 s at 4 in the median (embedded stores, 2 busy cores, 2026-11)."""
RETRY_AFTER_S = 0.5
MAX_RETRY_AFTER_S = 30.0
RETRY_SPREAD = 16
"""Those who are refused are told to come again after 1 to 2 times a while, in so many steps, so that they do not all
come at once. Unmeasured."""
REFUSALS_A_SECOND = 50.0
"""The while is as many seconds as refusals come times so many a second, for refusing costs processor time, too: 1,500
clients that come again after 0.5 s leave none for anybody else. Unmeasured."""
RATE_S = 2.0
"""Over how long the rate of refusals is averaged. Unmeasured."""
LONG_S = 10.0
"""Refusals that go on for so long, with pauses shorter than that, are a problem to be told. Unmeasured."""

ADMITTED, REFUSED, LEFT = "admitted", "refused", "left"

Observe = Callable[[str, float], None]
"""Hears of every call that came: `admitted`, `refused` or `left` (hung up), and how many seconds it waited."""


@dataclass(eq=False, slots=True)
class Ticket(Entry):
    """A call that waits or runs. `places` are those that it holds, 0 while it waits; `is_in_line` while it waits."""

    places: int = 0
    is_in_line: bool = False
    granted: asyncio.Future[None] | None = None


class WaitingLine:
    """Lets calls in. Belongs to the event loop that runs when it is built.

    `limits` is asked at each step, so that a new policy counts at once.
    """

    def __init__(self, limits: Callable[[], Admission], observe: Observe):
        self._now_s = asyncio.get_running_loop().time
        self._limits = limits
        self._observe = observe
        self._queue: FairQueue[Ticket] = FairQueue()
        self._refused_count = 0
        self._refused_lately = 0.0
        self._first_refusal_s = self._last_refusal_s = float("-inf")
        self.running_count = 0
        self.running_places = 0
        self.running_bytes = 0

    @property
    def waiting_count(self) -> int:
        """Calls in the line."""
        return self._queue.count

    @property
    def waiting_bytes(self) -> int:
        """Bytes of their requests."""
        return self._queue.size

    def refusing_for_s(self) -> float:
        """For how long calls have been refused, time and again; 0 when they are not. Any thread may ask."""
        now_s = self._now_s()
        return now_s - self._first_refusal_s if now_s - self._last_refusal_s < LONG_S else 0.0

    async def enter(self, ticket: Ticket, deadline_s: float) -> None:
        """Returns once the call may run, which must then `leave`. Raises Overloaded."""
        came_s = self._now_s()
        if self._queue.count > self._limits().waiting:  # filled by calls that were begun
            self._note_refusal()
            self._observe(REFUSED, 0.0)
            raise self._refusal()
        self._line_up(ticket)
        if not ticket.places:
            self._shorten()
            await self._stand(ticket, came_s, min(deadline_s, came_s + self._limits().max_wait_s))
        self._observe(ADMITTED, self._now_s() - came_s)

    async def again(self, ticket: Ticket, cost: int) -> None:
        """Gives up the call's places and waits, without limit, for those of the next `cost` units of its work."""
        self._give_up_places(ticket)
        ticket.cost, ticket.is_begun = cost, True
        self._line_up(ticket)
        if ticket.granted is not None and not ticket.places:
            try:
                await ticket.granted
            except asyncio.CancelledError:
                self.leave(ticket)
                raise

    def leave(self, ticket: Ticket) -> None:
        """The call is over, or its caller hung up."""
        if ticket.places:
            self._give_up_places(ticket)
        elif ticket.is_in_line:
            self._remove(ticket)
        self._let_in()

    def _line_up(self, ticket: Ticket) -> None:
        """Puts the call in the line, and in if there is room; else its `granted` tells when it is in, or refused."""
        ticket.is_in_line, ticket.granted = True, None
        self._queue.push(ticket, is_first=ticket.is_begun)
        self._let_in()
        if not ticket.places:
            ticket.granted = asyncio.get_running_loop().create_future()

    def _remove(self, ticket: Ticket) -> None:
        self._queue.remove(ticket)
        ticket.is_in_line = False

    async def _stand(self, ticket: Ticket, came_s: float, until_s: float) -> None:
        assert ticket.granted is not None
        try:
            async with asyncio.timeout_at(until_s):
                await ticket.granted
        except TimeoutError:
            if ticket.places:
                return  # it came in at the last moment
            self.leave(ticket)
            self._note_refusal()
            self._observe(REFUSED, self._now_s() - came_s)
            raise self._refusal() from None
        except Overloaded:
            self._observe(REFUSED, self._now_s() - came_s)
            raise
        except asyncio.CancelledError:
            self.leave(ticket)
            self._observe(LEFT, self._now_s() - came_s)
            raise

    def _let_in(self) -> None:
        limits = self._limits()
        while (ticket := self._queue.peek()) is not None:
            places = min(ticket.cost, max(1, limits.concurrency // PLACES_OF_ONE))
            if not self._has_room(ticket, places, limits):
                return
            self._queue.pop()
            self._take_places(ticket, places)
            if ticket.granted is not None and not ticket.granted.done():  # else its caller just hung up
                ticket.granted.set_result(None)

    def _has_room(self, ticket: Ticket, places: int, limits: Admission) -> bool:
        if not self.running_count:
            return True
        fits = self.running_bytes + ticket.size <= limits.waiting_bytes
        return fits and self.running_places + places <= limits.concurrency

    def _take_places(self, ticket: Ticket, places: int) -> None:
        ticket.places, ticket.is_in_line = places, False
        self.running_count += 1
        self.running_places += places
        self.running_bytes += ticket.size

    def _give_up_places(self, ticket: Ticket) -> None:
        self.running_count -= 1
        self.running_places -= ticket.places
        self.running_bytes -= ticket.size
        ticket.places = 0

    def _shorten(self) -> None:
        """Rule 3."""
        limits = self._limits()
        while (is_long := self._queue.count > limits.waiting) or self._queue.size > limits.waiting_bytes:
            refused = self._queue.newest_of_largest(by_size=not is_long)
            if refused is None:
                break
            self._remove(refused)
            self._note_refusal()
            if refused.granted is not None and not refused.granted.done():
                refused.granted.set_exception(self._refusal())
        self._let_in()

    def _note_refusal(self) -> None:
        if not self.refusing_for_s():
            self._first_refusal_s = self._now_s()
        now_s = self._now_s()
        self._refused_lately = 1 + self._refused_lately * exp((self._last_refusal_s - now_s) / RATE_S)
        self._last_refusal_s = now_s
        self._refused_count += 1

    def _refusal(self) -> Overloaded:
        while_s = self._refused_lately / RATE_S / REFUSALS_A_SECOND
        while_s = min(MAX_RETRY_AFTER_S / 2, max(RETRY_AFTER_S, while_s))
        after_s = while_s * (1 + self._refused_count % RETRY_SPREAD / RETRY_SPREAD)
        return Overloaded("more calls came than can be served for now; try again", after_s)
