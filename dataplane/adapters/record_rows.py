"""Memories and embeddings as columns, and back, for every record store that speaks SQL."""

from collections.abc import Callable, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any

import numpy as np

from dataplane.changes import Change, MemoryVersion
from dataplane.model import Kind, Layer, Memory, Pool, SourceType, State, Vector

COLUMNS = tuple(field.name for field in fields(Memory))
"""The columns bear the names of Memory's fields, in their order."""

values_of: Callable[[Memory], tuple[Any, ...]] = attrgetter(*COLUMNS)
"""A memory's column values, in the order of COLUMNS."""

_KINDS = {int(kind): kind for kind in Kind}
_LAYERS = {int(layer): layer for layer in Layer}
_STATES = {int(state): state for state in State}
_POOLS = {int(pool): pool for pool in Pool}
_SOURCES = {int(source): source for source in SourceType}


def columns(table: str) -> str:
    """COLUMNS of a table alias, as a select list."""
    return ", ".join(f"{table}.{name}" for name in COLUMNS)


def memory_from(row: Sequence[Any]) -> Memory:
    """A memory from a row that begins with COLUMNS."""
    return Memory(
        memory_id=row[0],
        namespace=row[1],
        subject_id=row[2],
        session_id=row[3],
        kind=_KINDS[row[4]],
        layer=_LAYERS[row[5]],
        state=_STATES[row[6]],
        pool=_POOLS[row[7]],
        category=row[8],
        fact_key=row[9],
        source_type=_SOURCES[row[10]],
        confidence=row[11],
        content_hash=row[12],
        statement_key=row[13],
        version=row[14],
        create_time_us=row[15],
        update_time_us=row[16],
        event_time_us=row[17],
        valid_from_us=row[18],
        valid_to_us=row[19],
        expire_time_us=row[20],
        superseded_by_id=row[21],
        strength=row[22],
        strength_time_us=row[23],
        access_count=row[24],
        last_access_time_us=row[25],
        sequence=row[26],
        body=row[27],
    )


def version_from(row: Sequence[Any]) -> MemoryVersion:
    """A version from COLUMNS, record_time_us, principal_id, change, reason."""
    record_time_us, principal_id, change, reason = row[len(COLUMNS) :]
    return MemoryVersion(memory_from(row), record_time_us, principal_id, Change(change), reason)


def vector_to_blob(vector: Vector) -> bytes:
    """An embedding as float32, little-endian."""
    return np.asarray(vector, dtype="<f4").tobytes()


def vector_from_blob(blob: bytes | None) -> Vector | None:
    """The embedding, read-only; None for None."""
    return None if blob is None else np.frombuffer(blob, dtype="<f4")
