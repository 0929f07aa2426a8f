"""Long work that a caller can ask after: its record from beginning to end, and who may see it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace

from google.longrunning import operations_pb2
from google.protobuf import any_pb2
from google.protobuf.message import Message
from google.rpc import status_pb2

from dataplane.changes import OperationRecord, QueuedWrite
from dataplane.codec import timestamp
from dataplane.errors import BackendUnavailable
from dataplane.model import DAY_US
from dataplane.pipelines.caller import Caller
from dataplane.ports import RecordStore, WriteQueue
from dataplane.queued_codec import unpack_queued
from memplane.errors import MemPlaneError, OperationNotFound, Unavailable
from memplane.rpc.errors import status_of
from memplane.v1 import memory_service_pb2

PREFIX = "operations/"
KEPT_US = DAY_US
"""How long an operation is known after it was last written; as long as the answer to a request_id."""

FIRST_LOOK_S = 0.01
LONGEST_LOOK_S = 0.25
"""Pauses between looks of a caller that waits. Unmeasured."""


def begun(name: str, principal_id: str, namespace: str, metadata: Message, now_us: int) -> OperationRecord:
    """The record of work that begins; `namespace` is "" for work on all."""
    return OperationRecord(
        name=name,
        principal_id=principal_id,
        namespace=namespace,
        create_time_us=now_us,
        update_time_us=now_us,
        expire_time_us=now_us + KEPT_US,
        is_done=False,
        metadata=_packed(metadata),
    )


def continued(record: OperationRecord, metadata: Message, now_us: int) -> OperationRecord:
    """The record with new metadata, such as how far the work is."""
    return replace(record, metadata=_packed(metadata), update_time_us=now_us, expire_time_us=now_us + KEPT_US)


def finished(record: OperationRecord, response: Message, now_us: int) -> OperationRecord:
    """The record of work that came to this; `response` holds no content of memories."""
    return replace(_ended(record, now_us), response=_packed(response))


def failed(record: OperationRecord, error: MemPlaneError, now_us: int) -> OperationRecord:
    """The record of work that this error ended."""
    return replace(_ended(record, now_us), error=status_of(error).SerializeToString())


def _ended(record: OperationRecord, now_us: int) -> OperationRecord:
    return replace(record, is_done=True, update_time_us=now_us, expire_time_us=now_us + KEPT_US)


def queued(write: QueuedWrite) -> OperationRecord:
    """The record of a write that waits."""
    metadata = memory_service_pb2.WriteMemoryMetadata(
        namespace=write.namespace, request_id=_request_id(write), create_time=timestamp(write.time_us)
    )
    return begun(write.operation, write.principal_id, write.namespace, metadata, write.time_us)


def _request_id(write: QueuedWrite) -> str:
    try:
        return unpack_queued(write.request).request.request_id
    except ValueError:  # it will be set aside
        return ""


def shown(record: OperationRecord) -> operations_pb2.Operation:
    """The operation as the contract has it."""
    operation = operations_pb2.Operation(name=record.name, done=record.is_done)
    operation.metadata.MergeFromString(record.metadata)
    if record.response:
        operation.response.MergeFromString(record.response)
    elif record.error:
        operation.error.CopyFrom(status_pb2.Status.FromString(record.error))
    return operation


def _packed(message: Message) -> bytes:
    packed = any_pb2.Any()
    packed.Pack(message)
    return packed.SerializeToString()


@dataclass(frozen=True, slots=True)
class OperationPage:
    """Some operations, and the name after which the next page starts ("": this is the last)."""

    operations: Sequence[operations_pb2.Operation]
    after_name: str


class OperationsPipeline:
    """Tells how work stands. `queue` None: there are no queued writes.

    Somebody else's operation is as unknown as one that never was; with `maintenance` on every namespace one sees all.
    """

    def __init__(self, store: RecordStore, queue: WriteQueue | None):
        self._store = store
        self._queue = queue
        self._is_stopping = False

    def stop_waiting(self) -> None:
        """Has those who wait answered with what stands, for the process is to end."""
        self._is_stopping = True

    async def get(self, name: str, caller: Caller, deadline_s: float) -> operations_pb2.Operation:
        """The operation as it stands; raises OperationNotFound, or Unavailable when what would know does not answer."""
        try:
            record = await self._find(name, caller, deadline_s)
        except BackendUnavailable as error:
            raise Unavailable(error.backend) from error
        if record is None or not _sees(caller, record):
            raise OperationNotFound(name)
        return shown(record)

    async def wait(self, name: str, timeout_s: float, caller: Caller, deadline_s: float) -> operations_pb2.Operation:
        """The operation once it is done, or as it stands after `timeout_s`."""
        loop = asyncio.get_running_loop()
        until_s, pause_s = loop.time() + timeout_s, FIRST_LOOK_S
        while True:
            operation = await self.get(name, caller, deadline_s)
            remaining_s = until_s - loop.time()
            if operation.done or remaining_s <= 0 or self._is_stopping:
                return operation
            await asyncio.sleep(min(pause_s, remaining_s))
            pause_s = min(2 * pause_s, LONGEST_LOOK_S)

    async def list(self, after_name: str, page_size: int, caller: Caller, deadline_s: float) -> OperationPage:
        """Operations that the caller sees, by name. Others leave no trace in it, neither in its size nor in its end."""
        owner = "" if _sees_all(caller) else caller.principal_id
        try:
            records = await self._store.list_operations(after_name, page_size + 1, deadline_s, owner)
        except BackendUnavailable as error:
            raise Unavailable(error.backend) from error
        page = records[:page_size]
        seen = [shown(record) for record in page if _sees(caller, record)]
        return OperationPage(seen, page[-1].name if len(records) > page_size else "")

    async def _find(self, name: str, caller: Caller, deadline_s: float) -> OperationRecord | None:
        """Looks into the store, the queue, and the store again: a write leaves the queue once its result is stored.

        What waits there of somebody else is passed over, so that it looks like nothing also while the store is down.
        """
        if self._queue is None:
            return await self._store.find_operation(name, deadline_s)
        try:
            record = await self._store.find_operation(name, deadline_s)
        except BackendUnavailable:
            record = None
        if record is not None:
            return record
        write = await self._queue.find(name, deadline_s)
        if write is None or not _sees(caller, waiting := queued(write)):
            return await self._store.find_operation(name, deadline_s)
        return waiting


def _sees(caller: Caller, record: OperationRecord) -> bool:
    return record.principal_id == caller.principal_id or _sees_all(caller)


def _sees_all(caller: Caller) -> bool:
    return caller.may("maintenance", None)
