"""Memories as points, and back."""

import uuid
from collections.abc import Iterable, Sequence

import numpy as np
from qdrant_client import models

from dataplane.adapters.payload_filters import payload_of
from dataplane.model import Candidate, Held, IndexEntry, Vector

LENGTH_TOLERANCE = 1e-3
"""How far from 1 the length of a vector may be: float32 rounding stays below a hundredth of it."""

_MEMORIES = uuid.UUID("8d1f7a2c-5b0e-5c3a-9a44-1f6b2f0f7f11")

Found = models.Record | models.ScoredPoint


def point_id(memory_id: str) -> str:
    """The id of a memory's point: Qdrant takes numbers and UUIDs only."""
    return str(uuid.uuid5(_MEMORIES, memory_id))


def point_of(entry: IndexEntry) -> models.PointStruct:
    """The point of a checked entry."""
    assert entry.embedding is not None
    return models.PointStruct(id=point_id(entry.memory_id), vector=entry.embedding.tolist(), payload=payload_of(entry))


def latest(entries: Sequence[IndexEntry], dimension: int) -> dict[str, list[IndexEntry]]:
    """The last entry of each memory, by partition.

    Raises ValueError, naming the memory, for an embedding that is none of this index.
    """
    last = {entry.memory_id: entry for entry in entries}
    by_partition: dict[str, list[IndexEntry]] = {}
    for entry in last.values():
        if entry.embedding is None:
            raise ValueError(f"{entry.memory_id} has no embedding; a vector index needs one")
        check_vector(entry.embedding, dimension, f"the vector of {entry.memory_id}")
        by_partition.setdefault(entry.partition, []).append(entry)
    return by_partition


def check_vector(vector: Vector, dimension: int, what: str) -> None:
    """Raises ValueError unless it is a vector of this dimension, finite and of length 1."""
    if vector.shape != (dimension,):
        raise ValueError(f"{what} has shape {vector.shape}; this index holds ({dimension},)")
    length = float(np.linalg.norm(vector))
    if not abs(length - 1.0) <= LENGTH_TOLERANCE:
        raise ValueError(f"{what} has length {length:g}, not 1: it is not normalised, zero or not finite")


def candidate(point: models.ScoredPoint) -> Candidate:
    """What a search found."""
    payload = point.payload or {}
    return Candidate(payload["memory_id"], payload["version"], point.score)


def terms(point: models.ScoredPoint) -> list[str]:
    """The `terms` that came with it."""
    found: list[str] = (point.payload or {}).get("terms", [])
    return found


def best(found: Iterable[Candidate], top_k: int) -> list[Candidate]:
    """The best of several collections: each memory once, at the newest version anyone holds."""
    newest: dict[str, Candidate] = {}
    for each in found:
        other = newest.get(each.memory_id)
        if other is None or each.version > other.version:
            newest[each.memory_id] = each
    return sorted(newest.values(), key=lambda each: -each.score)[:top_k]


def held_in(points: Iterable[Found], held: dict[str, Held]) -> None:
    """Adds what these points hold; the newest version of a memory stays."""
    for point in points:
        payload = point.payload or {}
        memory_id, version = payload["memory_id"], payload["version"]
        if memory_id not in held or version > held[memory_id].version:
            held[memory_id] = Held(version, payload["namespace"], payload.get("fingerprint", ""))
