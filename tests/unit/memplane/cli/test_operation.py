import json

from google.longrunning import operations_pb2

from memplane.errors import PermissionDenied
from memplane.rpc.errors import status_of
from memplane.v1 import maintenance_service_pb2, memory_pb2
from memplane.v1 import memory_service_pb2 as pb
from tests.unit.memplane.cli.test_commands import call
from tests.unit.memplane.client.fakes import MemoryRecorder


def waiting() -> operations_pb2.Operation:
    operation = operations_pb2.Operation(name="operations/1")
    operation.metadata.Pack(pb.WriteMemoryMetadata(namespace="dept.sales", request_id="r1"))
    return operation


def done() -> operations_pb2.Operation:
    operation = waiting()
    operation.done = True
    response = pb.WriteMemoryResponse(memory=memory_pb2.Memory(id="mem_1", layer=memory_pb2.LAYER_LONG_TERM))
    response.decision.action = memory_pb2.DECISION_ACTION_CREATED
    operation.response.Pack(response)
    return operation


def failed() -> operations_pb2.Operation:
    operation = waiting()
    operation.done = True
    operation.error.CopyFrom(status_of(PermissionDenied("memory.write", "dept.sales")))
    return operation


def data_plane(operation: operations_pb2.Operation) -> MemoryRecorder:
    return MemoryRecorder(GetOperation=lambda _: operation, WaitOperation=lambda _: operation)


async def test_a_queued_write_prints_its_operation():
    response = pb.WriteMemoryResponse(operation=waiting())
    response.decision.action = memory_pb2.DECISION_ACTION_QUEUED
    recorder = MemoryRecorder(WriteMemory=lambda _: response)
    result = await call(recorder, "write", "dept.sales", "Acme pays late", "--queued")
    assert result.exit_code == 0
    assert "QUEUED operations/1" in result.stdout
    assert recorder.requests[0].delivery == pb.DELIVERY_QUEUED


async def test_a_write_that_was_queued_for_want_of_the_record_store_says_so():
    response = pb.WriteMemoryResponse(operation=waiting())
    response.decision.action = memory_pb2.DECISION_ACTION_QUEUED
    response.degraded.add(backend="record_store", reason="BACKEND_UNAVAILABLE", fallback="accepted into the queue")
    result = await call(MemoryRecorder(WriteMemory=lambda _: response), "write", "dept.sales", "Acme pays late")
    assert result.exit_code == 0
    assert "QUEUED operations/1" in result.stdout
    assert "degraded: record_store (BACKEND_UNAVAILABLE), accepted into the queue" in result.stderr


async def test_a_write_without_queued_is_synchronous():
    recorder = MemoryRecorder(WriteMemory=lambda _: pb.WriteMemoryResponse())
    await call(recorder, "write", "dept.sales", "Acme pays late")
    assert recorder.requests[0].delivery == pb.DELIVERY_UNSPECIFIED


async def test_a_finished_operation_prints_the_decision():
    result = await call(data_plane(done()), "operation", "operations/1", "--wait", "2")
    assert result.exit_code == 0
    assert "CREATED mem_1 in LONG_TERM" in result.stdout


async def test_an_operation_that_goes_on_says_so():
    result = await call(data_plane(waiting()), "operation", "operations/1")
    assert result.exit_code == 0
    assert "NOT DONE operations/1" in result.stdout
    assert "dept.sales" in result.stdout


async def test_waiting_in_vain_fails():
    result = await call(data_plane(waiting()), "operation", "operations/1", "--wait", "0")
    assert result.exit_code == 1
    assert "not done after 0 s" in result.stderr


async def test_an_operation_that_failed_fails():
    result = await call(data_plane(failed()), "operation", "operations/1")
    assert result.exit_code == 1
    assert "memory.write" in result.stderr


async def test_an_operation_is_json_with_its_parts_unpacked():
    result = await call(data_plane(done()), "operation", "operations/1", "--json")
    values = json.loads(result.stdout)
    assert (values["done"], values["metadata"]["request_id"]) == (True, "r1")
    assert values["response"]["decision"]["action"] == "CREATED"


async def test_a_failed_operation_is_json_and_exit_code_1():
    result = await call(data_plane(failed()), "operation", "operations/1", "--json")
    assert "memory.write" in json.loads(result.stdout)["error"]
    assert result.exit_code == 1


async def test_maintenance_work_is_told_too():
    operation = operations_pb2.Operation(name="operations/2", done=True)
    operation.response.Pack(maintenance_service_pb2.ReindexResult(index_count=7))
    result = await call(data_plane(operation), "operation", "operations/2")
    assert "index_count" in result.stdout
