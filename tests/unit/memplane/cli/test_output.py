from datetime import UTC, datetime

from memplane.cli.output import enum_name, plain, short_time, shorten
from memplane.client.convert import build, timestamp
from memplane.v1 import memory_pb2, policy_pb2
from memplane.v1 import memory_service_pb2 as pb


def test_enums_lose_their_prefix_at_every_depth():
    hit = memory_pb2.Hit(
        memory=memory_pb2.Memory(
            layer=memory_pb2.LAYER_LONG_TERM, source=memory_pb2.Source(type=memory_pb2.SOURCE_TYPE_USER)
        )
    )
    memory = plain(pb.SearchMemoriesResponse(hits=[hit]))["hits"][0]["memory"]
    assert (memory["layer"], memory["source"]["type"]) == ("LONG_TERM", "USER")
    assert enum_name(hit.memory, "layer") == "LONG_TERM"


def test_64_bit_numbers_are_numbers_and_maps_and_structs_stay_as_they_are():
    status = policy_pb2.DataPlaneStatus(
        node=policy_pb2.NodeInfo(labels={"zone": "a"}), generation=2**53 + 1, report=policy_pb2.NodeReport(call_count=7)
    )
    shown = plain(status)
    assert (shown["generation"], shown["report"]["call_count"]) == (2**53 + 1, 7)
    assert shown["node"]["labels"] == {"zone": "a"}
    request = build(pb.WriteMemoryRequest, {"metadata": {"layer": "LAYER_X", "n": 7}})
    assert plain(request)["metadata"] == {"layer": "LAYER_X", "n": 7.0}


def test_times_and_texts_are_shortened_for_tables():
    assert short_time(timestamp(datetime(2026, 11, 30, 9, 5, 7, 999_999, tzinfo=UTC))) == "2026-11-30 09:05:07Z"
    assert short_time(memory_pb2.Memory().create_time) == ""
    assert shorten("a\n b", 10) == "a b"
    assert shorten("abcdef", 4) == "abc…"
