"""Finds the stored memories that a new one might repeat: by meaning in the index, and among those not projected yet."""

from dataclasses import dataclass

import numpy as np

from dataplane.codec import parse_body
from dataplane.errors import BackendUnavailable
from dataplane.logic.dedup import Neighbour
from dataplane.logic.filters import exactly
from dataplane.model import AllOf, Condition, Kind, Operator, Pool, Scope, State, StoredCandidate, Vector
from dataplane.pipelines.degraded import DegradedNotes
from dataplane.pipelines.project import Projectors
from dataplane.pipelines.spaces import VectorSpace
from dataplane.ports import RecordStore

NEAREST = 5
"""How many of the nearest are compared; repeats are the nearest by far. Unmeasured."""

EF = 64
"""How many neighbours an approximate index keeps in view for these. Unmeasured."""

MAX_PENDING = 500
"""How many rows not projected yet are compared, newest first. Unmeasured."""


@dataclass(frozen=True, slots=True)
class Around:
    """Where to look: one subject's memories of a kind and pool, near a vector, at least this calibrated similarity."""

    space: VectorSpace
    scope: Scope
    subject_id: str
    kind: Kind
    pool: Pool
    embedding: Vector
    least_similarity: float


class Neighbours:
    """Looks around a vector."""

    def __init__(self, store: RecordStore, projectors: Projectors):
        self._store = store
        self._projectors = projectors

    async def near(self, around: Around, degraded: DegradedNotes, deadline_s: float) -> list[Neighbour]:
        """The ACTIVE memories at least that similar, in any order.

        What awaits projection is read before the index is asked, as `retrieve` explains.
        """
        applied, model = self._projectors.applied, around.space.model
        pending = await self._store.pending(around.scope, applied, model, 0, MAX_PENDING, deadline_s)
        ids = await self._indexed(around, degraded, deadline_s)
        rows = await self._store.fetch(around.scope, ids, model, 0, deadline_s) if ids else []
        unique = {row.memory.memory_id: row for row in (*rows, *pending.candidates)}
        return [found for row in unique.values() if (found := _compare(row, around)) is not None]

    async def _indexed(self, around: Around, degraded: DegradedNotes, deadline_s: float) -> list[str]:
        wanted = AllOf(
            (
                exactly("subject_id", around.subject_id),
                Condition("kind", Operator.EQUALS, (around.kind.name,)),
                Condition("pool", Operator.EQUALS, (around.pool.name,)),
            )
        )
        try:
            found = await around.space.vectors.search(around.scope, around.embedding, wanted, NEAREST, EF, deadline_s)
        except BackendUnavailable as error:
            degraded.add(error.backend, "BACKEND_UNAVAILABLE", "repeats are recognised by exact content alone")
            return []
        calibrate = around.space.embedder.calibrate
        return [item.memory_id for item in found if calibrate(item.score) >= around.least_similarity]


def _compare(row: StoredCandidate, around: Around) -> Neighbour | None:
    memory = row.memory
    described = (memory.subject_id, memory.kind, memory.pool, memory.state)
    if row.embedding is None or described != (around.subject_id, around.kind, around.pool, State.ACTIVE):
        return None
    similarity = around.space.embedder.calibrate(float(np.dot(row.embedding, around.embedding)))
    if similarity < around.least_similarity:
        return None
    return Neighbour(memory, parse_body(memory).content, similarity)
