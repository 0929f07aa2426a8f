"""The indexes that a data plane follows, as checks and rebuilds see them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dataplane.changes import OutboxRow
from dataplane.logic.fingerprint import fingerprint
from dataplane.model import Held, IndexEntry, IndexKey, State
from dataplane.pipelines.spaces import Spaces, VectorSpace
from dataplane.ports import Index
from memplane.v1 import maintenance_service_pb2 as pb


@dataclass(frozen=True, slots=True)
class FollowedIndex:
    """An index, its name in the outbox, and how a row becomes its entry. `space` None: it is the text index."""

    name: str
    index: Index
    entry_of: Callable[[OutboxRow], IndexEntry]
    space: VectorSpace | None = None

    @property
    def kind(self) -> pb.IndexKind.ValueType:
        """Which of the two."""
        return pb.INDEX_KIND_TEXT if self.space is None else pb.INDEX_KIND_VECTOR

    @property
    def model(self) -> str:
        """The embedding model that it belongs to; "" for the text index."""
        return "" if self.space is None else self.space.model

    def expected(self, row: OutboxRow) -> Held | None:
        """What the index should hold for a row; the fingerprint is "" while the memory is not embedded."""
        if row.memory is None or row.memory.state is not State.ACTIVE:
            return None
        if self.space is not None and row.embedding is None:
            return Held(row.memory.version, row.memory.namespace)
        return Held(row.memory.version, row.memory.namespace, fingerprint(self.entry_of(row)))


class FollowedIndexes:
    """All of them; which is active changes with `spaces`."""

    def __init__(self, indexes: Sequence[FollowedIndex], spaces: Spaces):
        self._indexes = tuple(indexes)
        self._spaces = spaces

    def of_kind(self, kind: pb.IndexKind.ValueType) -> list[FollowedIndex]:
        """Those of one kind, or all for INDEX_KIND_UNSPECIFIED."""
        return [each for each in self._indexes if kind in (pb.INDEX_KIND_UNSPECIFIED, each.kind)]

    def named(self, name: str) -> FollowedIndex | None:
        """The one of this name, if this data plane follows it."""
        return next((each for each in self._indexes if each.name == name), None)

    def is_active(self, index: FollowedIndex) -> bool:
        """Whether searches use it."""
        return index.space is None or index.space is self._spaces.current


def keys_of(rows: Sequence[OutboxRow]) -> list[IndexKey]:
    """Where rows lie in an index."""
    return [IndexKey(row.memory_id, row.namespace) for row in rows]
