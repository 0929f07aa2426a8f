"""The door of a data plane: which calls wait for a place, as whose, and what they pay.

Rules:
1. Every call of MemoryService and MaintenanceService waits; health, reflection and operations never do.
2. Who calls is known first, then that he is within his limits, then what the method needs is asked
   (`memplane/rpc/permissions.py`): who is unknown, asks too much, or may nothing of it, takes no place in the line.
   Health and reflection have no limits.
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
from dataplane.server.callers import Callers, Context, deadline_of
from dataplane.server.waiting_line import LONG_S, Observe, Ticket, WaitingLine
from memplane.errors import PermissionDenied
from memplane.policy.degradation import Admission, DegradationPolicy
from memplane.policy.names import is_namespace
from memplane.rpc.limits import CallLimiter
from memplane.rpc.permissions import MAINTENANCE, MEMORY, OPERATIONS, RULES, Rule, namespaces_asked
from memplane.v1 import memory_service_pb2 as pb

SERVICES = (MEMORY, MAINTENANCE)
ADVICE = "add data planes, or raise degradation_policy.admission if this one has memory and processor time to spare"
NOBODYS = "?"
"""A label that no namespace has: below it each principal waits with what concerns no namespace of his."""

_WRITES = frozenset(
    {pb.WriteMemoryRequest, pb.BatchWriteMemoriesRequest, pb.UpdateMemoryRequest, pb.ForgetMemoryRequest}
)
"""Requests that wait in the line of writes."""


class CallAdmission:
    """A `memplane.rpc.interceptors.Admit` over a waiting line for `reads` and one for `writes`.

    `observe` hears of every call that waits.
    """

    def __init__(self, callers: Callers, limiter: CallLimiter, observe: Observe):
        self._callers = callers
        self._limiter = limiter
        self.reads = WaitingLine(self._limits, observe)
        self.writes = WaitingLine(self._limits, observe)

    def __call__(
        self, method: str, request: Any, size_bytes: int, context: Context
    ) -> AbstractAsyncContextManager[Any]:
        """What the call runs inside.

        Entering it raises PolicyNotLoaded, Unauthenticated, LimitReached, PermissionDenied or Overloaded.
        """
        if method.startswith(SERVICES):
            return self._in_line(method, request, size_bytes, context)
        return self._limited(context) if method.startswith(OPERATIONS) else nullcontext()

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
        """What doctor is told: of authentication, and when calls have been refused for long."""
        refusing_s = max(line.refusing_for_s() for line in (self.reads, self.writes))
        if refusing_s < LONG_S:
            return self._callers.problems()
        told = f"calls have been refused for {refusing_s:.0f} s; {ADVICE}"
        return (*self._callers.problems(), Problem("OVERLOADED", told))

    @asynccontextmanager
    async def _limited(self, context: Context) -> AsyncIterator[Caller]:
        await self._callers.prepare(context)
        caller = self._callers.of(context)
        with self._limiter.taking(caller.principal_id, caller.snapshot.access.limits_of(caller.identity)):
            yield caller

    @asynccontextmanager
    async def _in_line(self, method: str, request: Any, size_bytes: int, context: Context) -> AsyncIterator[None]:
        async with self._limited(context) as caller:
            rule = RULES[method]
            check_rule(rule, request, caller)
            ticket = Ticket(path_of(rule, request, caller), first_cost(request), size_bytes)
            line = self.writes if type(request) in _WRITES else self.reads
            async with _admitted(line, ticket, deadline_of(context)):
                yield

    def _limits(self) -> Admission:
        policies: DegradationPolicy = self._callers.policy().policies.degradation
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


def check_rule(rule: Rule, request: Any, caller: Caller) -> None:
    """Raises PermissionDenied when the caller may nothing of what is asked. Malformed namespaces are told of later."""
    if not rule.namespaces:
        caller.require(rule.permission, None)
        return
    asked = namespaces_asked(rule, request)
    if not asked or rule.one_by_one or not all(is_namespace(name) for name in asked):
        return
    if not any(caller.may(rule.permission, name) for name in asked):
        raise PermissionDenied(rule.permission, asked[0] if len(asked) == 1 else None)


def path_of(rule: Rule, request: Any, caller: Caller) -> tuple[str, ...]:
    """Where in the tree of namespaces a call waits."""
    namespace = namespace_of(request)
    if namespace and caller.may(rule.permission, namespace):
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
