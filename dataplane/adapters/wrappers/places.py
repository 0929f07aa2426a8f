"""A bulkhead: how many calls of a backend may be under way, so that a slow one does not hold everybody."""

import asyncio
from collections import deque


class NoPlace(Exception):
    """There was no place in time."""


class Places:
    """Places that are lent, first come, first served. Belongs to one event loop."""

    def __init__(self) -> None:
        self._taken = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @property
    def taken(self) -> int:
        """How many are lent."""
        return self._taken

    def take_free(self, most: int) -> bool:
        """Takes a place if one of `most` is free and nobody waits for it."""
        if self._taken >= most or self._waiting:
            return False
        self._taken += 1
        return True

    async def take(self, until_s: float) -> None:
        """Waits for a place, until an instant of the event loop's clock; raises NoPlace."""
        place = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        try:
            async with asyncio.timeout_at(until_s):
                await place
        except BaseException as error:
            if place.done() and not place.cancelled() and place.exception() is None:
                self.leave(self._taken)  # it was handed over as the time was up: to the next
            place.cancel()
            if isinstance(error, TimeoutError):
                raise NoPlace from None
            raise

    def leave(self, most: int) -> None:
        """Gives a place back: to those who wait, while fewer than `most` are lent."""
        self._taken -= 1
        while self._waiting and self._taken < most:
            place = self._waiting.popleft()
            if not place.done():
                place.set_result(None)
                self._taken += 1

    def send_away(self) -> None:
        """All who wait get NoPlace at once."""
        while self._waiting:
            place = self._waiting.popleft()
            if not place.done():
                place.set_exception(NoPlace())
