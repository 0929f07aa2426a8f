"""A queued write is refused at once for what a synchronous one would be, and asking twice leads to one operation."""

import asyncio

import pytest

from dataplane.errors import BackendUnavailable
from dataplane.pipelines import enqueue
from dataplane.pipelines.enqueue import Proposal, operation_name
from dataplane.server.requests import read_draft
from memplane.errors import InvalidField, Overloaded, PermissionDenied, RequestIdReused, Unavailable
from memplane.policy.model import WritePolicy
from memplane.v1 import memory_pb2
from memplane.v1 import memory_service_pb2 as pb
from tests.unit.dataplane.pipelines.queue_rig import (
    NOBODY,
    Rig,
    in_time,
    memory_rig,
    response_of,
    running,
    snapshot_of,
    with_rights,
)


@pytest.fixture
def rig() -> Rig:
    return memory_rig()


async def test_the_answer_names_an_operation_and_no_memory(rig: Rig) -> None:
    response = (await rig.put("Note")).response
    assert response.decision.action == memory_pb2.DECISION_ACTION_QUEUED
    assert not response.HasField("memory")
    assert not response.consistency_token
    assert not response.operation.done
    metadata = pb.WriteMemoryMetadata()
    assert response.operation.metadata.Unpack(metadata)
    assert metadata.namespace == "dept.sales"
    assert metadata.request_id
    assert "sales" not in response.operation.name


async def test_what_may_not_be_written_is_not_queued(rig: Rig) -> None:
    with pytest.raises(PermissionDenied):
        await rig.put("Note", namespace="elsewhere")
    with pytest.raises(PermissionDenied):
        await rig.put("Note", pool=memory_pb2.POOL_SHARED)
    rig.snapshot = snapshot_of(WritePolicy(max_content_bytes=10))
    with pytest.raises(InvalidField, match="max_content_bytes"):
        await rig.put("A note of more than ten bytes")
    assert (await rig.queue.depth(in_time())).waiting == 0


async def test_the_same_request_leads_to_the_same_operation(rig: Rig) -> None:
    first = await rig.put("Note", request_id="r1")
    again = await rig.put("Note", request_id="r1")
    assert again.response.operation.name == first.response.operation.name
    assert (await rig.queue.depth(in_time())).waiting == 1
    async with running(rig.consumer()):
        done = await rig.ended(first)
    after = await rig.put("Note", request_id="r1")
    assert after.response.operation == done
    assert (await rig.queue.depth(in_time())).waiting == 0


async def test_writes_without_a_request_id_have_operations_of_their_own(rig: Rig) -> None:
    names = {(await rig.put("Note")).response.operation.name for _ in range(3)}
    assert len(names) == 3


async def test_a_request_id_with_another_payload_is_refused_before_and_after_it_is_applied(rig: Rig) -> None:
    accepted = await rig.put("Note", request_id="r1")
    with pytest.raises(RequestIdReused):
        await rig.put("Another", request_id="r1")
    async with running(rig.consumer()):
        await rig.ended(accepted)
    with pytest.raises(RequestIdReused):
        await rig.put("Another", request_id="r1")


async def test_a_request_that_was_decided_at_once_is_answered_with_that_decision(rig: Rig) -> None:
    request = pb.WriteMemoryRequest(namespace="dept.sales", content="Note", request_id="r1")
    decided = await rig.write.write(read_draft(request, 1, 384), rig.caller(), in_time())
    response = (await rig.put("Note", request_id="r1")).response
    assert response.memory.id == decided.response.memory.id
    assert response.decision.action == memory_pb2.DECISION_ACTION_KEPT_SHORT_TERM


async def test_a_queued_request_that_comes_again_at_once_has_one_effect(rig: Rig) -> None:
    accepted = await rig.put("Note", request_id="r1")
    async with running(rig.consumer()):
        told = response_of(await rig.ended(accepted))
    request = pb.WriteMemoryRequest(namespace="dept.sales", content="Note", request_id="r1")
    again = await rig.write.write(read_draft(request, 1, 384), rig.caller(), in_time())
    assert again.response.memory.id == told.memory.id
    assert len(await rig.memories()) == 1


async def test_principals_do_not_share_request_ids(rig: Rig) -> None:
    first = await rig.put("Note", request_id="r1")
    other = await rig.put("Another", "other", request_id="r1")
    assert first.response.operation.name != other.response.operation.name
    assert operation_name("a", "b.c", "d") != operation_name("a.b", "c", "d")


async def test_writes_are_accepted_while_the_record_store_is_down(rig: Rig) -> None:
    rig.store.is_down = True
    accepted = await rig.put("Note", request_id="r1")
    assert not (await rig.operation(accepted.response.operation.name)).done
    rig.store.is_down = False
    async with running(rig.consumer()):
        await rig.ended(accepted)


async def test_a_record_store_that_hangs_does_not_stop_the_queue(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    async def hang(_name: str, deadline_s: float) -> None:
        try:
            async with asyncio.timeout_at(deadline_s):
                await asyncio.Event().wait()
        except TimeoutError:
            raise BackendUnavailable("record_store", "deadline passed") from None

    monkeypatch.setattr(enqueue, "LOOK_S", 0.02)
    monkeypatch.setattr(rig.store, "find_operation", hang)
    await rig.put("Note", request_id="r1")
    assert (await rig.queue.depth(in_time())).waiting == 1


async def test_a_full_queue_says_when_to_come_again() -> None:
    rig = memory_rig(max_entries=1)
    await rig.put("Note")
    with pytest.raises(Overloaded) as raised:
        await rig.put("Another")
    assert raised.value.retry_after_s > 0


async def test_a_queue_that_does_not_answer_is_told(rig: Rig) -> None:
    request = pb.WriteMemoryRequest(namespace="dept.sales", content="Note")
    with pytest.raises(Unavailable):
        await rig.enqueue.enqueue(Proposal(request, read_draft(request, 1, 384)), rig.caller(), in_time() - 100)


async def test_each_of_several_has_its_own_outcome(rig: Rig) -> None:
    with_rights(rig, agent=NOBODY)
    request = pb.WriteMemoryRequest(namespace="dept.sales", content="Note")
    refused = InvalidField.one("content", "is missing")
    outcomes = await rig.enqueue.enqueue_batch(
        [refused, Proposal(request, read_draft(request, 1, 384))], rig.caller(), in_time()
    )
    assert outcomes[0] is refused
    assert isinstance(outcomes[1], PermissionDenied)
