"""What every part of PolicyAdminService asks of the whole."""

from abc import ABC, abstractmethod
from typing import Any

import grpc


class AdminPart(ABC):
    """The base of the parts that `controlplane.server.PolicyAdminServicer` is put together from."""

    @abstractmethod
    def _require(
        self, context: grpc.aio.ServicerContext[Any, Any], permission: str, namespace: str | None = None
    ) -> str:
        """Who calls. Raises Unauthenticated or PermissionDenied."""
