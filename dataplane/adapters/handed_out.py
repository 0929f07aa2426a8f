"""What the takers of a queue were really given.

A queue may hand entries to a taker who never hears of it: the answer is lost with a connection, or comes to one who has
given up. Such entries are in the taker's hands by the queue's book, and in nobody's in fact, so that what is younger
could pass them. They come again with the taker's next page, before anything else, and that counts as no delivery.
"""

from collections import defaultdict
from collections.abc import Sequence

from dataplane.changes import QueueEntry


class HandedOut:
    """The entries that each owner has and knows of."""

    def __init__(self) -> None:
        self._ids: defaultdict[str, set[str]] = defaultdict(set)

    def known_to(self, owner: str) -> list[str]:
        """Ids of the entries that the owner has."""
        return sorted(self._ids[owner])

    def note(self, owner: str, entries: Sequence[QueueEntry]) -> None:
        """The owner is given these, with no wait before it has them."""
        self._ids[owner].update(entry.entry_id for entry in entries)

    def forget(self, entries: Sequence[QueueEntry]) -> None:
        """These have left the queue."""
        for ids in self._ids.values():
            ids.difference_update(entry.entry_id for entry in entries)
