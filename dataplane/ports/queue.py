"""The port of the write queue."""

from collections.abc import Sequence
from typing import Protocol

from dataplane.changes import QueueDepth, QueuedWrite, QueueEntry
from dataplane.ports.backend import Backend


class WriteQueue(Backend, Protocol):
    """Writes accepted to be applied later, durable; each is handed out until it is done, so maybe more than once.

    Order: while a write is in somebody's hands, nobody else gets another one with its `order_key`. Hands that neither
    finish nor renew lose what they hold after a while.
    """

    async def put(self, write: QueuedWrite, deadline_s: float) -> None:
        """Accepts a write; it survives kill -9 when this returns. Does nothing for an operation that is in the queue.

        Raises QueueFull.
        """
        ...

    async def take(self, owner: str, page_size: int, wait_s: float, deadline_s: float) -> list[QueueEntry]:
        """Up to `page_size` writes, those with one `order_key` oldest first; no key waits for ever behind others.

        What somebody took long ago and did not finish comes again, before what is younger. Waits at most `wait_s` for
        a first one, and no longer to fill the page. What cannot be read is set aside.
        """
        ...

    async def renew(self, owner: str, entries: Sequence[QueueEntry], deadline_s: float) -> None:
        """Keeps entries in these hands for another while; what was lost meanwhile is passed over."""
        ...

    async def done(self, entries: Sequence[QueueEntry], deadline_s: float) -> None:
        """Removes applied writes. Idempotent."""
        ...

    async def set_aside(self, entries: Sequence[QueueEntry], deadline_s: float) -> None:
        """Takes writes out of the queue that cannot be applied; the newest 1,000 are kept to be looked at."""
        ...

    async def find(self, operation: str, deadline_s: float) -> QueuedWrite | None:
        """A write that waits or is taken, by its operation."""
        ...

    async def depth(self, deadline_s: float) -> QueueDepth:
        """How much is in the queue."""
        ...
