"""Between the contract's messages and our values: the body of a stored memory, and memories in answers. Pure.

A body is a serialised `memplane.v1.Memory`. An answer is the body with the fields that change without a new version
appended: protobuf takes the later value of a field, so nothing is decoded and encoded again on the way out.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from google.protobuf import struct_pb2
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.timestamp_pb2 import Timestamp

from dataplane.changes import MemoryVersion
from dataplane.logic.statement import Statement, statement_key
from dataplane.model import Draft, FieldValue, Kind, Layer, Memory, Pool, SourceType, State
from memplane.v1 import memory_pb2, memory_service_pb2

_US = 1_000_000


def to_us(stamp: Timestamp) -> int:
    """Microseconds since 1970 of a timestamp."""
    return stamp.seconds * _US + stamp.nanos // 1000


def timestamp(time_us: int) -> Timestamp:
    """The timestamp of microseconds since 1970."""
    seconds, micros = divmod(time_us, _US)
    return Timestamp(seconds=seconds, nanos=micros * 1000)


def etag_of(version: int) -> str:
    """The etag of a version; opaque to clients."""
    return f"v{version}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Admission:
    """What the data plane adds to an admitted draft. `layer_ttl_us`: how long its layer keeps it; None: for good."""

    memory_id: str
    content: str
    content_hash: str
    layer: Layer
    confidence: float
    principal_id: str
    policy_version: str
    now_us: int
    original_content: str = ""
    layer_ttl_us: int | None = None
    unscored: bool = False


def new_memory(draft: Draft, admission: Admission, state: State, initial_strength: float) -> Memory:
    """The first version of an admitted draft."""
    message = _message_of(draft, admission)
    return _memory_of(message, draft, admission, state, initial_strength)


def _message_of(draft: Draft, admission: Admission) -> memory_pb2.Memory:
    now = timestamp(admission.now_us)
    message = memory_pb2.Memory(
        id=admission.memory_id,
        namespace=draft.namespace,
        subject_id=draft.subject_id,
        agent_id=draft.agent_id,
        session_id=draft.session_id,
        speaker=draft.speaker,
        sequence=draft.sequence,
        layer=memory_pb2.Layer.ValueType(admission.layer),
        kind=memory_pb2.Kind.ValueType(draft.kind),
        entity_type=draft.entity_type,
        category=draft.category,
        fact_key=draft.fact_key,
        content=admission.content,
        confidence=admission.confidence,
        create_time=now,
        update_time=now,
        version=1,
        etag=etag_of(1),
        tags=draft.tags,
        content_hash=admission.content_hash,
        pool=memory_pb2.Pool.ValueType(draft.pool),
    )
    message.source.type = memory_pb2.SourceType.ValueType(draft.source.type)
    message.source.ref = draft.source.ref
    message.source.operator_id = draft.source.operator_id
    _set_times(message, draft, admission)
    _set_provenance(message, draft, admission)
    if draft.metadata:
        message.metadata.CopyFrom(struct_of(draft.metadata))
    if draft.structured:
        message.structured.CopyFrom(struct_of(draft.structured))
    return message


def expiry_us(draft: Draft, admission: Admission) -> int | None:
    """When the memory may be removed: the draft's own time to live, else its layer's; None: never by itself."""
    ttl_us = draft.ttl_us if draft.ttl_us is not None else admission.layer_ttl_us
    return None if ttl_us is None else admission.now_us + ttl_us


def _set_times(message: memory_pb2.Memory, draft: Draft, admission: Admission) -> None:
    expire_time_us = expiry_us(draft, admission)
    if expire_time_us is not None:
        message.expire_time.CopyFrom(timestamp(expire_time_us))
    if draft.event_time_us is not None:
        message.event_time.CopyFrom(timestamp(draft.event_time_us))
    valid_from_us = draft.valid_from_us if draft.valid_from_us is not None else draft.event_time_us
    message.valid_from.CopyFrom(timestamp(valid_from_us if valid_from_us is not None else admission.now_us))
    if draft.valid_to_us is not None:
        message.valid_to.CopyFrom(timestamp(draft.valid_to_us))


def _set_provenance(message: memory_pb2.Memory, draft: Draft, admission: Admission) -> None:
    message.provenance.principal_id = admission.principal_id
    message.provenance.request_id = draft.request_id
    message.provenance.source_id = draft.source_id
    message.provenance.policy_version = admission.policy_version
    message.provenance.unscored = admission.unscored
    if admission.original_content:
        message.provenance.condensed = True
        message.provenance.original_content = admission.original_content


def _memory_of(
    message: memory_pb2.Memory, draft: Draft, admission: Admission, state: State, initial_strength: float
) -> Memory:
    return Memory(
        memory_id=admission.memory_id,
        namespace=draft.namespace,
        subject_id=draft.subject_id,
        session_id=draft.session_id,
        kind=draft.kind,
        layer=admission.layer,
        state=state,
        pool=draft.pool,
        category=draft.category,
        fact_key=draft.fact_key,
        source_type=draft.source.type,
        confidence=admission.confidence,
        content_hash=admission.content_hash,
        statement_key=statement_key(statement_of(message)),
        version=1,
        create_time_us=admission.now_us,
        update_time_us=admission.now_us,
        event_time_us=draft.event_time_us,
        valid_from_us=to_us(message.valid_from),
        valid_to_us=draft.valid_to_us,
        expire_time_us=to_us(message.expire_time) if message.HasField("expire_time") else None,
        superseded_by_id="",
        strength=initial_strength,
        strength_time_us=admission.now_us,
        access_count=0,
        last_access_time_us=None,
        sequence=draft.sequence,
        body=message.SerializeToString(),
    )


def parse_body(memory: Memory) -> memory_pb2.Memory:
    """The message of a memory's body."""
    return memory_pb2.Memory.FromString(memory.body)


def statement_of(message: memory_pb2.Memory) -> Statement:
    """What the memory of this message is told apart by."""
    return Statement(
        content_hash=message.content_hash,
        speaker=message.speaker,
        fact_key=message.fact_key,
        kind=Kind(message.kind),
        event_time_us=_optional_us(message, "event_time"),
        layer=Layer(message.layer),
        session_id=message.session_id,
    )


def next_version(memory: Memory, message: memory_pb2.Memory, now_us: int) -> Memory:
    """The memory's next version, with the fields of `message`; its identity stays."""
    version = memory.version + 1
    message.version = version
    message.etag = etag_of(version)
    message.update_time.CopyFrom(timestamp(now_us))
    return replace(
        memory,
        session_id=message.session_id,
        kind=Kind(message.kind),
        layer=Layer(message.layer),
        pool=Pool(message.pool),
        category=message.category,
        fact_key=message.fact_key,
        source_type=SourceType(message.source.type),
        confidence=message.confidence,
        content_hash=message.content_hash,
        statement_key=statement_key(statement_of(message)),
        version=version,
        update_time_us=now_us,
        event_time_us=_optional_us(message, "event_time"),
        valid_from_us=_optional_us(message, "valid_from"),
        valid_to_us=_optional_us(message, "valid_to"),
        expire_time_us=_optional_us(message, "expire_time"),
        sequence=message.sequence,
        body=message.SerializeToString(),
    )


def _optional_us(message: memory_pb2.Memory, field: str) -> int | None:
    return to_us(getattr(message, field)) if message.HasField(field) else None  # type: ignore[arg-type]  # by name


def tail_of(memory: Memory, state: State, strength: float) -> bytes:
    """The changing fields as they go behind the body in an answer.

    A memory that another superseded counts a version up without a new body, so its version goes along.
    """
    tail = memory_pb2.Memory(
        state=memory_pb2.State.ValueType(state),
        strength=strength,
        access_count=memory.access_count,
        superseded_by_id=memory.superseded_by_id,
    )
    if memory.superseded_by_id:
        tail.version = memory.version
        tail.etag = etag_of(memory.version)
        tail.update_time.CopyFrom(timestamp(memory.update_time_us))
    if memory.last_access_time_us is not None:
        tail.last_access_time.CopyFrom(timestamp(memory.last_access_time_us))
    if memory.valid_to_us is not None:
        tail.valid_to.CopyFrom(timestamp(memory.valid_to_us))
    return tail.SerializeToString()


def answer(memory: Memory, state: State, strength: float) -> memory_pb2.Memory:
    """The memory as a client sees it."""
    return memory_pb2.Memory.FromString(memory.body + tail_of(memory, state, strength))


def receipt(memory: Memory, state: State) -> memory_pb2.Memory:
    """What a caller who may not read learns of a memory: which one it is, and where it stands."""
    return memory_pb2.Memory(
        id=memory.memory_id,
        namespace=memory.namespace,
        layer=memory_pb2.Layer.ValueType(memory.layer),
        state=memory_pb2.State.ValueType(state),
        version=memory.version,
        etag=etag_of(memory.version),
    )


def version_answer(version: MemoryVersion) -> memory_service_pb2.MemoryVersion:
    """A version of the history as a client sees it."""
    memory = version.memory
    return memory_service_pb2.MemoryVersion(
        memory=answer(memory, memory.state, memory.strength),
        record_time=timestamp(version.record_time_us),
        principal_id=version.principal_id,
        change=version.change.value,
        reason=version.reason,
    )


def struct_of(values: Mapping[str, object]) -> struct_pb2.Struct:
    """A Struct of plain values."""
    return ParseDict(dict(values), struct_pb2.Struct())


def plain(struct: struct_pb2.Struct) -> dict[str, object]:
    """The plain values of a Struct."""
    return dict(MessageToDict(struct))


def _sensitivity_name(message: memory_pb2.Memory) -> str | None:
    if message.sensitivity == memory_pb2.SENSITIVITY_UNSPECIFIED:
        return None
    return memory_pb2.Sensitivity.Name(message.sensitivity).removeprefix("SENSITIVITY_")


def fields_of(memory: Memory) -> dict[str, FieldValue]:
    """Every field that a filter may name, of one memory (see FilterCondition in the contract)."""
    message = parse_body(memory)
    fields: dict[str, FieldValue] = {
        "subject_id": memory.subject_id,
        "pool": Pool(memory.pool).name,
        "agent_id": message.agent_id,
        "session_id": memory.session_id,
        "speaker": message.speaker,
        "sequence": message.sequence,
        "layer": Layer(memory.layer).name,
        "kind": Kind(memory.kind).name,
        "entity_type": message.entity_type,
        "category": memory.category,
        "fact_key": memory.fact_key,
        "source_type": SourceType(memory.source_type).name,
        "confidence": memory.confidence,
        "sensitivity": _sensitivity_name(message),
        "create_time": memory.create_time_us,
        "update_time": memory.update_time_us,
        "event_time": memory.event_time_us,
        "valid_from": memory.valid_from_us,
        "valid_to": memory.valid_to_us,
        "expire_time": memory.expire_time_us,
        "version": memory.version,
        "tags": tuple(message.tags),
    }
    for key, value in message.metadata.fields.items():
        which = value.WhichOneof("kind")
        if which in ("string_value", "number_value", "bool_value"):
            fields[f"metadata.{key}"] = getattr(value, which)
    return fields
