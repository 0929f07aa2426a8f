"""Takes update and forget requests apart."""

from collections.abc import Callable, Mapping

from dataplane.codec import to_us
from dataplane.logic.filters import ENUM_NAMES
from dataplane.model import MAX_TAGS, Kind
from dataplane.pipelines.forget import Forgetting
from dataplane.pipelines.requests import Identified
from dataplane.pipelines.update import Revision
from dataplane.server.checks import OWNER_KEYS, Notes
from dataplane.server.requests import payload_hash, read_content, read_source
from memplane.v1 import memory_pb2, memory_service_pb2

MODES = ("SOFT", "HARD")

_Reader = Callable[[Notes, memory_pb2.Memory], None]


def read_revision(request: memory_service_pb2.UpdateMemoryRequest, now_us: int) -> Revision:
    """The revision of an update request."""
    notes = Notes()
    given = request.memory
    paths = tuple(dict.fromkeys(request.update_mask.paths))
    if not paths:
        notes.add("update_mask", f"is required; any of {', '.join(_READERS)}")
    values = Notes("memory.")
    for path in paths:
        if path not in _READERS:
            notes.add("update_mask", f"{path[:64]!r} cannot be changed; any of {', '.join(_READERS)}")
        else:
            _READERS[path](values, given)
    if {"valid_from", "valid_to"} <= set(paths) and given.HasField("valid_from") and given.HasField("valid_to"):
        values.ordered("valid_from", to_us(given.valid_from), "valid_to", to_us(given.valid_to))
    if "event_time" in paths and given.HasField("event_time"):
        values.not_ahead("event_time", to_us(given.event_time), now_us)
    revision = Revision(
        memory_id=_required(notes, "memory.id", given.id),
        etag=notes.label("etag", request.etag),
        reason=notes.label("reason", request.reason, 1024),
        request=_identified(notes, request, given.namespace, "memory.namespace"),
        apply=_applier(given, tuple(path for path in paths if path in _READERS)),
    )
    notes.merge(values)
    notes.close()
    return revision


def _applier(given: memory_pb2.Memory, paths: tuple[str, ...]) -> Callable[[memory_pb2.Memory], None]:
    def apply(target: memory_pb2.Memory) -> None:
        for path in paths:
            target.ClearField(path)  # type: ignore[arg-type]  # a field's name as a variable
        chosen = memory_pb2.Memory()
        chosen.CopyFrom(given)
        for field, _ in given.ListFields():
            if field.name not in paths:
                chosen.ClearField(field.name)  # type: ignore[arg-type]  # likewise
        target.MergeFrom(chosen)
        if target.kind == memory_pb2.KIND_UNSPECIFIED:
            target.kind = memory_pb2.Kind.ValueType(Kind.FACT)

    return apply


def read_forgetting(request: memory_service_pb2.ForgetMemoryRequest) -> Forgetting:
    """The forgetting of a forget request."""
    notes = Notes()
    mode = notes.enum("mode", request.mode, MODES)
    forgetting = Forgetting(
        memory_id=_required(notes, "id", request.id),
        hard=mode == memory_service_pb2.FORGET_MODE_HARD,
        etag=notes.label("etag", request.etag),
        reason=notes.label("reason", request.reason, 1024),
        request=_identified(notes, request, request.namespace, "namespace"),
    )
    notes.close()
    return forgetting


def _identified(
    notes: Notes,
    request: memory_service_pb2.UpdateMemoryRequest | memory_service_pb2.ForgetMemoryRequest,
    namespace: str,
    field: str,
) -> Identified:
    request_id = notes.label("request_id", request.request_id, 128)
    return Identified(notes.namespace(field, namespace), request_id, payload_hash(request) if request_id else "")


def _required(notes: Notes, field: str, value: str) -> str:
    if not value:
        notes.add(field, "is required")
    return notes.label(field, value)


def _content(notes: Notes, memory: memory_pb2.Memory) -> None:
    memory.content = read_content(notes, memory.content)


def _kind(notes: Notes, memory: memory_pb2.Memory) -> None:
    notes.enum("kind", memory.kind, ENUM_NAMES["kind"])


def _sensitivity(notes: Notes, memory: memory_pb2.Memory) -> None:
    notes.enum("sensitivity", memory.sensitivity, ENUM_NAMES["sensitivity"])


def _confidence(notes: Notes, memory: memory_pb2.Memory) -> None:
    notes.unit("confidence", memory.confidence)


def _sequence(notes: Notes, memory: memory_pb2.Memory) -> None:
    notes.integer("sequence", memory.sequence, 0, 2**62)


def _tags(notes: Notes, memory: memory_pb2.Memory) -> None:
    clean = notes.labels("tags", memory.tags, MAX_TAGS)
    del memory.tags[:]
    memory.tags.extend(clean)


def _source(notes: Notes, memory: memory_pb2.Memory) -> None:
    source = read_source(notes, memory.source)
    memory.source.type = memory_pb2.SourceType.ValueType(source.type)
    memory.source.ref = source.ref
    memory.source.operator_id = source.operator_id


def _metadata(notes: Notes, memory: memory_pb2.Memory) -> None:
    notes.struct("metadata", memory.metadata, OWNER_KEYS)


def _structured(notes: Notes, memory: memory_pb2.Memory) -> None:
    notes.struct("structured", memory.structured)


def _label(field: str, max_bytes: int = 256) -> _Reader:
    def read(notes: Notes, memory: memory_pb2.Memory) -> None:
        setattr(memory, field, notes.label(field, getattr(memory, field), max_bytes))

    return read


def _time(field: str) -> _Reader:
    def read(notes: Notes, memory: memory_pb2.Memory) -> None:
        if memory.HasField(field):  # type: ignore[arg-type]  # a field's name as a variable
            notes.time_us(field, getattr(memory, field))

    return read


_READERS: Mapping[str, _Reader] = {
    "content": _content,
    "kind": _kind,
    "entity_type": _label("entity_type"),
    "category": _label("category"),
    "fact_key": _label("fact_key", 512),
    "structured": _structured,
    "confidence": _confidence,
    "sensitivity": _sensitivity,
    "event_time": _time("event_time"),
    "valid_from": _time("valid_from"),
    "valid_to": _time("valid_to"),
    "expire_time": _time("expire_time"),
    "tags": _tags,
    "metadata": _metadata,
    "session_id": _label("session_id"),
    "speaker": _label("speaker"),
    "sequence": _sequence,
    "source": _source,
}
