from datetime import UTC, datetime, timedelta

import grpc
import pytest

from memplane.client import InvalidValue, MemPlaneClient, RpcError, write_request
from memplane.client.errors import Conflicting, InvalidRequest, NotFound, Unavailable, from_status
from memplane.errors import InvalidField, MemoryNotFound, PolicyNotLoaded, StaleEtag, Violation
from memplane.rpc.errors import status_of
from memplane.v1 import memory_pb2
from memplane.v1 import memory_service_pb2 as pb
from tests.unit.memplane.client.fakes import MemoryRecorder, served

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def fails(error: Exception):
    def behaviour(_request):
        raise error

    return behaviour


async def test_a_write_carries_every_field_and_the_key():
    recorder = MemoryRecorder(WriteMemory=lambda _: pb.WriteMemoryResponse(policy_version="sha256:1"))
    async with served(recorder) as target, MemPlaneClient(target, "key-1") as client:
        response = await client.write(
            "dept.sales",
            "Acme renews in March",
            kind="PREFERENCE",
            source={"type": "USER", "ref": "call 7"},
            event_time=NOON,
            ttl=timedelta(minutes=1),
            tags=["a", "b"],
            metadata={"ticket": 7, "nested": {"ok": True}},
            confidence=0.0,
        )
    (request,) = recorder.requests
    assert response.policy_version == "sha256:1"
    assert recorder.metadata[0]["authorization"] == "Bearer key-1"
    assert (request.kind, request.source.type, request.source.ref) == (
        memory_pb2.KIND_PREFERENCE,
        memory_pb2.SOURCE_TYPE_USER,
        "call 7",
    )
    assert request.event_time.ToDatetime(tzinfo=UTC) == NOON
    assert (request.ttl.seconds, list(request.tags), request.metadata["nested"]["ok"]) == (60, ["a", "b"], True)
    assert request.HasField("confidence")
    assert request.request_id


async def test_a_search_sends_an_absent_field_as_absent():
    recorder = MemoryRecorder(SearchMemories=lambda _: pb.SearchMemoriesResponse())
    async with served(recorder) as target, MemPlaneClient(target) as client:
        await client.search("a.b", "who?", record_access=False, min_confidence=None, layers=["LONG_TERM"], top_k=3)
    (request,) = recorder.requests
    assert request.record_access is False
    assert request.HasField("record_access")
    assert not request.HasField("min_confidence")
    assert list(request.layers) == [memory_pb2.LAYER_LONG_TERM]


async def test_a_context_carries_the_search_and_the_budget():
    recorder = MemoryRecorder(GetContext=lambda _: pb.GetContextResponse(context="[MEMORY_CONTEXT]"))
    async with served(recorder) as target, MemPlaneClient(target) as client:
        response = await client.context("a", "who?", 400, top_k=2)
    assert response.context == "[MEMORY_CONTEXT]"
    assert (recorder.requests[0].token_budget, recorder.requests[0].search.top_k) == (400, 2)


async def test_a_list_goes_on_through_every_page():
    def page(request):
        start = int(request.page_token or 0)
        memories = [memory_pb2.Memory(id=f"mem_{index}") for index in range(start, start + 2)]
        return pb.ListMemoriesResponse(memories=memories, next_page_token=str(start + 2) if start < 4 else "")

    async with served(MemoryRecorder(ListMemories=page)) as target, MemPlaneClient(target) as client:
        found = [memory.id async for memory in client.list("a", states=["ACTIVE"], page_size=2)]
    assert found == [f"mem_{index}" for index in range(6)]


async def test_versions_go_on_through_every_page():
    def page(request):
        last = bool(request.page_token)
        return pb.ListMemoryVersionsResponse(
            versions=[pb.MemoryVersion(change="CREATED" if last else "UPDATED")], next_page_token="" if last else "2"
        )

    async with served(MemoryRecorder(ListMemoryVersions=page)) as target, MemPlaneClient(target) as client:
        assert [each.change async for each in client.versions("a", "mem_1")] == ["UPDATED", "CREATED"]


async def test_an_update_names_what_changes_and_can_empty_a_field():
    recorder = MemoryRecorder(UpdateMemory=lambda request: pb.UpdateMemoryResponse(memory=request.memory))
    async with served(recorder) as target, MemPlaneClient(target) as client:
        await client.update("a", "mem_1", {"content": "new", "valid_to": None}, etag="e1", reason="moved")
    (request,) = recorder.requests
    assert list(request.update_mask.paths) == ["content", "valid_to"]
    assert (request.memory.id, request.memory.content, request.etag, request.reason) == ("mem_1", "new", "e1", "moved")
    assert not request.memory.HasField("valid_to")
    assert request.request_id


async def test_get_and_forget_name_the_memory():
    recorder = MemoryRecorder(
        GetMemory=lambda request: pb.GetMemoryResponse(memory=memory_pb2.Memory(id=request.id)),
        ForgetMemory=lambda request: pb.ForgetMemoryResponse(id=request.id, mode=request.mode),
    )
    async with served(recorder) as target, MemPlaneClient(target) as client:
        assert (await client.get("a", "mem_1", version=2)).id == "mem_1"
        assert (await client.forget("a", "mem_1", "HARD")).mode == pb.FORGET_MODE_HARD
    assert recorder.requests[0].version == 2


async def test_a_batch_is_cut_and_its_results_keep_their_order():
    def echo(request):
        results = [
            pb.BatchWriteResult(response=pb.WriteMemoryResponse(memory=memory_pb2.Memory(content=each.content)))
            for each in request.requests
        ]
        return pb.BatchWriteMemoriesResponse(results=results, consistency_token=results[-1].response.memory.content)

    recorder = MemoryRecorder(BatchWriteMemories=echo)
    requests = [write_request("a", f"text {index}") for index in range(2500)]
    async with served(recorder) as target, MemPlaneClient(target) as client:
        responses = [response async for response in client.batch_write(requests)]
    contents = [result.response.memory.content for response in responses for result in response.results]
    assert [len(request.requests) for request in recorder.requests] == [1000, 1000, 500]
    assert contents == [f"text {index}" for index in range(2500)]


async def test_bad_input_names_the_fields():
    error = InvalidField([Violation("top_k", "must be 0 to 1000")])
    async with served(MemoryRecorder(SearchMemories=fails(error))) as target, MemPlaneClient(target) as client:
        with pytest.raises(InvalidRequest) as caught:
            await client.search("a", "who?", top_k=-1)
    assert caught.value.reason == "INVALID_FIELD"
    assert [(each.field, each.description) for each in caught.value.violations] == [("top_k", "must be 0 to 1000")]
    assert str(caught.value) == "INVALID_FIELD: top_k: must be 0 to 1000"


async def test_a_missing_memory_and_a_stale_etag_are_told_apart():
    recorder = MemoryRecorder(GetMemory=fails(MemoryNotFound("mem_1", "a")), UpdateMemory=fails(StaleEtag("e1", "e2")))
    async with served(recorder) as target, MemPlaneClient(target) as client:
        with pytest.raises(NotFound) as missing:
            await client.get("a", "mem_1")
        with pytest.raises(Conflicting) as stale:
            await client.update("a", "mem_1", {"content": "x"}, etag="e1")
    assert missing.value.facts == (("id", "mem_1"), ("namespace", "a"))
    assert stale.value.reason == "STALE_ETAG"


async def test_unavailable_is_tried_again_after_the_pause_that_the_server_asks_for():
    calls = []

    def second_time(_request):
        calls.append(1)
        if len(calls) == 1:
            error = PolicyNotLoaded()
            error.retry_after_s = 0.01
            raise error
        return pb.GetMemoryResponse(memory=memory_pb2.Memory(id="mem_1"))

    async with served(MemoryRecorder(GetMemory=second_time)) as target, MemPlaneClient(target) as client:
        assert (await client.get("a", "mem_1")).id == "mem_1"
    assert len(calls) == 2


async def test_a_lasting_outage_says_when_to_try_again():
    error = PolicyNotLoaded()
    error.retry_after_s = 0.01
    recorder = MemoryRecorder(GetMemory=fails(error))
    async with served(recorder) as target, MemPlaneClient(target) as client:
        with pytest.raises(Unavailable) as caught:
            await client.get("a", "mem_1")
    assert (caught.value.reason, caught.value.retry_after_s) == ("POLICY_NOT_LOADED", 0.01)
    assert len(recorder.requests) == 5


async def test_nobody_at_the_address_is_an_rpc_error():
    async with MemPlaneClient("127.0.0.1:1", timeout_s=20) as client:
        with pytest.raises(RpcError) as caught:
            await client.get("a", "mem_1")
    assert (caught.value.code, caught.value.reason) == (grpc.StatusCode.UNAVAILABLE, "")
    assert str(caught.value) == "UNAVAILABLE: nobody answers at 127.0.0.1:1"


async def test_half_a_surrogate_is_refused_before_anything_is_sent():
    recorder = MemoryRecorder()
    async with served(recorder) as target, MemPlaneClient(target) as client:
        with pytest.raises(InvalidValue, match=r"content: half of a surrogate pair \(U\+D83D\) at character 3"):
            await client.write("a", "hi \ud83d!")
        with pytest.raises(InvalidValue, match="query: half of a surrogate pair"):
            await client.search("a", "\ud83d")
        with pytest.raises(InvalidValue, match=r"metadata\.k\[0\]: half of a surrogate pair"):
            await client.write("a", "hi", metadata={"k": ["\udc00"]})
    assert recorder.requests == []


def test_the_status_inside_a_batch_result_becomes_the_same_error():
    error = from_status(status_of(InvalidField.one("content", "is blank")))
    assert isinstance(error, InvalidRequest)
    assert error.violations == (Violation("content", "is blank"),)
