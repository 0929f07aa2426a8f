"""What a client remembers of its own calls: which memories to read, change and forget next."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

KEPT = 200
"""Of each sort a client remembers so many, the newest."""


@dataclass(slots=True)
class Known:
    """A memory as a client last heard of it. `token` "" when it was only seen."""

    namespace: str
    subject: str
    kind: str
    marker: str
    id: str
    etag: str = ""
    token: str = ""


def _newest() -> deque[Known]:
    return deque(maxlen=KEPT)


@dataclass(slots=True)
class Knowledge:
    """`own` and `shared` may be there, `forgotten` may not; `operations` are queued writes and what they write."""

    own: deque[Known] = field(default_factory=_newest)
    shared: deque[Known] = field(default_factory=_newest)
    forgotten: deque[Known] = field(default_factory=_newest)
    operations: deque[tuple[str, Known]] = field(default_factory=lambda: deque(maxlen=KEPT))

    def learn(self, known: Known, *, is_shared: bool) -> None:
        """A memory is there; what was known of it before is replaced."""
        shelf = self.shared if is_shared else self.own
        drop(shelf, known.id)
        shelf.append(known)

    def forget(self, known: Known) -> None:
        """A memory is not there any more, or perhaps not."""
        drop(self.own, known.id)
        drop(self.shared, known.id)
        self.forgotten.append(known)


def drop(shelf: deque[Known], memory_id: str) -> None:
    """Takes a memory from a shelf."""
    for known in [item for item in shelf if item.id == memory_id]:
        shelf.remove(known)


def chosen(shelf: Sequence[Known], pick: float) -> Known | None:
    """The one that `pick`, 0 to below 1, points to, the newest more often."""
    return shelf[len(shelf) - 1 - int(pick * pick * len(shelf))] if shelf else None
