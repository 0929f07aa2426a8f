"""Finds the stored memories that a new one might repeat: by meaning in the index, and among those not projected yet."""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dataplane.codec import parse_body
from dataplane.errors import BackendUnavailable
from dataplane.logic.dedup import Neighbour
from dataplane.logic.filters import exactly
from dataplane.model import AllOf, Condition, Kind, Memory, Operator, Pool, Scope, State, StoredCandidate, Vector
from dataplane.pipelines.degraded import DegradedNotes
from dataplane.pipelines.project import Projectors
from dataplane.pipelines.spaces import VectorSpace
from dataplane.ports import Embedder, RecordStore

NEAREST = 5
"""How many of the nearest are compared; repeats are the nearest by far. Unmeasured."""

EF = 64
"""How many neighbours an approximate index keeps in view for these. Unmeasured."""

MAX_PENDING = 500
PENDING_EACH = 8
"""How many rows not projected yet are compared, newest first: so many, or so many for each draft of a large chunk.
Unmeasured."""

SEARCHES_AT_ONCE = 16
"""How many searches of a chunk an index is asked at once. Unmeasured."""


class Shelf(NamedTuple):
    """Memories that are compared with each other."""

    namespace: str
    subject_id: str
    kind: Kind
    pool: Pool

    @classmethod
    def of(cls, memory: Memory) -> "Shelf":
        """The one that the memory is on."""
        return cls(memory.namespace, memory.subject_id, memory.kind, memory.pool)


@dataclass(frozen=True, slots=True)
class Around:
    """Where to look: on one shelf, near a vector, at least this calibrated similarity."""

    space: VectorSpace
    shelf: Shelf
    embedding: Vector
    least_similarity: float


class Neighbours:
    """Looks around vectors."""

    def __init__(self, store: RecordStore, projectors: Projectors):
        self._store = store
        self._projectors = projectors

    async def near(
        self, arounds: Sequence[Around], degraded: DegradedNotes, deadline_s: float
    ) -> list[list[Neighbour]]:
        """For each, the ACTIVE memories at least that similar, in any order. All look in one space.

        What awaits projection is read before the index is asked, as `retrieve` explains.
        """
        if not arounds:
            return []
        scope, model = _scope(arounds), arounds[0].space.model
        most = max(MAX_PENDING, PENDING_EACH * len(arounds))
        pending = await self._store.pending(scope, self._projectors.applied, model, 0, most, deadline_s)
        ids = await self._indexed(arounds, degraded, deadline_s)
        rows = await self._store.fetch(scope, ids, model, 0, deadline_s) if ids else []
        shelves = _shelved((*rows, *pending.candidates))
        return [shelves[around.shelf].near(around) if around.shelf in shelves else [] for around in arounds]

    async def _indexed(self, arounds: Sequence[Around], degraded: DegradedNotes, deadline_s: float) -> list[str]:
        """The ids of what the index holds near any of these."""
        turn = asyncio.Semaphore(SEARCHES_AT_ONCE)

        async def search(around: Around) -> list[str]:
            try:
                async with turn:
                    return await _search(around, deadline_s)
            except BackendUnavailable as error:
                degraded.add(error.backend, "BACKEND_UNAVAILABLE", "repeats are recognised by exact content alone")
                return []

        found = await asyncio.gather(*(search(around) for around in arounds))
        return list(dict.fromkeys(memory_id for ids in found for memory_id in ids))


async def _search(around: Around, deadline_s: float) -> list[str]:
    namespace, subject_id, kind, pool = around.shelf
    wanted = AllOf(
        (
            exactly("subject_id", subject_id),
            Condition("kind", Operator.EQUALS, (kind.name,)),
            Condition("pool", Operator.EQUALS, (pool.name,)),
        )
    )
    index, calibrate = around.space.vectors, around.space.embedder.calibrate
    found = await index.search(Scope((namespace,)), around.embedding, wanted, NEAREST, EF, deadline_s)
    return [item.memory_id for item in found if calibrate(item.score) >= around.least_similarity]


def _scope(arounds: Iterable[Around]) -> Scope:
    return Scope(tuple(dict.fromkeys(around.shelf.namespace for around in arounds)))


@dataclass(frozen=True, slots=True)
class _Shelved:
    """ACTIVE memories of a shelf with their embeddings, a row each."""

    memories: Sequence[Memory]
    embeddings: NDArray[np.float32]

    def near(self, around: Around) -> list[Neighbour]:
        cosines = self.embeddings @ around.embedding
        similar = most_similar(cosines, around.least_similarity, around.space.embedder)
        return [Neighbour(self.memories[row], parse_body(self.memories[row]).content, found) for row, found in similar]


def _shelved(rows: Iterable[StoredCandidate]) -> dict[Shelf, _Shelved]:
    shelves: dict[Shelf, dict[str, tuple[Memory, Vector]]] = {}
    for row in rows:
        if row.embedding is not None and row.memory.state is State.ACTIVE:
            shelves.setdefault(Shelf.of(row.memory), {})[row.memory.memory_id] = (row.memory, row.embedding)
    return {
        shelf: _Shelved([memory for memory, _ in held.values()], np.stack([vector for _, vector in held.values()]))
        for shelf, held in shelves.items()
    }


def most_similar(cosines: NDArray[np.float32], least_similarity: float, embedder: Embedder) -> list[tuple[int, float]]:
    """The places in `cosines` that are at least so similar, most similar first, with the calibrated similarity."""
    found: list[tuple[int, float]] = []
    left = cosines.copy()
    while left.size:
        place = int(np.argmax(left))
        similarity = embedder.calibrate(float(cosines[place]))
        if left[place] == -np.inf or similarity < least_similarity:
            break
        found.append((place, similarity))
        left[place] = -np.inf
    return found
