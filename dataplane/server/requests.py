"""Takes write, update and forget requests apart: what comes out is clean and whole, or InvalidField says why not."""

import hashlib
from collections.abc import Callable, Sequence

import numpy as np
from google.protobuf.message import Message

from dataplane.logic.filters import ENUM_NAMES
from dataplane.logic.normalise import normalise_content
from dataplane.model import MAX_TAGS, Draft, Kind, Layer, Pool, Source, SourceType, Vector
from dataplane.server.checks import OWNER_KEYS, Notes
from memplane.v1 import memory_pb2, memory_service_pb2

MAX_CONTENT_BYTES = 1_000_000
"""Above every policy's `max_content_bytes`; refused before any work is done on it."""

_MAX_TTL_S = 315_576_000_000


def payload_hash(request: Message, without: Sequence[str] = ("request_id",)) -> str:
    """SHA-256 hex of a request's content: equal for requests that differ in `without` alone."""
    copy = type(request).FromString(request.SerializeToString(deterministic=True))
    for field in without:
        copy.ClearField(field)
    return hashlib.sha256(copy.SerializeToString(deterministic=True)).hexdigest()


def read_draft(request: memory_service_pb2.WriteMemoryRequest, now_us: int, dimension: int) -> Draft:
    """The draft of a write request."""
    notes = Notes()
    notes.enum("delivery", request.delivery, ("SYNC", "QUEUED"))
    if request.template:
        notes.add("template", "the policy has no templates; leave it empty")
    draft = _draft(notes, request, now_us, dimension)
    if draft.valid_to_us is not None and draft.valid_from_us is not None:
        notes.ordered("valid_from", draft.valid_from_us, "valid_to", draft.valid_to_us)
    notes.close()
    return draft


def _draft(notes: Notes, request: memory_service_pb2.WriteMemoryRequest, now_us: int, dimension: int) -> Draft:
    event_time_us = _event_time(notes, request, now_us)
    hint = notes.enum("layer_hint", request.layer_hint, ENUM_NAMES["layer"])
    return Draft(
        namespace=notes.namespace("namespace", request.namespace),
        content=read_content(notes, request.content),
        kind=Kind(notes.enum("kind", request.kind, ENUM_NAMES["kind"]) or Kind.FACT),
        layer_hint=Layer(hint) if hint else None,
        subject_id=notes.label("subject_id", request.subject_id),
        session_id=notes.label("session_id", request.session_id),
        agent_id=notes.label("agent_id", request.agent_id),
        source=read_source(notes, request.source),
        source_id=notes.label("source_id", request.source_id),
        event_time_us=event_time_us,
        speaker=notes.label("speaker", request.speaker),
        sequence=notes.integer("sequence", request.sequence, 0, 2**62),
        fact_key=notes.label("fact_key", request.fact_key, 512),
        entity_type=notes.label("entity_type", request.entity_type),
        category=notes.label("category", request.category),
        confidence=notes.unit("confidence", request.confidence) if request.HasField("confidence") else None,
        embedding=_embedding(notes, request, dimension),
        ttl_us=_ttl(notes, request),
        tags=notes.labels("tags", request.tags, MAX_TAGS),
        metadata=notes.struct("metadata", request.metadata, OWNER_KEYS),
        structured=notes.struct("structured", request.structured),
        pool=Pool(notes.enum("pool", request.pool, ENUM_NAMES["pool"]) or Pool.PRIVATE),
        valid_from_us=_time(notes, request, "valid_from"),
        valid_to_us=_time(notes, request, "valid_to"),
        request_id=notes.label("request_id", request.request_id, 128),
        payload_hash=payload_hash(request, ("request_id", "delivery")),
        validate_only=request.validate_only,
    )


def read_content(notes: Notes, content: str) -> str:
    """Normalised content that holds something visible."""
    size = len(content.encode())
    if size > MAX_CONTENT_BYTES:
        notes.add("content", f"has {size} bytes; at most {MAX_CONTENT_BYTES} are ever allowed, the policy allows fewer")
        return ""
    clean = normalise_content(content)
    if not clean:
        notes.add("content", "has no visible text; give what is to be remembered")
    return clean


def read_source(notes: Notes, source: memory_pb2.Source) -> Source:
    """Who stated it; AGENT when nothing is said."""
    return Source(
        type=SourceType(notes.enum("source.type", source.type, ENUM_NAMES["source_type"]) or SourceType.AGENT),
        ref=notes.label("source.ref", source.ref, 1024),
        operator_id=notes.label("source.operator_id", source.operator_id),
    )


def _event_time(notes: Notes, request: memory_service_pb2.WriteMemoryRequest, now_us: int) -> int | None:
    event_time_us = _time(notes, request, "event_time")
    if event_time_us is not None:
        notes.not_ahead("event_time", event_time_us, now_us)
    return event_time_us


def _time(notes: Notes, request: memory_service_pb2.WriteMemoryRequest, field: str) -> int | None:
    present: Callable[[str], bool] = request.HasField  # type: ignore[assignment]  # a field's name as a variable
    return notes.time_us(field, getattr(request, field)) if present(field) else None


def _ttl(notes: Notes, request: memory_service_pb2.WriteMemoryRequest) -> int | None:
    if not request.HasField("ttl"):
        return None
    if not 0 < request.ttl.seconds + request.ttl.nanos / 1e9 <= _MAX_TTL_S:
        notes.add("ttl", "must be above 0 and at most 10,000 years")
        return None
    return request.ttl.seconds * 1_000_000 + request.ttl.nanos // 1000


def _embedding(notes: Notes, request: memory_service_pb2.WriteMemoryRequest, dimension: int) -> Vector | None:
    if not request.embedding:
        return None
    vector = np.array(request.embedding, dtype=np.float32)
    if vector.shape != (dimension,):
        notes.add("embedding", f"has {len(vector)} numbers; the configured model has {dimension}")
        return None
    length = float(np.linalg.norm(vector))
    if not np.isfinite(length) or length < 1e-6:
        notes.add("embedding", "is zero or not finite")
        return None
    return vector / np.float32(length)
