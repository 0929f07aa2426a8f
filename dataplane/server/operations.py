"""`google.longrunning.Operations` over gRPC: how queued writes and long maintenance work stand."""

import asyncio
import re

from google.longrunning import operations_pb2, operations_pb2_grpc
from google.protobuf.empty_pb2 import Empty

from dataplane.pipelines.operations import PREFIX, OperationsPipeline
from dataplane.server.callers import Callers, Context, deadline_of
from dataplane.server.checks import Notes
from dataplane.server.queries import read_page_size
from dataplane.server.tokens import page_token, read_page_token
from memplane.errors import NotOffered, OperationNotFound

SERVICE = "google.longrunning.Operations"
_NAME = re.compile(re.escape(PREFIX) + r"[A-Za-z0-9_-]{1,100}")
ANSWER_S = 0.1
"""What a waiting call keeps of its time to answer in. Unmeasured."""


class OperationsService(operations_pb2_grpc.OperationsServicer):  # type: ignore[misc]  # its stubs are untyped
    """Takes requests apart and asks the pipeline. `callers` tell who calls, once a call."""

    def __init__(self, operations: OperationsPipeline, callers: Callers):
        self._operations = operations
        self._callers = callers

    async def GetOperation(  # noqa: N802 - the contract's name
        self, request: operations_pb2.GetOperationRequest, context: Context
    ) -> operations_pb2.Operation:
        """The operation as it stands."""
        caller = self._callers.of(context)
        return await self._operations.get(_known(request.name), caller, deadline_of(context))

    async def WaitOperation(  # noqa: N802 - the contract's name
        self, request: operations_pb2.WaitOperationRequest, context: Context
    ) -> operations_pb2.Operation:
        """The operation once it is done, or as it stands when `timeout` or the call's deadline is near."""
        caller, deadline_s = self._callers.of(context), deadline_of(context)
        timeout_s = max(0.0, deadline_s - asyncio.get_running_loop().time() - ANSWER_S)
        if request.HasField("timeout"):
            timeout_s = min(timeout_s, max(0.0, request.timeout.seconds + request.timeout.nanos / 1e9))
        return await self._operations.wait(_known(request.name), timeout_s, caller, deadline_s)

    async def ListOperations(  # noqa: N802 - the contract's name
        self, request: operations_pb2.ListOperationsRequest, context: Context
    ) -> operations_pb2.ListOperationsResponse:
        """One's own operations by name; writes that still wait are not among them."""
        caller = self._callers.of(context)
        notes = Notes()
        if request.filter:
            notes.add("filter", "is not offered; leave it empty")
        page_size = read_page_size(notes, request.page_size)
        notes.close()
        after = read_page_token(request, caller.principal_id)
        page = await self._operations.list(after[1] if after else "", page_size, caller, deadline_of(context))
        token = page_token(request, caller.principal_id, (0, page.after_name)) if page.after_name else ""
        return operations_pb2.ListOperationsResponse(operations=page.operations, next_page_token=token)

    async def CancelOperation(  # noqa: N802 - the contract's name
        self, _request: operations_pb2.CancelOperationRequest, context: Context
    ) -> Empty:
        """Not offered: what was accepted is applied."""
        self._callers.of(context)
        raise NotOffered("an accepted operation is carried out; forget the memory when it is there")

    async def DeleteOperation(  # noqa: N802 - the contract's name
        self, _request: operations_pb2.DeleteOperationRequest, context: Context
    ) -> Empty:
        """Not offered: operations go by themselves."""
        self._callers.of(context)
        raise NotOffered("operations go by themselves, 24 hours after they are done")


def _known(name: str) -> str:
    """The name, if it can be one; OperationNotFound otherwise."""
    if _NAME.fullmatch(name) is None:
        raise OperationNotFound(name[:128])
    return name
