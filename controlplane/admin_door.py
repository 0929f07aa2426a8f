"""The door of PolicyAdminService: who calls, whether within its limits, and what the policy lets it do."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from typing import Any

import grpc

from controlplane.snapshots import Snapshots
from memplane.authentication.authenticator import Authenticator
from memplane.errors import PermissionDenied
from memplane.rpc.limits import CallLimiter
from memplane.rpc.permissions import ADMIN

_Context = grpc.aio.ServicerContext[Any, Any]


class AdminDoor:
    """A `memplane.rpc.interceptors.Admit`, and by `stream` an `OpenStream`.

    Health, reflection and the streams of data planes, which show the node key, pass by it.
    """

    def __init__(self, snapshots: Snapshots, authenticator: Authenticator, limiter: CallLimiter):
        self._snapshots = snapshots
        self._authenticator = authenticator
        self._limiter = limiter

    def __call__(
        self, method: str, _request: Any, _size_bytes: int, context: _Context
    ) -> AbstractAsyncContextManager[Any]:
        """What the call runs inside. Entering it raises Unauthenticated or LimitReached."""
        return self.stream(method, context)

    def stream(self, method: str, context: _Context) -> AbstractAsyncContextManager[Any]:
        """What a stream runs inside, which counts as one call for as long as it is open. Raises as above."""
        return self._limited(context) if method.startswith(ADMIN) else nullcontext()

    def require(self, context: _Context, permission: str, namespace: str | None) -> str:
        """Id of the principal that calls, by the policy of this moment. Raises Unauthenticated or PermissionDenied."""
        access = self._snapshots.access
        identity = self._authenticator.identify(context, access)
        if not access.allows(identity, permission, namespace):
            raise PermissionDenied(permission, namespace)
        return identity.principal_id

    @asynccontextmanager
    async def _limited(self, context: _Context) -> AsyncIterator[None]:
        await self._authenticator.prepare(context)
        access = self._snapshots.access
        identity = self._authenticator.identify(context, access)
        with self._limiter.taking(identity.principal_id, access.limits_of(identity)):
            yield
