"""Rows of memories as bytes, for caches: exact, and readable by every process of the same layout."""

import dataclasses
import json
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from dataplane.model import Kind, Layer, Memory, Pool, SourceType, State, StoredCandidate

_NAMES = tuple(field.name for field in dataclasses.fields(Memory) if field.name != "body")
_ENUMS = {"kind": Kind, "layer": Layer, "state": State, "pool": Pool, "source_type": SourceType}

LAYOUT = ".".join(_NAMES)
"""Names the layout; who reads bytes of another one would misread them, so it belongs into their key."""

_LENGTH_BYTES = 4
_LAYOUT_MARK = blake2b(LAYOUT.encode(), digest_size=8).hexdigest()


def pack(head: Mapping[str, Any], rows: Sequence[StoredCandidate]) -> bytes:
    """Rows, and beside them what else JSON can say."""
    parts = [_tail(row) for row in rows]
    texts = [[_heads(row), len(row.memory.body)] for row in rows]
    described = json.dumps({"head": head, "rows": texts}, separators=(",", ":")).encode()
    return b"".join((len(described).to_bytes(_LENGTH_BYTES, "big"), described, *parts))


def unpack(data: bytes) -> tuple[dict[str, Any], list[StoredCandidate]]:
    """What `pack` was given; raises ValueError for anything else."""
    start = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "big")
    described = json.loads(data[_LENGTH_BYTES:start])
    rows = []
    for (values, recent, dimension), body_bytes in described["rows"]:
        end = start + body_bytes
        rows.append(_row(values, data[start:end], data[end : end + 4 * dimension], recent))
        start = end + 4 * dimension
    if start != len(data):
        raise ValueError("cut or prolonged")
    return described["head"], rows


def pack_memory(memory: Memory) -> bytes:
    """One memory as an index keeps it beside its entry: with the mark of the layout, without embedding."""
    return pack({"layout": _LAYOUT_MARK}, [StoredCandidate(memory, None, 0)])


def unpack_memory(data: bytes) -> Memory | None:
    """What `pack_memory` was given; None for another layout's bytes and for anything else."""
    try:
        length = _LENGTH_BYTES + int.from_bytes(data[:_LENGTH_BYTES], "big")
        if json.loads(data[_LENGTH_BYTES:length])["head"]["layout"] != _LAYOUT_MARK:
            return None
        _, (row,) = unpack(data)
    except (ValueError, KeyError, TypeError, IndexError):
        return None
    return row.memory


def _heads(row: StoredCandidate) -> list[Any]:
    dimension = 0 if row.embedding is None else len(row.embedding)
    return [[getattr(row.memory, name) for name in _NAMES], row.recent_access_count, dimension]


def _tail(row: StoredCandidate) -> bytes:
    return row.memory.body if row.embedding is None else row.memory.body + row.embedding.astype("<f4").tobytes()


def _row(values: Sequence[Any], body: bytes, embedding: bytes, recent: int) -> StoredCandidate:
    fields = dict(zip(_NAMES, values, strict=True))
    for name, enum in _ENUMS.items():
        fields[name] = enum(fields[name])
    vector = np.frombuffer(embedding, dtype="<f4") if embedding else None
    return StoredCandidate(Memory(**fields, body=body), vector, recent)
