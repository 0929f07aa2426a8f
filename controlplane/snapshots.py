"""The policy in force at the control plane, as one value, and the place where it is swapped."""

from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from controlplane.compile import Compiled
from controlplane.fleet import Target
from controlplane.revisions import Revision
from memplane.policy.access import AccessIndex
from memplane.policy.codec import to_json
from memplane.policy.snapshot import sign
from memplane.v1 import policy_pb2


@dataclass(frozen=True, slots=True)
class InForce:
    """A revision, what it compiled to, what data planes get of it, and who may do what by it."""

    revision: Revision
    compiled: Compiled
    signed: policy_pb2.SignedPolicySnapshot
    access: AccessIndex

    @property
    def target(self) -> Target:
        """What data planes should come to serve."""
        return Target(self.revision.version, self.revision.generation)


class SnapshotBuilder:
    """Makes InForce values. `bootstrap_admin_sha256` None: there is no bootstrap administrator."""

    def __init__(self, key: Ed25519PrivateKey, bootstrap_admin_sha256: str | None):
        self._key = key
        self._bootstrap_admin_sha256 = bootstrap_admin_sha256

    def build(self, revision: Revision, compiled: Compiled) -> InForce:
        """Signs what was compiled without errors. Blocking for some tens of milliseconds at 300 KB (2026-11)."""
        assert compiled.policy is not None
        snapshot = policy_pb2.PolicySnapshot(
            version_info=revision.version, generation=revision.generation, policy_json=to_json(compiled.policy)
        )
        snapshot.create_time.FromMicroseconds(revision.create_time_us)
        access = AccessIndex(compiled.policy.rbac, self._bootstrap_admin_sha256)
        return InForce(revision, compiled, sign(snapshot, self._key), access)

    def access_without_policy(self) -> AccessIndex:
        """Who may do what before there is a policy: the bootstrap administrator everything, others nothing."""
        return AccessIndex(None, self._bootstrap_admin_sha256)


class Snapshots:
    """Holds what is in force; one reference, swapped whole. `current` None: nothing was accepted yet."""

    def __init__(self, access_without_policy: AccessIndex):
        self.current: InForce | None = None
        self._access_without_policy = access_without_policy

    @property
    def access(self) -> AccessIndex:
        """Who may do what now."""
        return self.current.access if self.current is not None else self._access_without_policy

    @property
    def target(self) -> Target:
        """What data planes should come to serve; generation 0: nothing."""
        return self.current.target if self.current is not None else Target()
