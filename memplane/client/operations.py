"""What an operation came to."""

from google.longrunning import operations_pb2

from memplane.client.errors import from_status
from memplane.v1 import memory_service_pb2 as pb


def written(operation: operations_pb2.Operation) -> pb.WriteMemoryResponse | None:
    """What became of a queued write; None while it waits.

    Raises:
        RpcError: It could not be applied.
    """
    if operation.HasField("error"):
        raise from_status(operation.error)
    response = pb.WriteMemoryResponse()
    return response if operation.response.Unpack(response) else None
