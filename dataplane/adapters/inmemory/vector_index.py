"""VectorIndex in a dict, scanned: the reference for its contract."""

from collections.abc import Sequence

import numpy as np

from dataplane.adapters.inmemory import deadline
from dataplane.logic.filters import matches
from dataplane.model import Candidate, Filter, IndexEntry, Scope, Vector

BACKEND = "vector_index"


class InMemoryVectorIndex:
    """Exact cosine over every entry. Raises ValueError for an embedding that is not a vector of this index."""

    def __init__(self, dimension: int) -> None:
        self._dimension = dimension
        self._entries: dict[str, IndexEntry] = {}

    async def upsert(self, entries: Sequence[IndexEntry], deadline_s: float) -> None:
        """See the port."""
        deadline.check(BACKEND, deadline_s)
        for entry in entries:
            if entry.embedding is None:
                raise ValueError(f"{entry.memory_id} has no embedding; a vector index needs one")
            self._check(entry.embedding)
        self._entries.update({entry.memory_id: entry for entry in entries})

    async def delete(self, memory_ids: Sequence[str], deadline_s: float) -> None:
        """See the port."""
        deadline.check(BACKEND, deadline_s)
        for memory_id in memory_ids:
            self._entries.pop(memory_id, None)

    async def search(
        self, scope: Scope, vector: Vector, filter: Filter, top_k: int, deadline_s: float
    ) -> list[Candidate]:
        """See the port."""
        deadline.check(BACKEND, deadline_s)
        self._check(vector)
        found = [
            Candidate(entry.memory_id, entry.version, _cosine(entry.embedding, vector))
            for entry in self._entries.values()
            if entry.embedding is not None
            and scope.covers(entry.namespace, entry.pool)
            and matches(filter, entry.fields)
        ]
        return sorted(found, key=lambda candidate: -candidate.score)[:top_k]

    async def versions(self, deadline_s: float) -> dict[str, int]:
        """See the port."""
        deadline.check(BACKEND, deadline_s)
        return {entry.memory_id: entry.version for entry in self._entries.values()}

    async def flush(self, deadline_s: float) -> None:
        """See the port."""
        deadline.check(BACKEND, deadline_s)

    async def purge(self, deadline_s: float) -> None:
        """See the port; nothing is on disk."""
        deadline.check(BACKEND, deadline_s)

    async def clear(self, deadline_s: float) -> None:
        """See the port."""
        deadline.check(BACKEND, deadline_s)
        self._entries.clear()

    async def close(self) -> None:
        """See the port."""

    def _check(self, vector: Vector) -> None:
        if vector.shape != (self._dimension,):
            raise ValueError(f"a vector has shape {vector.shape}; this index holds ({self._dimension},)")
        if not np.isfinite(vector).all() or not vector.any():
            raise ValueError("a vector is zero or not finite")


def _cosine(one: Vector, other: Vector) -> float:
    return float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))
