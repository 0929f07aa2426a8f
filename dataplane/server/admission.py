"""The door of a data plane: which calls wait for a place, as whose, and what they pay.

Rules:
1. Every call of MemoryService and MaintenanceService waits; health, reflection and operations never do.
2. Who calls is known first: an unknown key takes no place in the line.
3. A call waits as one of the namespace that it asks about, if the caller may; a batch as one of the namespace that most
   of its items are for. Other calls wait beside all namespaces, each principal for itself, so that nobody fills the
   line of those whose namespace he merely names.
4. A batch costs as many units as it has items, turn by turn; anything else costs one.
5. Reads and writes wait in lines of their own, with places of their own: writes that a slow embedder or disk holds up
   hold up no reads.
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any

from dataplane.pipelines.caller import Caller
from dataplane.pipelines.turn import holding
from dataplane.pipelines.write import EMBEDDED_TOGETHER, SETTLED_TOGETHER
from dataplane.ports import Problem
from dataplane.server.callers import Context, caller_of, deadline_of
from dataplane.server.waiting_line import LONG_S, Observe, Ticket, WaitingLine
from memplane.policy.degradation import Admission, DegradationPolicy
from memplane.policy.snapshot import PolicySnapshot
from memplane.v1 import memory_service_pb2 as pb

SERVICES = ("/memplane.v1.MemoryService/", "/memplane.v1.MaintenanceService/")
ADVICE = "add data planes, or raise degradation_policy.admission if this one has memory and processor time to spare"
NOBODYS = "?"
"""A label that no namespace has: below it each principal waits with what concerns no namespace of his."""

_PERMISSIONS: Mapping[type[Any], str] = {
    pb.WriteMemoryRequest: "memory.write",
    pb.BatchWriteMemoriesRequest: "memory.write",
    pb.UpdateMemoryRequest: "memory.write",
    pb.ForgetMemoryRequest: "memory.forget",
}
"""What a request needs of its namespace; those that are not named, `memory.read`."""

_WRITES = frozenset(_PERMISSIONS)
"""Requests that wait in the line of writes."""


class CallAdmission:
    """A `memplane.rpc.interceptors.Admit` over a waiting line for `reads` and one for `writes`.

    `require` gives the policy in force or raises PolicyNotLoaded. `observe` hears of every call.
    """

    def __init__(self, require: Callable[[], PolicySnapshot], observe: Observe):
        self._require = require
        self.reads = WaitingLine(self._limits, observe)
        self.writes = WaitingLine(self._limits, observe)

    def __call__(
        self, method: str, request: Any, size_bytes: int, context: Context
    ) -> AbstractAsyncContextManager[None]:
        """What the call runs inside. Raises PolicyNotLoaded, Unauthenticated; entering it raises Overloaded."""
        if not method.startswith(SERVICES):
            return nullcontext()
        caller = caller_of(context, self._require)
        ticket = Ticket(path_of(request, caller), first_cost(request), size_bytes)
        line = self.writes if type(request) in _WRITES else self.reads
        return _admitted(line, ticket, deadline_of(context))

    @property
    def readings(self) -> Mapping[str, Callable[[], float]]:
        """How the line is, for metrics."""
        lines = (self.reads, self.writes)
        return {
            "waiting_calls": lambda: sum(line.waiting_count for line in lines),
            "waiting_bytes": lambda: sum(line.waiting_bytes for line in lines),
            "running_calls": lambda: sum(line.running_count for line in lines),
            "running_places": lambda: sum(line.running_places for line in lines),
            "running_bytes": lambda: sum(line.running_bytes for line in lines),
        }

    def problems(self) -> Sequence[Problem]:
        """What doctor is told when calls have been refused for long."""
        refusing_s = max(line.refusing_for_s() for line in (self.reads, self.writes))
        if refusing_s < LONG_S:
            return ()
        told = f"calls have been refused for {refusing_s:.0f} s; {ADVICE}"
        return (Problem("OVERLOADED", told),)

    def _limits(self) -> Admission:
        policies: DegradationPolicy = self._require().policies.degradation
        return policies.admission


@asynccontextmanager
async def _admitted(line: WaitingLine, ticket: Ticket, deadline_s: float) -> AsyncIterator[None]:
    await line.enter(ticket, deadline_s)
    try:
        with holding(_TicketTurn(line, ticket)):
            yield
    finally:
        line.leave(ticket)


class _TicketTurn:
    """A `Turn` that is renewed in the line."""

    def __init__(self, line: WaitingLine, ticket: Ticket):
        self._line = line
        self._ticket = ticket

    async def renew(self, cost: int) -> None:
        """See the protocol."""
        await self._line.again(self._ticket, cost)


def first_cost(request: Any) -> int:
    """Units of work until a call is over, or until it renews its turn; at least 1."""
    if not isinstance(request, pb.BatchWriteMemoriesRequest) or not request.requests:
        return 1
    return min(len(request.requests), SETTLED_TOGETHER if request.requests[0].embedding else EMBEDDED_TOGETHER)


def path_of(request: Any, caller: Caller) -> tuple[str, ...]:
    """Where in the tree of namespaces a call waits."""
    namespace = namespace_of(request)
    if namespace and caller.may(_PERMISSIONS.get(type(request), "memory.read"), namespace):
        return tuple(namespace.split("."))
    return (NOBODYS, caller.principal_id)


def namespace_of(request: Any) -> str:
    """The namespace that a request is about; "" when it is about none."""
    match request:
        case pb.BatchWriteMemoriesRequest():
            counts = Counter(item.namespace for item in request.requests)
            return counts.most_common(1)[0][0] if counts else ""
        case pb.SearchMemoriesRequest():
            return request.namespace or next(iter(request.namespaces), "")
        case pb.GetContextRequest():
            return namespace_of(request.search)
        case pb.UpdateMemoryRequest():
            return request.memory.namespace
        case (
            pb.WriteMemoryRequest()
            | pb.GetMemoryRequest()
            | pb.ListMemoriesRequest()
            | pb.ForgetMemoryRequest()
            | pb.ListMemoryVersionsRequest()
        ):
            return request.namespace
        case _:
            return ""
