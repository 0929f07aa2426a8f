"""Queued writes and the Operations service over gRPC. Takes about 2 s."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

import grpc
import pytest
from google.longrunning import operations_pb2, operations_pb2_grpc
from google.protobuf.duration_pb2 import Duration
from google.rpc import code_pb2, error_details_pb2
from grpc_status import rpc_status

from dataplane.pipelines.operations import begun, failed
from dataplane.pipelines.write_or_queue import WriteOrQueue
from dataplane.server.memory_service import MemoryService, Pipelines
from dataplane.server.operations import OperationsService
from memplane.errors import PermissionDenied
from memplane.policy.access import AccessIndex, hash_api_key
from memplane.policy.effective import EffectivePolicies
from memplane.policy.model import PolicySet
from memplane.policy.rbac import Rbac
from memplane.process import SystemClock
from memplane.rpc.interceptors import ErrorInterceptor
from memplane.rpc.server import bind, new_server
from memplane.v1 import memory_pb2
from memplane.v1 import memory_service_pb2 as pb
from memplane.v1.memory_service_pb2_grpc import MemoryServiceStub, add_MemoryServiceServicer_to_server
from tests.callers import callers_of
from tests.unit.dataplane.pipelines.queue_rig import (
    KEEP_ALL,
    KEEPER,
    WRITER,
    Rig,
    in_time,
    memory_rig,
    response_of,
    running,
    snapshot_of,
)


@dataclass
class Plane:
    rig: Rig
    memory: Any
    operations: Any

    async def write(self, content: str, key: str = "agent-key", **fields: Any) -> pb.WriteMemoryResponse:
        response: pb.WriteMemoryResponse = await self.memory.WriteMemory(
            queued(content, **fields), metadata=as_user(key)
        )
        return response

    async def get(self, name: str, key: str = "agent-key") -> operations_pb2.Operation:
        request = operations_pb2.GetOperationRequest(name=name)
        return await self.operations.GetOperation(request, metadata=as_user(key))

    async def wait(self, name: str, timeout_s: int = 10, key: str = "agent-key") -> operations_pb2.Operation:
        request = operations_pb2.WaitOperationRequest(name=name, timeout=Duration(seconds=timeout_s))
        return await self.operations.WaitOperation(request, metadata=as_user(key))

    async def listed(self, key: str, page_size: int = 0, page_token: str = "") -> operations_pb2.ListOperationsResponse:
        request = operations_pb2.ListOperationsRequest(page_size=page_size, page_token=page_token)
        return await self.operations.ListOperations(request, metadata=as_user(key))


def queued(content: str, **fields: Any) -> pb.WriteMemoryRequest:
    return pb.WriteMemoryRequest(
        **{"namespace": "dept.sales", "content": content, "delivery": pb.DELIVERY_QUEUED, **fields}
    )


def as_user(key: str) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer mpk_{key}"),)


def with_keys(rig: Rig) -> None:
    """Keys `agent-key`, `other-key` and `keeper-key`."""
    people = {"agent": WRITER, "other": WRITER, "keeper": KEEPER}
    principals = {
        name: who.model_copy(update={"api_key_sha256": (hash_api_key(f"mpk_{name}-key"),)})
        for name, who in people.items()
    }
    rbac = Rbac(principals=principals)
    policies = EffectivePolicies(PolicySet(rbac=rbac, write_policy=KEEP_ALL))
    rig.snapshot = replace(snapshot_of(), policies=policies, access=AccessIndex(rbac, None))


@asynccontextmanager
async def served(rig: Rig, *, has_queue: bool = True) -> AsyncIterator[Plane]:
    with_keys(rig)
    nobody = cast("Any", None)
    pipelines = Pipelines(
        write=rig.write,
        write_or_queue=rig.write_or_queue if has_queue else WriteOrQueue(rig.write, None, str),
        search=nobody,
        context=nobody,
        get=nobody,
        list=nobody,
        update=nobody,
        forget=nobody,
        enqueue=rig.enqueue if has_queue else None,
    )
    server = new_server([ErrorInterceptor(lambda *_: None)])
    callers = callers_of(lambda: rig.snapshot, SystemClock())
    service = MemoryService(pipelines, callers, SystemClock(), lambda: 384)
    add_MemoryServiceServicer_to_server(service, server)
    operations_pb2_grpc.add_OperationsServicer_to_server(OperationsService(rig.operations, callers), server)
    port = bind(server, "127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield Plane(rig, MemoryServiceStub(channel), operations_pb2_grpc.OperationsStub(channel))
    await server.stop(None)


@pytest.fixture
async def plane() -> AsyncIterator[Plane]:
    async with served(memory_rig()) as made:
        yield made


async def test_a_queued_write_is_answered_by_its_operation(plane: Plane) -> None:
    accepted = await plane.write("Acme renews in March")
    assert accepted.decision.action == memory_pb2.DECISION_ACTION_QUEUED
    assert not (await plane.get(accepted.operation.name)).done
    async with running(plane.rig.consumer()):
        operation = await plane.wait(accepted.operation.name)
    [memory] = await plane.rig.memories()
    assert response_of(operation).memory.id == memory.memory_id
    assert await plane.get(accepted.operation.name) == operation


async def test_waiting_ends_with_its_timeout_and_with_the_deadline(plane: Plane) -> None:
    accepted = await plane.write("Note")
    assert not (await plane.wait(accepted.operation.name, timeout_s=0)).done
    request = operations_pb2.WaitOperationRequest(name=accepted.operation.name)
    found = await plane.operations.WaitOperation(request, metadata=as_user("agent-key"), timeout=0.4)
    assert not found.done


async def test_somebody_else_s_operation_is_as_unknown_as_none(plane: Plane) -> None:
    waiting = (await plane.write("Note")).operation.name
    done = (await plane.write("Another")).operation.name
    async with running(plane.rig.consumer()):
        await plane.wait(done)
    unknown = "operations/" + "0" * 40
    told = set()
    for name in (waiting, done, unknown, "operations/", "elsewhere/1"):
        for call in (plane.get(name, "other-key"), plane.wait(name, 0, "other-key")):
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await call
            told.add((raised.value.code(), str(raised.value.details()).replace(name, "NAME")))
    assert len(told) == 1
    assert told.pop()[0] is grpc.StatusCode.NOT_FOUND
    assert (await plane.get(done, "keeper-key")).done


@pytest.mark.parametrize(
    "name", ["", "operations/", "operations/a\x00b", "operations/" + "x" * 200, "nothing", "operations/ä"]
)
async def test_what_can_be_no_operation_is_not_found(plane: Plane, name: str) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await plane.get(name)
    assert raised.value.code() == grpc.StatusCode.NOT_FOUND


async def test_nobody_asks_without_a_key_or_a_policy(plane: Plane) -> None:
    calls = {
        "GetOperation": operations_pb2.GetOperationRequest,
        "WaitOperation": operations_pb2.WaitOperationRequest,
        "ListOperations": operations_pb2.ListOperationsRequest,
        "CancelOperation": operations_pb2.CancelOperationRequest,
        "DeleteOperation": operations_pb2.DeleteOperationRequest,
    }
    for method, request in calls.items():
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await getattr(plane.operations, method)(request())
        assert raised.value.code() is grpc.StatusCode.UNAUTHENTICATED
    plane.rig.snapshot = None
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await plane.get("operations/1")
    assert raised.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_operations_are_neither_cancelled_nor_deleted(plane: Plane) -> None:
    for call in (
        plane.operations.CancelOperation(operations_pb2.CancelOperationRequest(), metadata=as_user("agent-key")),
        plane.operations.DeleteOperation(operations_pb2.DeleteOperationRequest(), metadata=as_user("agent-key")),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await call
        assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_one_lists_one_s_own_operations_page_by_page(plane: Plane) -> None:
    names = sorted([(await plane.write(f"Note {number}")).operation.name for number in range(5)])
    foreign = (await plane.write("Note", "other-key")).operation.name
    async with running(plane.rig.consumer()):
        for name in (*names, foreign):
            await plane.wait(name, key="keeper-key")
    first = await plane.listed("agent-key", page_size=3)
    second = await plane.listed("agent-key", page_size=3, page_token=first.next_page_token)
    assert [item.name for item in (*first.operations, *second.operations)] == names
    assert not second.next_page_token
    assert len((await plane.listed("keeper-key")).operations) == 6


async def test_a_listing_passes_over_many_of_others(plane: Plane) -> None:
    metadata, error = pb.WriteMemoryMetadata(), PermissionDenied("memory.write")
    now_us = SystemClock().now_us()
    records = [
        failed(begun(f"operations/{number:05}", "other", "", metadata, now_us), error, now_us)
        for number in range(5_000)
    ]
    own = failed(begun("operations/99999", "agent", "", metadata, now_us), error, now_us)
    await plane.rig.store.save_operations([*records, own], in_time())
    listed = await plane.listed("agent-key")
    assert [item.name for item in listed.operations] == ["operations/99999"]
    assert listed.operations[0].error.code == code_pb2.PERMISSION_DENIED
    assert not listed.next_page_token


async def test_a_listing_takes_no_filter_and_no_foreign_token(plane: Plane) -> None:
    for request in (
        operations_pb2.ListOperationsRequest(filter="done"),
        operations_pb2.ListOperationsRequest(page_size=-1),
        operations_pb2.ListOperationsRequest(page_token="zzz"),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await plane.operations.ListOperations(request, metadata=as_user("agent-key"))
        assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_bad_input_is_refused_at_once(plane: Plane) -> None:
    for request in (queued(""), queued("Note", namespace="Not One"), queued("Note", embedding=[1.0])):
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await plane.memory.WriteMemory(request, metadata=as_user("agent-key"))
        assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await plane.write("Note", "keeper-key")
    assert raised.value.code() is grpc.StatusCode.PERMISSION_DENIED
    assert (await plane.rig.queue.depth(in_time())).waiting == 0


async def test_a_trial_is_decided_at_once(plane: Plane) -> None:
    response = await plane.write("Note", validate_only=True)
    assert response.decision.action == memory_pb2.DECISION_ACTION_KEPT_SHORT_TERM
    assert (await plane.rig.queue.depth(in_time())).waiting == 0
    assert await plane.rig.memories() == []


async def test_a_batch_may_mix_both_deliveries_and_errors(plane: Plane) -> None:
    requests = [queued("One"), queued("Two", delivery=pb.DELIVERY_SYNC), queued(""), queued("Three")]
    response = await plane.memory.BatchWriteMemories(
        pb.BatchWriteMemoriesRequest(requests=requests), metadata=as_user("agent-key")
    )
    one, two, bad, three = response.results
    assert one.response.decision.action == three.response.decision.action == memory_pb2.DECISION_ACTION_QUEUED
    assert two.response.memory.content == "Two"
    assert bad.error.code == code_pb2.INVALID_ARGUMENT
    async with running(plane.rig.consumer()):
        await plane.wait(three.response.operation.name)
    assert await plane.rig.contents() == ["One", "Three", "Two"]


async def test_a_full_queue_pushes_back() -> None:
    async with served(memory_rig(max_entries=1)) as plane:
        await plane.write("Note")
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await plane.write("Another")
    assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    trailers = dict(raised.value.trailing_metadata() or ())
    assert int(trailers["grpc-retry-pushback-ms"]) == 1_000
    status = rpc_status.from_call(raised.value)  # type: ignore[arg-type]  # it reads code, details and trailers only
    assert status is not None
    assert any(detail.Is(error_details_pb2.RetryInfo.DESCRIPTOR) for detail in status.details)


async def test_without_a_queue_nothing_is_queued() -> None:
    async with served(memory_rig(), has_queue=False) as plane:
        for validate_only in (False, True):
            with pytest.raises(grpc.aio.AioRpcError) as raised:
                await plane.write("Note", validate_only=validate_only)
            assert raised.value.code() is grpc.StatusCode.UNIMPLEMENTED
        response = await plane.memory.BatchWriteMemories(
            pb.BatchWriteMemoriesRequest(requests=[queued("One"), queued("Two", delivery=pb.DELIVERY_SYNC)]),
            metadata=as_user("agent-key"),
        )
        assert response.results[0].error.code == code_pb2.UNIMPLEMENTED
        assert response.results[1].response.memory.content == "Two"
