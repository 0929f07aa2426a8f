"""Memories for tests of pure logic, with only the fields that a test is about."""

from dataclasses import replace
from typing import Any

from dataplane.model import Kind, Layer, Memory, Pool, SourceType, State, StoredCandidate

_ANY = Memory(
    memory_id="mem_1",
    namespace="dept.sales",
    subject_id="",
    session_id="",
    kind=Kind.FACT,
    layer=Layer.LONG_TERM,
    state=State.ACTIVE,
    pool=Pool.PRIVATE,
    category="",
    fact_key="",
    source_type=SourceType.USER,
    confidence=0.9,
    content_hash="",
    statement_key="",
    version=1,
    create_time_us=1_700_000_000_000_000,
    update_time_us=1_700_000_000_000_000,
    event_time_us=None,
    valid_from_us=None,
    valid_to_us=None,
    expire_time_us=None,
    superseded_by_id="",
    strength=1.0,
    strength_time_us=1_700_000_000_000_000,
    access_count=0,
    last_access_time_us=None,
    body=b"",
)


def a_memory(**fields: Any) -> Memory:
    return replace(_ANY, **fields)


def a_candidate(recent_access_count: int = 0, **fields: Any) -> StoredCandidate:
    return StoredCandidate(a_memory(**fields), None, recent_access_count)
