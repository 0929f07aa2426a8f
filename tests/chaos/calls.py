"""One attempt of one call: to which data plane, and what of its answer goes into the history."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import grpc
from google.longrunning import operations_pb2
from google.protobuf.message import Message
from google.rpc import error_details_pb2, status_pb2

from memplane.v1 import memory_pb2
from memplane.v1 import memory_service_pb2 as pb
from tests.chaos.history import MARKER

MEMORY_SERVICE = "/memplane.v1.MemoryService/"
GET_OPERATION = "/google.longrunning.Operations/GetOperation"
CHANNEL = (
    ("grpc.enable_retries", 0),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 500),
)
"""Every try is ours, so that each is in the history."""

ANSWERS: Mapping[type[Message], tuple[str, type[Message]]] = {
    pb.WriteMemoryRequest: (f"{MEMORY_SERVICE}WriteMemory", pb.WriteMemoryResponse),
    pb.BatchWriteMemoriesRequest: (f"{MEMORY_SERVICE}BatchWriteMemories", pb.BatchWriteMemoriesResponse),
    pb.UpdateMemoryRequest: (f"{MEMORY_SERVICE}UpdateMemory", pb.UpdateMemoryResponse),
    pb.ForgetMemoryRequest: (f"{MEMORY_SERVICE}ForgetMemory", pb.ForgetMemoryResponse),
    pb.SearchMemoriesRequest: (f"{MEMORY_SERVICE}SearchMemories", pb.SearchMemoriesResponse),
    pb.GetContextRequest: (f"{MEMORY_SERVICE}GetContext", pb.GetContextResponse),
    pb.GetMemoryRequest: (f"{MEMORY_SERVICE}GetMemory", pb.GetMemoryResponse),
    pb.ListMemoriesRequest: (f"{MEMORY_SERVICE}ListMemories", pb.ListMemoriesResponse),
    operations_pb2.GetOperationRequest: (GET_OPERATION, operations_pb2.Operation),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one attempt. `response` None where `code` is not OK; `pushback_s` is what the server asked for."""

    start_s: float
    end_s: float
    code: str
    response: Any
    told: dict[str, Any]
    pushback_s: float | None = None


class Connection:
    """Channels to every data plane with one API key; the next is tried when one fails."""

    def __init__(self, addresses: Sequence[str], api_key: str, first: int):
        self._channels = [grpc.aio.insecure_channel(address, options=CHANNEL) for address in addresses]
        self._metadata = (("authorization", f"Bearer {api_key}"),)
        self._at = first % len(self._channels)

    def fail_over(self) -> None:
        """From now on asks the next data plane."""
        self._at = (self._at + 1) % len(self._channels)

    async def attempt(self, request: Message, deadline_s: float) -> Answer:
        """One try, without any retry."""
        path, kind = ANSWERS[type(request)]
        method = self._channels[self._at].unary_unary(
            path, request_serializer=type(request).SerializeToString, response_deserializer=kind.FromString
        )
        start_s, plane = time.monotonic(), {"plane": self._at}
        try:
            response = await method(request, timeout=deadline_s, metadata=self._metadata)
        except grpc.aio.AioRpcError as error:
            return _failed(error, start_s, plane)
        end_s = time.monotonic()
        return Answer(start_s, end_s, "OK", response, told_of(response) | plane)

    async def close(self) -> None:
        """Closes the channels."""
        for channel in self._channels:
            await channel.close(None)


def _failed(error: grpc.aio.AioRpcError, start_s: float, plane: Mapping[str, Any]) -> Answer:
    end_s = time.monotonic()
    trailers: dict[str, Any] = dict(error.trailing_metadata() or ())
    details: bytes = trailers.get("grpc-status-details-bin", b"")
    told = {"markers": _markers(details + (error.details() or "").encode()), "reason": _reason(details), **plane}
    if not details:
        told["said"] = (error.details() or "")[:100]
    pushback_ms = trailers.get("grpc-retry-pushback-ms")
    pushback_s = int(pushback_ms) / 1000 if pushback_ms is not None else None
    return Answer(start_s, end_s, error.code().name, None, told, pushback_s)


def _reason(details: bytes) -> str:
    info = error_details_pb2.ErrorInfo()
    for detail in status_pb2.Status.FromString(details).details:
        if detail.Unpack(info):
            backend = info.metadata.get("backend", "")
            return f"{info.reason} {backend}".strip()
    return ""


def _markers(content: bytes) -> list[str]:
    text = content.decode(errors="replace")
    return list(dict.fromkeys(match[0] for match in MARKER.finditer(text)))


def told_of(response: Message) -> dict[str, Any]:
    """What the checker is to know of an answer."""
    told: dict[str, Any] = {"markers": _markers(response.SerializeToString())}
    if isinstance(response, pb.WriteMemoryResponse):
        return told | told_of_write(response)
    if isinstance(response, pb.SearchMemoriesResponse):
        return told | {"hits": [_hit(hit.memory) for hit in response.hits], "degraded": _degraded(response)}
    if isinstance(response, pb.GetContextResponse):
        ids = list(response.memory_ids)
        return told | {"ids": ids, "omitted": response.omitted, "degraded": _degraded(response)}
    if isinstance(response, pb.ListMemoriesResponse):
        hits = [_hit(memory) for memory in response.memories]
        return told | {"hits": hits, "last": not response.next_page_token}
    if isinstance(response, pb.GetMemoryResponse):
        memory = response.memory
        return told | {"hits": [_hit(memory)], "version": memory.version, "state": state_name(memory.state)}
    return told | _told_of_change(response)


def _told_of_change(response: Message) -> dict[str, Any]:
    if isinstance(response, pb.UpdateMemoryResponse):
        memory = response.memory
        return {"id": memory.id, "version": memory.version, "token": response.consistency_token}
    if isinstance(response, pb.ForgetMemoryResponse):
        return {"id": response.id, "pending": list(response.pending_backends), "token": response.consistency_token}
    if isinstance(response, operations_pb2.Operation):
        return told_of_operation(response)
    return {}


def told_of_write(response: pb.WriteMemoryResponse) -> dict[str, Any]:
    """What a write came to."""
    memory, decision = response.memory, response.decision
    won = [conflict.memory_id for conflict in decision.conflicts if conflict.winner_id == memory.id]
    return {
        "action": memory_pb2.DecisionAction.Name(decision.action).removeprefix("DECISION_ACTION_"),
        "id": memory.id,
        "state": state_name(memory.state) if memory.id else "",
        "version": memory.version,
        "etag": memory.etag,
        "token": response.consistency_token,
        "operation": response.operation.name,
        "superseded": won,
        "degraded": _degraded(response),
    }


def told_of_operation(operation: operations_pb2.Operation) -> dict[str, Any]:
    """How a queued write stands; "error" names the code of one that failed."""
    told: dict[str, Any] = {"done": operation.done, "error": ""}
    response = pb.WriteMemoryResponse()
    if operation.HasField("error"):
        told["error"] = next(code.name for code in grpc.StatusCode if code.value[0] == operation.error.code)
    elif operation.response.Unpack(response):
        told |= told_of_write(response)
    return told | {"operation": operation.name}


def state_name(state: int) -> str:
    """The state without its prefix."""
    return memory_pb2.State.Name(memory_pb2.State.ValueType(state)).removeprefix("STATE_")


def _hit(memory: memory_pb2.Memory) -> tuple[str, int, str, str]:
    words = _markers(memory.content.encode())
    return memory.id, memory.version, words[0] if words else "", memory.namespace


def _degraded(response: Any) -> list[str]:
    return [note.backend for note in response.degraded]
