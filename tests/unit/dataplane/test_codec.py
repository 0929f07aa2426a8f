"""Bodies, answers and filterable fields of memories."""

from dataclasses import replace

from dataplane.codec import Admission, answer, fields_of, new_memory, next_version, parse_body, timestamp, to_us
from dataplane.model import Draft, Kind, Layer, Memory, Pool, Source, SourceType, State
from memplane.v1 import memory_pb2

NOW_US = 1_760_000_000_123_456


def memory_of(**fields: object) -> Memory:
    values: dict[str, object] = {"namespace": "dept.sales", "content": "It rains", **fields}
    draft = Draft(**values)  # type: ignore[arg-type]  # fields by name
    admission = Admission(
        memory_id="mem_1",
        content=draft.content,
        content_hash="h",
        layer=Layer.LONG_TERM,
        confidence=0.9,
        principal_id="p",
        policy_version="v",
        now_us=NOW_US,
    )
    return new_memory(draft, admission, State.ACTIVE, 1.0)


def test_times_survive_both_ways_also_before_1970() -> None:
    for time_us in (0, NOW_US, -1, -86_400_000_001):
        assert to_us(timestamp(time_us)) == time_us


def test_an_answer_is_the_body_with_the_changing_fields_on_top() -> None:
    memory = replace(memory_of(tags=("a", "b")), access_count=3, last_access_time_us=NOW_US)
    message = answer(memory, State.COLD, 0.25)
    assert (message.state, message.strength, message.access_count) == (memory_pb2.STATE_COLD, 0.25, 3)
    assert list(message.tags) == ["a", "b"]
    assert to_us(message.last_access_time) == NOW_US


def test_a_superseded_memory_is_answered_with_its_end_and_successor() -> None:
    memory = replace(memory_of(), state=State.SUPERSEDED, version=2, valid_to_us=NOW_US, superseded_by_id="mem_2")
    message = answer(memory, memory.state, memory.strength)
    assert (message.superseded_by_id, to_us(message.valid_to)) == ("mem_2", NOW_US)
    assert (message.version, message.etag) == (2, "v2")


def test_the_next_version_keeps_identity_and_takes_new_fields() -> None:
    memory = memory_of(category="old")
    message = parse_body(memory)
    message.category = "new"
    later = next_version(memory, message, NOW_US + 5)
    assert (later.version, later.category, later.memory_id, later.create_time_us) == (2, "new", "mem_1", NOW_US)
    assert parse_body(later).etag == "v2"


def test_a_fact_holds_from_its_event_else_from_its_writing() -> None:
    assert memory_of().valid_from_us == NOW_US
    assert memory_of(event_time_us=5).valid_from_us == 5
    assert memory_of(event_time_us=5, valid_from_us=3).valid_from_us == 3


def test_every_kind_of_metadata_value_can_be_filtered_by() -> None:
    metadata = {"text": "x", "number": 2, "flag": True, "deep": {"a": 1}, "dotted.key": "y"}
    fields = fields_of(memory_of(metadata=metadata, tags=("t",), kind=Kind.PREFERENCE, pool=Pool.SHARED))
    assert fields["metadata.text"] == "x"
    assert fields["metadata.number"] == 2.0
    assert fields["metadata.flag"] is True
    assert fields["metadata.dotted.key"] == "y"
    assert "metadata.deep" not in fields
    assert (fields["kind"], fields["pool"], fields["tags"]) == ("PREFERENCE", "SHARED", ("t",))


def test_the_source_is_kept_whole() -> None:
    message = parse_body(memory_of(source=Source(SourceType.HUMAN, "ticket 9", "ann"), source_id="s9"))
    assert (message.source.type, message.source.ref, message.source.operator_id) == (1, "ticket 9", "ann")
    assert message.provenance.source_id == "s9"
