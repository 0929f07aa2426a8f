"""Who calls, under which policy: both taken once at the start of a call and not again."""

from collections.abc import Sequence
from dataclasses import dataclass

from memplane.errors import PermissionDenied
from memplane.identity import Identity
from memplane.policy.snapshot import PolicySnapshot


@dataclass(frozen=True, slots=True)
class Caller:
    """An identity and the policy snapshot that decides this call."""

    identity: Identity
    snapshot: PolicySnapshot

    @property
    def principal_id(self) -> str:
        """Who it is."""
        return self.identity.principal_id

    def may(self, permission: str, namespace: str | None) -> bool:
        """Whether a permission is granted on a namespace, be it for some memories; None: on `*`, not about one."""
        return self.snapshot.access.allows(self.identity, permission, namespace)

    def cells(self, permission: str, namespace: str) -> int:
        """The cells of a namespace that a permission is granted on; see `memplane.policy.cells`."""
        return self.snapshot.access.cells(self.identity, permission, namespace)

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
