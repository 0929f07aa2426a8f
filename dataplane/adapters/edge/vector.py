"""VectorIndex on Qdrant Edge."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from qdrant_edge import Distance, EdgeConfig, EdgeVectorParams, Point, Query

from dataplane.adapters.edge.active import ActiveModelFile, folder_name
from dataplane.adapters.edge.engine import ShardSpec
from dataplane.adapters.edge.requests import ScopedQuery, point_id
from dataplane.adapters.edge.shard import Shard
from dataplane.adapters.payload_filters import payload_of
from dataplane.model import Candidate, Filter, Held, IndexEntry, IndexKey, Scope, Vector
from dataplane.ports import Examination

BACKEND = "vector_index"


class EdgeVectorIndex:
    """Nearest neighbours in an Edge shard. Raises ValueError for an embedding that is not a vector of this index.

    Edge takes NaN, zero and misnamed vectors without a word, so they are refused before they reach it.
    """

    def __init__(self, shard: Shard, dimension: int, model: str, active: ActiveModelFile) -> None:
        self._shard = shard
        self._dimension = dimension
        self._model = model
        self._active = active

    @classmethod
    def open(cls, folder: Path, dimension: int, model: str) -> "EdgeVectorIndex":
        """Opens the index of a model within a folder; see `recreated` for whether its content is gone.

        Each model has a folder of its own there, and a file names the active one. A model's folder that was filled for
        another dimension, or is unreadable, is emptied. Raises BackendUnavailable.
        """
        spec = ShardSpec(
            BACKEND,
            {"model": model, "dimension": dimension},
            EdgeConfig(vectors=EdgeVectorParams(size=dimension, distance=Distance.Cosine)),
        )
        return cls(Shard.open(folder / folder_name(model), spec), dimension, model, ActiveModelFile(folder, BACKEND))

    @property
    def recreated(self) -> bool:
        """True when opening found nothing usable: everything must be projected again."""
        return self._shard.recreated

    async def upsert(self, entries: Sequence[IndexEntry], deadline_s: float) -> None:
        """See the port."""
        for entry in entries:
            self._check(self._embedding(entry))
        await self._shard.upsert((self._point(entry) for entry in entries), deadline_s)

    async def delete(self, keys: Sequence[IndexKey], deadline_s: float) -> None:
        """See the port."""
        await self._shard.delete(keys, deadline_s)

    async def search(
        self, scope: Scope, vector: Vector, filter: Filter, top_k: int, ef: int, deadline_s: float
    ) -> list[Candidate]:
        """See the port. Exact, for no HNSW is built."""
        self._check(vector)
        query = Query.Nearest(vector.tolist())
        return await self._shard.search(ScopedQuery(query, scope, filter, top_k), deadline_s)

    async def versions(self, deadline_s: float) -> dict[str, Held]:
        """See the port."""
        return await self._shard.versions(deadline_s)

    async def held(self, keys: Sequence[IndexKey], deadline_s: float) -> dict[str, Held]:
        """See the port."""
        return await self._shard.held(keys, deadline_s)

    async def count(self, deadline_s: float) -> int:
        """See the port."""
        return await self._shard.count(deadline_s)

    async def rows(self, scope: Scope, memory_ids: Sequence[str], deadline_s: float) -> dict[str, bytes]:
        """See the port."""
        return await self._shard.rows(scope, memory_ids, deadline_s)

    async def beacons(self, deadline_s: float) -> dict[str, int]:
        """See the port."""
        return await self._shard.beacons(deadline_s)

    async def save_beacon(self, name: str, value: int, deadline_s: float) -> None:
        """See the port. Raises BackendUnavailable when the folder was gone; it is there again, empty."""
        await self._shard.save_beacon(name, value, deadline_s)

    async def examine(self, deadline_s: float) -> Examination:
        """See the port."""
        return await self._shard.examine(deadline_s)

    async def active_model(self, deadline_s: float) -> str:
        """See the port."""
        return await self._active.read(deadline_s)

    async def activate(self, deadline_s: float) -> None:
        """See the port."""
        await self._active.write(self._model, deadline_s)

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
