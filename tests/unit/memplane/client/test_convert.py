from datetime import datetime

import pytest

from memplane.client.convert import InvalidValue, build, timestamp
from memplane.v1 import memory_service_pb2 as pb


def test_a_time_without_a_zone_is_refused_by_name():
    with pytest.raises(InvalidValue, match="event_time: 2026-01-01T00:00:00 has no time zone"):
        build(pb.WriteMemoryRequest, {"event_time": datetime(2026, 1, 1)})


def test_an_unknown_field_is_refused_with_the_known_ones():
    with pytest.raises(InvalidValue, match="contents: WriteMemoryRequest has no such field; known: namespace, content"):
        build(pb.WriteMemoryRequest, {"contents": "x"})


def test_an_unknown_enum_name_is_refused_with_the_known_ones():
    with pytest.raises(InvalidValue, match="kind: 'FACTS' is not one of FACT, PREFERENCE"):
        build(pb.WriteMemoryRequest, {"kind": "FACTS"})


def test_an_enum_may_be_given_with_its_prefix_or_as_a_number():
    assert build(pb.WriteMemoryRequest, {"kind": "KIND_EPISODE"}) == build(pb.WriteMemoryRequest, {"kind": 3})


def test_a_text_is_not_taken_for_a_list_of_characters():
    with pytest.raises(InvalidValue, match="tags: takes several values"):
        build(pb.WriteMemoryRequest, {"tags": "urgent"})


def test_a_source_may_be_given_by_name():
    assert build(pb.WriteMemoryRequest, {"source": "HUMAN"}).source.type == 1


def test_a_timestamp_keeps_microseconds():
    moment = datetime.fromisoformat("2026-11-30T12:00:00.123456+08:00")
    assert timestamp(moment).ToJsonString() == "2026-11-30T04:00:00.123456Z"
