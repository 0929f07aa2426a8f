"""VectorIndex on Qdrant Edge."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from qdrant_edge import Distance, EdgeConfig, EdgeVectorParams, Point, Query

from dataplane.adapters.edge.shard import ScopedQuery, Shard, ShardSpec, point_id
from dataplane.adapters.payload_filters import payload_of
from dataplane.model import Candidate, Filter, IndexEntry, Scope, Vector

BACKEND = "vector_index"


class EdgeVectorIndex:
    """Nearest neighbours in an Edge shard. Raises ValueError for an embedding that is not a vector of this index.

    Edge takes NaN, zero and misnamed vectors without a word, so they are refused before they reach it.
    """

    def __init__(self, shard: Shard, dimension: int) -> None:
        self._shard = shard
        self._dimension = dimension

    @classmethod
    def open(cls, folder: Path, dimension: int, model: str) -> "EdgeVectorIndex":
        """Opens the index in a folder; see `recreated` for whether its content is gone.

        A folder filled for another model or dimension, or unreadable, is emptied. Raises BackendUnavailable.
        """
        spec = ShardSpec(
            BACKEND,
            {"model": model, "dimension": dimension},
            EdgeConfig(vectors=EdgeVectorParams(size=dimension, distance=Distance.Cosine)),
        )
        return cls(Shard.open(folder, spec), dimension)

    @property
    def recreated(self) -> bool:
        """True when opening found nothing usable: everything must be projected again."""
        return self._shard.recreated

    async def upsert(self, entries: Sequence[IndexEntry], deadline_s: float) -> None:
        """See the port."""
        for entry in entries:
            self._check(self._embedding(entry))
        await self._shard.upsert((self._point(entry) for entry in entries), deadline_s)

    async def delete(self, memory_ids: Sequence[str], deadline_s: float) -> None:
        """See the port."""
        await self._shard.delete(memory_ids, deadline_s)

    async def search(
        self, scope: Scope, vector: Vector, filter: Filter, top_k: int, deadline_s: float
    ) -> list[Candidate]:
        """See the port."""
        self._check(vector)
        query = Query.Nearest(vector.tolist())
        return await self._shard.search(ScopedQuery(query, scope, filter, top_k), deadline_s)

    async def versions(self, deadline_s: float) -> dict[str, int]:
        """See the port."""
        return await self._shard.versions(deadline_s)

    async def flush(self, deadline_s: float) -> None:
        """See the port."""
        await self._shard.flush(deadline_s)

    async def purge(self, deadline_s: float) -> None:
        """See the port."""
        await self._shard.purge(deadline_s)

    async def clear(self, deadline_s: float) -> None:
        """See the port."""
        await self._shard.clear(deadline_s)

    async def close(self) -> None:
        """See the port."""
        await self._shard.close()

    def _point(self, entry: IndexEntry) -> Point:
        return Point(point_id(entry.memory_id), self._embedding(entry).tolist(), payload_of(entry))

    def _embedding(self, entry: IndexEntry) -> Vector:
        if entry.embedding is None:
            raise ValueError(f"{entry.memory_id} has no embedding; a vector index needs one")
        return entry.embedding

    def _check(self, vector: Vector) -> None:
        if vector.shape != (self._dimension,):
            raise ValueError(f"a vector has shape {vector.shape}; this index holds ({self._dimension},)")
        if not np.isfinite(vector).all() or not vector.any():
            raise ValueError("a vector is zero or not finite")
