"""Who calls, under which policy: both taken once at the start of a call and not again."""

from collections.abc import Sequence
from dataclasses import dataclass

from memplane.errors import PermissionDenied
from memplane.policy.snapshot import PolicySnapshot


@dataclass(frozen=True, slots=True)
class Caller:
    """A principal and the policy snapshot that decides this call."""

    principal_id: str
    snapshot: PolicySnapshot

    def may(self, permission: str, namespace: str | None) -> bool:
        """Whether a permission is granted on a namespace; None: on `*`, for what is not about one."""
        return self.snapshot.access.allows(self.principal_id, permission, namespace)

    def require(self, permission: str, namespace: str | None) -> None:
        """Raises PermissionDenied unless it is granted."""
        if not self.may(permission, namespace):
            raise PermissionDenied(permission, namespace)

    def readable(self, namespaces: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The readable ones and the others; PermissionDenied when none is readable."""
        allowed = tuple(name for name in namespaces if self.may("memory.read", name))
        if not allowed:
            raise PermissionDenied("memory.read", namespaces[0] if len(namespaces) == 1 else None)
        return allowed, tuple(name for name in namespaces if name not in allowed)
