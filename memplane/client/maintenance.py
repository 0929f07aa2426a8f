"""The client for those who run the service: checks and rebuilds of indexes, dead letters, and long work."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any
from uuid import uuid4

from google.longrunning import operations_pb2, operations_pb2_grpc

from memplane.client.channel import Client, Connection
from memplane.client.convert import build
from memplane.client.tls import ClientTls
from memplane.v1 import maintenance_service_pb2 as pb
from memplane.v1 import maintenance_service_pb2_grpc as rpc

CHECK_S = 570.0
"""How much longer than other calls a full check may take; a data plane ends calls after 600 s."""


class MaintenanceClient(Client):
    """Checks and rebuilds the indexes of a data plane. An async context manager.

    Every method raises `RpcError` when the call fails and `InvalidValue` (a ValueError), before anything is sent, for
    a value that the contract cannot express. An `index` is "VECTOR" or "TEXT"; "" is both, where that makes sense.
    """

    def __init__(
        self,
        target: str = "127.0.0.1:7701",
        api_key: str = "",
        timeout_s: float = 30.0,
        tls: ClientTls | None = None,
    ) -> None:
        super().__init__(Connection(target, api_key, timeout_s, tls))
        self._stub = rpc.MaintenanceServiceStub(self._connection.channel)
        self._operations = operations_pb2_grpc.OperationsStub(self._connection.channel)

    async def check_indexes(self, index: str = "", sample_size: int = 0, full: bool = False) -> pb.CheckIndexesResponse:
        """How the indexes stand to the record store."""
        request = build(pb.CheckIndexesRequest, {**_of(index), "sample_size": sample_size, "full": full})
        return await self._connection.call(self._stub.CheckIndexes, request, CHECK_S)

    async def reindex(
        self,
        index: str,
        embedding_model: str = "",
        *,
        repair_only: bool = False,
        keep_active: bool = False,
        request_id: str = "",
    ) -> operations_pb2.Operation:
        """Begins a rebuild, or gives the one that runs; a `request_id` is made up so that retries are safe."""
        fields: dict[str, Any] = {
            **_of(index),
            "embedding_model": embedding_model,
            "repair_only": repair_only,
            "keep_active": keep_active,
            "request_id": request_id or uuid4().hex,
        }
        return await self._connection.call(self._stub.Reindex, build(pb.ReindexRequest, fields))

    async def operation(self, name: str) -> operations_pb2.Operation:
        """Long work as it stands."""
        request = operations_pb2.GetOperationRequest(name=name)
        return await self._connection.call(self._operations.GetOperation, request)

    async def follow(
        self, operation: operations_pb2.Operation, pause_s: float = 1.0
    ) -> AsyncIterator[operations_pb2.Operation]:
        """Long work as it stands now and after each pause, last when it is done."""
        while True:
            yield operation
            if operation.done:
                return
            await asyncio.sleep(pause_s)
            operation = await self.operation(operation.name)

    async def dead_letters(self, index: str = "", page_size: int = 0) -> AsyncIterator[pb.DeadLetter]:
        """Every projection that was given up, oldest first."""
        request = build(pb.ListDeadLettersRequest, {**_of(index), "page_size": page_size})
        while True:
            page = await self._connection.call(self._stub.ListDeadLetters, request)
            for letter in page.dead_letters:
                yield letter
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def replay_dead_letters(self, index_name: str, positions: Sequence[int] = ()) -> int:
        """How many projections of an index are due again; all of its dead ones for no positions."""
        request = pb.ReplayDeadLettersRequest(index_name=index_name, positions=positions)
        return (await self._connection.call(self._stub.ReplayDeadLetters, request)).replayed_count

    async def set_aside_writes(self, page_size: int = 0) -> AsyncIterator[pb.SetAsideWrite]:
        """Every queued write that was given up."""
        request = build(pb.ListSetAsideWritesRequest, {"page_size": page_size})
        while True:
            page = await self._connection.call(self._stub.ListSetAsideWrites, request)
            for write in page.writes:
                yield write
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def replay_set_aside(self, ids: Sequence[str] = ()) -> int:
        """How many writes are in the queue again; all that were set aside for no ids."""
        request = pb.ReplaySetAsideWritesRequest(ids=ids)
        return (await self._connection.call(self._stub.ReplaySetAsideWrites, request)).replayed_count


def progress_of(operation: operations_pb2.Operation) -> pb.ReindexProgress:
    """How far a rebuild is."""
    progress = pb.ReindexProgress()
    operation.metadata.Unpack(progress)
    return progress


def result_of(operation: operations_pb2.Operation) -> pb.ReindexResult:
    """What a rebuild came to; empty unless it is done and succeeded."""
    result = pb.ReindexResult()
    operation.response.Unpack(result)
    return result


def _of(index: str) -> dict[str, str]:
    return {"index": index} if index else {}
