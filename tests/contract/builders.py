"""Memories and commits with sensible values, each replaceable by keyword."""

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from dataplane.changes import Change, Commit, Lease, OutboxRow
from dataplane.model import FieldValue, Kind, Layer, Memory, Pool, Scope, SourceType, State, Vector
from dataplane.ports import RecordStore

NOW_US = 1_760_000_000_000_000
MODEL = "test-model"
NAMESPACE = "acme.sales"
DIMENSION = 8
INDEX = "vector_index:test"
"""An index that every store of the contract tests has registered."""


def scope_of(*namespaces: str, shared: tuple[str, ...] = ()) -> Scope:
    return Scope(namespaces or (NAMESPACE,), shared)


def content_hash_of(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


def vector_of(seed: int, dimension: int = DIMENSION) -> Vector:
    """A unit vector, the same for the same seed."""
    drawn = np.random.default_rng(seed).standard_normal(dimension).astype(np.float32)
    return drawn / np.linalg.norm(drawn)


def memory_of(memory_id: str = "mem_1", content: str | None = None, **overrides: Any) -> Memory:
    """An ACTIVE memory of NAMESPACE at version 1; its content (default: its id) sets hash and body."""
    text = memory_id if content is None else content
    values: dict[str, Any] = {
        "memory_id": memory_id,
        "namespace": NAMESPACE,
        "subject_id": "",
        "session_id": "",
        "kind": Kind.FACT,
        "layer": Layer.LONG_TERM,
        "state": State.ACTIVE,
        "pool": Pool.PRIVATE,
        "category": "",
        "fact_key": "",
        "source_type": SourceType.USER,
        "confidence": 0.75,
        "content_hash": content_hash_of(text),
        "statement_key": content_hash_of(text),
        "version": 1,
        "create_time_us": NOW_US,
        "update_time_us": NOW_US,
        "event_time_us": None,
        "valid_from_us": None,
        "valid_to_us": None,
        "expire_time_us": None,
        "superseded_by_id": "",
        "strength": 1.0,
        "strength_time_us": NOW_US,
        "access_count": 0,
        "last_access_time_us": None,
        "body": text.encode(),
    }
    return Memory(**{**values, **overrides})


def commit_of(memory: Memory | None = None, **overrides: Any) -> Commit:
    """A commit that creates the memory (or logs only, for None), in the scope of its namespace."""
    namespace = memory.namespace if memory else NAMESPACE
    values: dict[str, Any] = {
        "scope": Scope((namespace,)),
        "namespace": namespace,
        "now_us": NOW_US,
        "principal_id": "alice",
        "change": Change.CREATED,
        "memory": memory,
        "embedding_model": MODEL,
    }
    return Commit(**{**values, **overrides})


def fields_of(memory: Memory) -> Mapping[str, FieldValue]:
    """What filters see of a memory in tests: some of its head, and its body as `speaker`."""
    return {
        "session_id": memory.session_id,
        "kind": memory.kind.name,
        "layer": memory.layer.name,
        "category": memory.category,
        "confidence": memory.confidence,
        "create_time": memory.create_time_us,
        "event_time": memory.event_time_us,
        "valid_to": memory.valid_to_us,
        "version": memory.version,
        "tags": tuple(memory.category.split()),
        "speaker": memory.body.decode(errors="replace"),
    }


async def outbox_of(store: RecordStore, deadline_s: float, index: str = INDEX) -> list[OutboxRow]:
    """The oldest row of each memory that awaits an index, by position; they are given back at once."""
    rows = await store.lease_outbox(index, Lease("looking", 30.0), 10_000, MODEL, deadline_s)
    await store.release_outbox("looking", deadline_s)
    return rows
