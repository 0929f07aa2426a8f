"""The client of the data plane: one method for each RPC of MemoryService."""

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any, Unpack
from uuid import uuid4

from google.longrunning import operations_pb2, operations_pb2_grpc
from google.protobuf.duration_pb2 import Duration
from google.protobuf.field_mask_pb2 import FieldMask

from memplane.client.batches import MAX_REQUESTS, cut
from memplane.client.channel import Client, Connection
from memplane.client.convert import build
from memplane.client.fields import ChangedFields, Guard, ListFields, SearchFields, WriteFields
from memplane.client.tls import ClientTls
from memplane.v1 import memory_pb2
from memplane.v1 import memory_service_pb2 as pb
from memplane.v1 import memory_service_pb2_grpc as rpc


def write_request(namespace: str, content: str, **fields: Unpack[WriteFields]) -> pb.WriteMemoryRequest:
    """A proposal for `batch_write`; its `request_id` is made up when none is given, so that a retry is safe.

    Raises:
        InvalidValue: A field cannot be expressed; the message names it.
    """
    values: dict[str, Any] = {"namespace": namespace, "content": content, **fields}
    values["request_id"] = values.get("request_id") or uuid4().hex
    return build(pb.WriteMemoryRequest, values)


class MemPlaneClient(Client):
    """Writes, finds, changes and forgets memories. An async context manager.

    Every method raises `RpcError` when the call fails and `InvalidValue` (a ValueError), before anything is sent, for
    a value that the contract cannot express. UNAVAILABLE and RESOURCE_EXHAUSTED are tried again up to four times, after
    the pause that the server asks for. `target` is `host:port` or what else gRPC takes: `dns:///host:port` or
    `ipv4:10.0.0.1:7701,10.0.0.2:7701` spread calls over several data planes.

    `tls` None: in clear, for this machine and networks that are trusted themselves.

    Attributes:
        timeout_s: Deadline of each call in seconds, retries included.
    """

    def __init__(
        self,
        target: str = "127.0.0.1:7701",
        api_key: str = "",
        timeout_s: float = 30.0,
        tls: ClientTls | None = None,
    ) -> None:
        self.timeout_s = timeout_s
        super().__init__(Connection(target, api_key, timeout_s, tls))
        self._stub = rpc.MemoryServiceStub(self._connection.channel)
        self._operations = operations_pb2_grpc.OperationsStub(self._connection.channel)

    async def write(self, namespace: str, content: str, **fields: Unpack[WriteFields]) -> pb.WriteMemoryResponse:
        """Proposes one memory; `decision` in the answer says what became of it.

        With `delivery="QUEUED"`, and also without while the record store is down, it is decided later: the action is
        QUEUED, and `operation` in the answer says what to ask after (`wait_operation`, then `written`).
        """
        return await self._connection.call(self._stub.WriteMemory, write_request(namespace, content, **fields))

    async def batch_write(
        self, requests: Iterable[pb.WriteMemoryRequest], max_requests: int = MAX_REQUESTS
    ) -> AsyncIterator[pb.BatchWriteMemoriesResponse]:
        """Proposes any number of memories, in calls of at most 1,000 and 4 MiB, one after the other.

        Yields one response a call, so that a caller can show progress; results stand in the order of the requests.
        """
        for batch in cut(requests, max_requests):
            request = pb.BatchWriteMemoriesRequest(requests=batch)
            yield await self._connection.call(self._stub.BatchWriteMemories, request)

    async def operation(self, name: str) -> operations_pb2.Operation:
        """How an operation stands; `written` reads that of a queued write."""
        return await self._connection.call(self._operations.GetOperation, operations_pb2.GetOperationRequest(name=name))

    async def wait_operation(self, name: str, wait_s: float = 30.0) -> operations_pb2.Operation:
        """The operation once it is done, or as it stands after `wait_s`."""
        timeout = Duration()
        timeout.FromMilliseconds(int(wait_s * 1_000))
        request = operations_pb2.WaitOperationRequest(name=name, timeout=timeout)
        return await self._connection.call(self._operations.WaitOperation, request, extra_s=wait_s)

    async def search(self, namespace: str, query: str, **fields: Unpack[SearchFields]) -> pb.SearchMemoriesResponse:
        """The memories that answer a question, best first. `namespace` may be empty where `namespaces` is given."""
        return await self._connection.call(self._stub.SearchMemories, _search_request(namespace, query, fields))

    async def context(
        self, namespace: str, query: str, token_budget: int = 0, **fields: Unpack[SearchFields]
    ) -> pb.GetContextResponse:
        """A block of memories for a prompt, within `token_budget` tokens (0: the policy's)."""
        search = _search_request(namespace, query, fields)
        request = build(pb.GetContextRequest, {"search": search, "token_budget": token_budget})
        return await self._connection.call(self._stub.GetContext, request)

    async def get(self, namespace: str, memory_id: str, version: int = 0) -> memory_pb2.Memory:
        """One memory: the current version, or an old one counted from 1."""
        request = build(pb.GetMemoryRequest, {"namespace": namespace, "id": memory_id, "version": version})
        return (await self._connection.call(self._stub.GetMemory, request)).memory

    async def list(self, namespace: str, **fields: Unpack[ListFields]) -> AsyncIterator[memory_pb2.Memory]:
        """Every memory of the namespace, newest first; pages are fetched as the caller goes on."""
        request = build(pb.ListMemoriesRequest, {"namespace": namespace, **fields})
        while True:
            page = await self._connection.call(self._stub.ListMemories, request)
            for memory in page.memories:
                yield memory
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def update(
        self, namespace: str, memory_id: str, changes: ChangedFields, **guard: Unpack[Guard]
    ) -> pb.UpdateMemoryResponse:
        """Changes the given fields and keeps the old version; with `etag`, only if nobody changed it meanwhile."""
        values = {"namespace": namespace, "id": memory_id, **changes}
        request = build(
            pb.UpdateMemoryRequest,
            {
                "memory": build(memory_pb2.Memory, values),
                "update_mask": FieldMask(paths=list(changes)),
                **_guard(guard),
            },
        )
        return await self._connection.call(self._stub.UpdateMemory, request)

    async def forget(
        self, namespace: str, memory_id: str, mode: str = "SOFT", **guard: Unpack[Guard]
    ) -> pb.ForgetMemoryResponse:
        """Forgets one memory: SOFT (restorable for a while) or HARD (content, versions and embeddings removed)."""
        values = {"namespace": namespace, "id": memory_id, "mode": mode, **_guard(guard)}
        return await self._connection.call(self._stub.ForgetMemory, build(pb.ForgetMemoryRequest, values))

    async def versions(self, namespace: str, memory_id: str, page_size: int = 0) -> AsyncIterator[pb.MemoryVersion]:
        """Every version of a memory, newest first; pages are fetched as the caller goes on."""
        values = {"namespace": namespace, "id": memory_id, "page_size": page_size}
        request = build(pb.ListMemoryVersionsRequest, values)
        while True:
            page = await self._connection.call(self._stub.ListMemoryVersions, request)
            for version in page.versions:
                yield version
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token


def _search_request(namespace: str, query: str, fields: SearchFields) -> pb.SearchMemoriesRequest:
    values: Mapping[str, Any] = {"namespace": namespace, "query": query, **fields}
    return build(pb.SearchMemoriesRequest, values)


def _guard(guard: Guard) -> dict[str, Any]:
    return {**guard, "request_id": guard.get("request_id") or uuid4().hex}
