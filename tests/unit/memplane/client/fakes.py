"""Small servers of the contract that answer what a test gives them."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc
from google.longrunning import operations_pb2_grpc

from memplane.errors import MemPlaneError
from memplane.rpc.errors import code_of, status_of, trailers_of
from memplane.rpc.lifetime import RENEW
from memplane.v1 import memory_service_pb2_grpc, policy_admin_service_pb2_grpc
from memplane.v1 import policy_admin_service_pb2 as admin_pb2

Behaviour = Callable[[Any], Any]


class Recorder:
    """Answers each method by its behaviour, keeps the requests and the metadata of each call."""

    def __init__(self, **behaviours: Behaviour) -> None:
        self.behaviours = behaviours
        self.requests: list[Any] = []
        self.metadata: list[dict[str, str]] = []

    def __getattribute__(self, name: str) -> Any:
        if not name[0].isupper():
            return super().__getattribute__(name)

        async def answer(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
            self.requests.append(request)
            self.metadata.append({key: str(value) for key, value in context.invocation_metadata() or ()})
            try:
                return self.behaviours[name](request)
            except MemPlaneError as error:
                status = status_of(error)
                await context.abort(code_of(error), status.message, trailers_of(error, status))

        return answer


class MemoryRecorder(Recorder, memory_service_pb2_grpc.MemoryServiceServicer, operations_pb2_grpc.OperationsServicer):
    """A data plane's contract."""


class AdminRecorder(Recorder, policy_admin_service_pb2_grpc.PolicyAdminServiceServicer):
    """A control plane's contract."""


class WatchedControlPlane(AdminRecorder):
    """A control plane whose watches tell what a test gives them, one list of answers for each stream.

    The last list ends with `refusal`; those before end to be opened again, and an empty one as when it stops.
    """

    def __init__(self, *streams: Sequence[admin_pb2.WatchDataPlaneStatusesResponse], refusal: MemPlaneError) -> None:
        super().__init__()
        self.streams = list(streams)
        self.refusal = refusal

    def __getattribute__(self, name: str) -> Any:
        return self.watch if name == "WatchDataPlaneStatuses" else super().__getattribute__(name)

    async def watch(self, request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> AsyncIterator[Any]:
        """The next list."""
        self.requests.append(request)
        if not self.streams:
            status = status_of(self.refusal)
            await context.abort(code_of(self.refusal), status.message, trailers_of(self.refusal, status))
        answers = self.streams.pop(0)
        for answer in answers:
            yield answer
        if answers:
            context.set_trailing_metadata(RENEW)


@asynccontextmanager
async def served(recorder: MemoryRecorder | AdminRecorder) -> AsyncIterator[str]:
    """Serves on a free port; yields the address."""
    server = grpc.aio.server()
    if isinstance(recorder, MemoryRecorder):
        memory_service_pb2_grpc.add_MemoryServiceServicer_to_server(recorder, server)
        operations_pb2_grpc.add_OperationsServicer_to_server(recorder, server)
    else:
        policy_admin_service_pb2_grpc.add_PolicyAdminServiceServicer_to_server(recorder, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield f"127.0.0.1:{port}"
    finally:
        await server.stop(None)
