"""The door of a data plane whose policy is stale: what it was told to refuse then, it refuses before anything else.

Only methods that are named here as reads count as such: what is added and not named is not served `read_only`.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

from memplane.errors import PolicyStale
from memplane.policy.degradation import StaleAction
from memplane.rpc.interceptors import Admit, Context

SERVICES = ("/memplane.v1.", "/google.longrunning.")
"""Health and reflection answer always."""

READS = frozenset(
    {
        *(
            f"/memplane.v1.MemoryService/{name}"
            for name in ("SearchMemories", "GetContext", "GetMemory", "ListMemories", "ListMemoryVersions")
        ),
        *(
            f"/memplane.v1.MaintenanceService/{name}"
            for name in ("CheckIndexes", "ListDeadLetters", "ListSetAsideWrites")
        ),
        *(f"/google.longrunning.Operations/{name}" for name in ("GetOperation", "ListOperations", "WaitOperation")),
    }
)
"""What `read_only` leaves."""


def unless_stale(admit: Admit, action: Callable[[], StaleAction | None]) -> Admit:
    """The same admission, after a look at what a stale policy leaves. `action` is None while it is not stale."""

    def admit_unless_stale(
        method: str, request: Any, size_bytes: int, context: Context
    ) -> AbstractAsyncContextManager[None]:
        if method.startswith(SERVICES):
            refuse_stale(method, action())
        return admit(method, request, size_bytes, context)

    return admit_unless_stale


def refuse_stale(method: str, action: StaleAction | None) -> None:
    """Raises PolicyStale when the action leaves no such method."""
    if action == "deny" or (action == "read_only" and method not in READS):
        raise PolicyStale(action)
