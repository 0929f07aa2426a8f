"""The port of the write queue."""

from collections.abc import Sequence
from typing import Protocol

from dataplane.changes import QueueDepth, QueuedWrite, QueueEntry
from dataplane.ports.backend import Backend


class WriteQueue(Backend, Protocol):
    """Writes accepted to be applied later, durable; each is handed out until it is done, so maybe more than once."""

    async def put(self, write: QueuedWrite, deadline_s: float) -> None:
        """Accepts a write; it survives kill -9 when this returns. Raises QueueFull."""
        ...

    async def take(self, owner: str, page_size: int, wait_s: float, deadline_s: float) -> list[QueueEntry]:
        """Up to `page_size` writes, oldest first; before them those that another took long ago and did not finish.

        Waits at most `wait_s` for a first one, and no longer to fill the page.
        """
        ...

    async def done(self, entries: Sequence[QueueEntry], deadline_s: float) -> None:
        """Removes applied writes. Idempotent."""
        ...

    async def find(self, operation: str, deadline_s: float) -> QueuedWrite | None:
        """A write that waits or is taken, by its operation."""
        ...

    async def depth(self, deadline_s: float) -> QueueDepth:
        """How much is in the queue."""
        ...
