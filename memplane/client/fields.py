"""The optional fields of writes and searches as keyword arguments; each means what the contract says of it."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, TypedDict

from memplane.v1 import memory_pb2


class WriteFields(TypedDict, total=False):
    """Optional fields of `WriteMemoryRequest`: enums by name, instants with a time zone."""

    kind: str
    layer_hint: str
    subject_id: str
    session_id: str
    source: str | Mapping[str, Any] | memory_pb2.Source
    event_time: datetime | None
    speaker: str
    sequence: int
    fact_key: str
    entity_type: str
    category: str
    embedding: Sequence[float]
    ttl: timedelta | None
    tags: Sequence[str]
    metadata: Mapping[str, Any]
    template: str
    pool: str
    delivery: str
    request_id: str
    validate_only: bool
    agent_id: str
    source_id: str
    structured: Mapping[str, Any]
    confidence: float | None
    valid_from: datetime | None
    valid_to: datetime | None


class SearchFields(TypedDict, total=False):
    """Optional fields of `SearchMemoriesRequest`: enums by name, instants with a time zone."""

    namespaces: Sequence[str]
    include_shared: bool
    subject_id: str
    layers: Sequence[str]
    kinds: Sequence[str]
    filter: memory_pb2.Filter | None
    top_k: int
    min_confidence: float | None
    context_turns: Sequence[str]
    task_type: str
    reference_time: datetime | None
    as_of: datetime | None
    record_access: bool | None
    at_least_as_fresh: str
    include_cold: bool
    explain: bool


class ListFields(TypedDict, total=False):
    """Optional fields of `ListMemoriesRequest`: enums by name."""

    subject_id: str
    layers: Sequence[str]
    kinds: Sequence[str]
    states: Sequence[str]
    filter: memory_pb2.Filter | None
    page_size: int


class ChangedFields(TypedDict, total=False):
    """Fields that `UpdateMemory` can change; those given are changed, None empties one."""

    content: str
    kind: str
    entity_type: str
    category: str
    fact_key: str
    structured: Mapping[str, Any] | None
    confidence: float
    sensitivity: str
    event_time: datetime | None
    valid_from: datetime | None
    valid_to: datetime | None
    expire_time: datetime | None
    tags: Sequence[str]
    metadata: Mapping[str, Any] | None
    session_id: str
    speaker: str
    sequence: int
    source: str | Mapping[str, Any] | memory_pb2.Source


class Guard(TypedDict, total=False):
    """What makes a change safe and explained: etag of the version seen, the reason, an id for retries."""

    etag: str
    reason: str
    request_id: str
