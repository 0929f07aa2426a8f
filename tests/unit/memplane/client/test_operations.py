import pytest
from google.longrunning import operations_pb2

from memplane.client import MemPlaneClient, RpcError, written
from memplane.errors import OperationNotFound, PermissionDenied
from memplane.rpc.errors import status_of
from memplane.v1 import memory_service_pb2 as pb
from tests.unit.memplane.client.fakes import MemoryRecorder, served


def done() -> operations_pb2.Operation:
    operation = operations_pb2.Operation(name="operations/1", done=True)
    operation.response.Pack(pb.WriteMemoryResponse(policy_version="sha256:1"))
    return operation


async def test_an_operation_is_asked_after_and_waited_for():
    recorder = MemoryRecorder(GetOperation=lambda _: done(), WaitOperation=lambda _: done())
    async with served(recorder) as target, MemPlaneClient(target, "key-1", timeout_s=5) as client:
        assert written(await client.operation("operations/1")).policy_version == "sha256:1"
        assert (await client.wait_operation("operations/1", 1.5)).done
    asked, waited = recorder.requests
    assert asked.name == waited.name == "operations/1"
    assert waited.timeout.ToMilliseconds() == 1_500
    assert recorder.metadata[1]["authorization"] == "Bearer key-1"


async def test_an_unknown_operation_is_an_error_with_its_reason():
    def fails(_request):
        raise OperationNotFound("operations/1")

    async with served(MemoryRecorder(GetOperation=fails)) as target, MemPlaneClient(target) as client:
        with pytest.raises(RpcError) as raised:
            await client.operation("operations/1")
    assert raised.value.reason == "OPERATION_NOT_FOUND"


def test_a_write_that_waits_has_come_to_nothing_yet():
    assert written(operations_pb2.Operation(name="operations/1")) is None


def test_a_write_that_failed_raises_its_error():
    status = status_of(PermissionDenied("memory.write", "a"))
    with pytest.raises(RpcError, match="PERMISSION_DENIED"):
        written(operations_pb2.Operation(name="operations/1", done=True, error=status))
