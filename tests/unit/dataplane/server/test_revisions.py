"""Update requests: each field of the mask is checked, and nothing else of the memory is touched."""

from collections.abc import Callable
from typing import Any

import pytest
from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

from dataplane.server.revisions import read_forgetting, read_revision
from memplane.errors import InvalidField
from memplane.v1 import memory_pb2
from memplane.v1 import memory_service_pb2 as pb

NOW_US = 1_760_000_000_000_000

Change = Callable[[memory_pb2.Memory], Any]


def request(*paths: str, **fields: Any) -> pb.UpdateMemoryRequest:
    memory = memory_pb2.Memory(namespace="a", id="mem_1", **fields)
    return pb.UpdateMemoryRequest(memory=memory, update_mask=FieldMask(paths=paths))


def struct(**values: Any) -> Struct:
    made = Struct()
    made.update(values)
    return made


NEW: dict[str, Any] = {
    "content": "Drinks tea",
    "kind": memory_pb2.KIND_PREFERENCE,
    "entity_type": "customer",
    "category": "sales",
    "fact_key": "user/drink",
    "structured": struct(drink="tea"),
    "confidence": 0.25,
    "sensitivity": memory_pb2.SENSITIVITY_INTERNAL,
    "event_time": Timestamp(seconds=1),
    "valid_from": Timestamp(seconds=2),
    "valid_to": Timestamp(seconds=3),
    "expire_time": Timestamp(seconds=4),
    "tags": ["a", "b"],
    "metadata": struct(ticket=7),
    "session_id": "s2",
    "speaker": "Li",
    "sequence": 9,
    "source": memory_pb2.Source(type=memory_pb2.SOURCE_TYPE_HUMAN, ref="ticket 7"),
}


@pytest.mark.parametrize("path", NEW)
def test_a_field_of_the_mask_is_replaced_and_no_other(path: str) -> None:
    before = memory_pb2.Memory(id="mem_1", namespace="a", subject_id="u", content="Drinks coffee", tags=["old"])
    after = memory_pb2.Memory()
    after.CopyFrom(before)
    read_revision(request(path, **NEW), NOW_US).apply(after)
    assert getattr(after, path) == NEW[path]
    changed = {
        field.name for field in after.DESCRIPTOR.fields if getattr(after, field.name) != getattr(before, field.name)
    }
    assert changed - {"kind"} == {path} - {"kind"}  # a memory without a kind becomes a FACT


BAD: list[tuple[str, Any]] = [
    ("content", "\u200b"),
    ("kind", 99),
    ("entity_type", "x" * 257),
    ("fact_key", "x" * 513),
    ("confidence", 1.5),
    ("sensitivity", 99),
    ("event_time", Timestamp(seconds=10**15)),
    ("tags", ["x"] * 65),
    ("metadata", struct(subject_id="someone else")),
    ("structured", struct(note="x" * 20_000)),
    ("sequence", -1),
    ("source", memory_pb2.Source(type=42)),
]


@pytest.mark.parametrize(("path", "value"), BAD, ids=[path for path, _ in BAD])
def test_a_wrong_value_is_named_by_its_path(path: str, value: Any) -> None:
    with pytest.raises(InvalidField) as refused:
        read_revision(request(path, **{path: value}), NOW_US)
    assert all(item.field.startswith(f"memory.{path}") for item in refused.value.violations)


@pytest.mark.parametrize("paths", [(), ("namespace",), ("id",), ("subject_id",), ("state",), ("source.type",)])
def test_what_may_not_be_changed_is_refused(paths: tuple[str, ...]) -> None:
    with pytest.raises(InvalidField, match="update_mask"):
        read_revision(request(*paths), NOW_US)


def test_a_cleared_time_is_absent() -> None:
    memory = memory_pb2.Memory(event_time=Timestamp(seconds=1))
    read_revision(request("event_time"), NOW_US).apply(memory)
    assert not memory.HasField("event_time")


def test_forgetting_is_soft_unless_hard_is_asked_for() -> None:
    assert not read_forgetting(pb.ForgetMemoryRequest(namespace="a", id="mem_1")).hard
    assert read_forgetting(pb.ForgetMemoryRequest(namespace="a", id="mem_1", mode=pb.FORGET_MODE_HARD)).hard


def test_forgetting_needs_to_know_what() -> None:
    with pytest.raises(InvalidField) as refused:
        read_forgetting(pb.ForgetMemoryRequest())
    assert {item.field for item in refused.value.violations} == {"namespace", "id"}
