"""VectorIndex in a dict, scanned: the reference for its contract."""

from collections.abc import Sequence

import numpy as np

from dataplane.adapters.inmemory import deadline
from dataplane.adapters.inmemory.entries import held_of, newest, rows_of
from dataplane.logic.beacon import with_saved
from dataplane.logic.filters import matches
from dataplane.model import Candidate, Filter, Held, IndexEntry, IndexKey, Scope, Vector
from dataplane.ports import Examination

BACKEND = "vector_index"


class ActiveModel:
    """The name of the active model, for indexes that lie side by side; "" at first."""

    name = ""


class InMemoryVectorIndex:
    """Exact cosine over every entry. Raises ValueError for an embedding that is not a vector of this index.

    Indexes of several models share an `active`.
    """

    def __init__(self, dimension: int, model: str = "", active: ActiveModel | None = None) -> None:
        self._dimension = dimension
        self._model = model
        self._active = active or ActiveModel()
        self._entries: dict[str, IndexEntry] = {}
        self._beacons: dict[str, int] = {}

    async def upsert(self, entries: Sequence[IndexEntry], deadline_s: float) -> None:
        """See the port."""
        deadline.check(BACKEND, deadline_s)
        for entry in entries:
            if entry.embedding is None:
                raise ValueError(f"{entry.memory_id} has no embedding; a vector index needs one")
            self._check(entry.embedding)
        self._entries.update(newest(entries, self._entries))

    async def delete(self, keys: Sequence[IndexKey], deadline_s: float) -> None:
        """See the port."""
        deadline.check(BACKEND, deadline_s)
        for key in keys:
            self._entries.pop(key.memory_id, None)

    async def search(
        self, scope: Scope, vector: Vector, filter: Filter, top_k: int, ef: int, deadline_s: float
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

    async def versions(self, deadline_s: float) -> dict[str, Held]:
        """See the port."""
        deadline.check(BACKEND, deadline_s)
        return {entry.memory_id: held_of(entry) for entry in self._entries.values()}

    async def held(self, keys: Sequence[IndexKey], deadline_s: float) -> dict[str, Held]:
        """See the port."""
        deadline.check(BACKEND, deadline_s)
        found = (self._entries.get(key.memory_id) for key in keys)
        return {entry.memory_id: held_of(entry) for entry in found if entry}

    async def count(self, deadline_s: float) -> int:
        """See the port."""
        deadline.check(BACKEND, deadline_s)
        return len(self._entries)

    async def rows(self, scope: Scope, memory_ids: Sequence[str], deadline_s: float) -> dict[str, bytes]:
        """See the port."""
        deadline.check(BACKEND, deadline_s)
        return rows_of(self._entries, scope, memory_ids)

    async def beacons(self, deadline_s: float) -> dict[str, int]:
        """See the port."""
        deadline.check(BACKEND, deadline_s)
        return dict(self._beacons)

    async def save_beacon(self, name: str, value: int, deadline_s: float) -> None:
        """See the port."""
        deadline.check(BACKEND, deadline_s)
        self._beacons = with_saved(self._beacons, name, value)

    async def examine(self, deadline_s: float) -> Examination:
        """See the port."""
        deadline.check(BACKEND, deadline_s)
        return Examination("in memory")

    async def active_model(self, deadline_s: float) -> str:
        """See the port."""
        deadline.check(BACKEND, deadline_s)
        return self._active.name

    async def activate(self, deadline_s: float) -> None:
        """See the port."""
        deadline.check(BACKEND, deadline_s)
        self._active.name = self._model

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
        self._beacons.clear()

    async def close(self) -> None:
        """See the port."""

    def _check(self, vector: Vector) -> None:
        if vector.shape != (self._dimension,):
            raise ValueError(f"a vector has shape {vector.shape}; this index holds ({self._dimension},)")
        if not np.isfinite(vector).all() or not vector.any():
            raise ValueError("a vector is zero or not finite")


def _cosine(one: Vector, other: Vector) -> float:
    return float(one @ other / (np.linalg.norm(one) * np.linalg.norm(other)))
