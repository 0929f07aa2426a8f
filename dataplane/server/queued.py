"""Queued writes as they lie in the queue and as their operations tell of them."""

from collections.abc import Callable

from google.protobuf.message import DecodeError

from dataplane.changes import QueuedWrite
from dataplane.model import Draft
from dataplane.pipelines.settle import Settled
from dataplane.server.requests import read_draft
from dataplane.server.tokens import consistency_token
from memplane.errors import InvalidField
from memplane.v1 import memory_service_pb2


class QueuedRequests:
    """Packs and reads requests. `dimension` tells the embedder's at the time."""

    def __init__(self, dimension: Callable[[], int]):
        self._dimension = dimension

    def pack(self, request: memory_service_pb2.WriteMemoryRequest, request_id: str) -> bytes:
        """The request as it is queued, under this request_id."""
        copy = memory_service_pb2.WriteMemoryRequest()
        copy.CopyFrom(request)
        copy.request_id = request_id
        return copy.SerializeToString()

    def draft(self, write: QueuedWrite) -> Draft:
        """The draft of a queued write, read as of when it was accepted; raises InvalidField."""
        try:
            request = memory_service_pb2.WriteMemoryRequest.FromString(write.request)
        except DecodeError as error:
            raise InvalidField.one("request", "what was queued is no write request") from error
        return read_draft(request, write.time_us, self._dimension())

    def result(self, settled: Settled) -> memory_service_pb2.WriteMemoryResponse:
        """Decision, policy version and token; of the memory what says which one it is, and no content."""
        given = settled.response
        result = memory_service_pb2.WriteMemoryResponse(
            decision=given.decision,
            policy_version=given.policy_version,
            degraded=given.degraded,
            consistency_token=consistency_token(settled.position) if settled.position else "",
        )
        if given.HasField("memory"):
            memory = given.memory
            result.memory.id, result.memory.namespace = memory.id, memory.namespace
            result.memory.layer, result.memory.state = memory.layer, memory.state
            result.memory.version, result.memory.etag = memory.version, memory.etag
        return result
