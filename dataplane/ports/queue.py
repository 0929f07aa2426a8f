"""The port of the write queue."""

from collections.abc import Sequence
from typing import Protocol

from dataplane.changes import QueueDepth, QueuedWrite, QueueEntry, SetAsideWrite
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

    async def set_aside_writes(self, after_id: str, page_size: int, deadline_s: float) -> list[SetAsideWrite]:
        """What was set aside, above `after_id` ("": from the first), in a fixed order; ids are the queue's own."""
        ...

    async def replay_set_aside(self, entry_ids: Sequence[str], deadline_s: float) -> int:
        """Puts writes back that were set aside, behind those that wait; all of them for no ids. How many.

        Each is in one place at any time, never refused for want of room, and counts as never handed out. One whose
        operation is in the queue again leaves only what was set aside. Passes over what is gone or cannot be read.
        """
        ...

    async def find(self, operation: str, deadline_s: float) -> QueuedWrite | None:
        """A write that waits or is taken, by its operation."""
        ...

    async def depth(self, deadline_s: float) -> QueueDepth:
        """How much is in the queue."""
        ...
