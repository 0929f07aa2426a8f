"""The door of a data plane whose policy is stale: what it was told to refuse then, it refuses before anything else.

Only methods that are named here as reads count as such: what is added and not named is not served `read_only`.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

from memplane.errors import PolicyStale
from memplane.policy.degradation import StaleAction
from memplane.rpc.interceptors import Admit, Context
from memplane.rpc.permissions import MAINTENANCE, MEMORY, OPERATIONS

SERVICES = (MEMORY, MAINTENANCE, OPERATIONS)
"""Health and reflection answer always."""

READS = frozenset(
    {
        *(
            MEMORY + name
            for name in ("SearchMemories", "GetContext", "GetMemory", "ListMemories", "ListMemoryVersions")
        ),
        *(MAINTENANCE + name for name in ("CheckIndexes", "ListDeadLetters", "ListSetAsideWrites")),
        *(OPERATIONS + name for name in ("GetOperation", "ListOperations", "WaitOperation")),
    }
)
"""What `read_only` leaves."""


class StaleDoor:
    """Lets calls in as `admit` does, after a look at what a stale policy leaves; streams when it leaves them.

    `action` gives None while the policy is not stale.
    """

    def __init__(self, admit: Admit, action: Callable[[], StaleAction | None]):
        self._admit = admit
        self._action = action

    def __call__(
        self, method: str, request: Any, size_bytes: int, context: Context
    ) -> AbstractAsyncContextManager[None]:
        """What a call runs inside. Raises PolicyStale, and what `admit` does."""
        self._refuse(method)
        return self._admit(method, request, size_bytes, context)

    def stream(self, method: str, _context: Context) -> AbstractAsyncContextManager[None]:
        """What a stream runs inside. Raises PolicyStale."""
        self._refuse(method)
        return nullcontext()

    def _refuse(self, method: str) -> None:
        action = self._action()
        if not method.startswith(SERVICES):
            return
        if action == "deny" or (action == "read_only" and method not in READS):
            raise PolicyStale(action)
