"""The policy in force at the control plane, as one value, and the place where it is swapped."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from controlplane.compile import Compiled
from controlplane.fleet import Target
from controlplane.revisions import ApiKeyRecord, Revision
from memplane.policy.access import AccessIndex, KnownApiKey
from memplane.policy.codec import to_json, version_of
from memplane.policy.snapshot import sign
from memplane.v1 import policy_pb2


@dataclass(frozen=True, slots=True)
class InForce:
    """A revision, what it compiled to, what data planes get of it, and who may do what by it.

    `api_keys` are those beside the policy that were not revoked; `compiled.version` is the digest of the documents.
    """

    revision: Revision
    compiled: Compiled
    signed: policy_pb2.SignedPolicySnapshot
    access: AccessIndex
    api_keys: tuple[ApiKeyRecord, ...]

    @property
    def target(self) -> Target:
        """What data planes should come to serve."""
        return Target(self.revision.version, self.revision.generation)


class SnapshotBuilder:
    """Makes InForce values. `bootstrap_admin_sha256` None: there is no bootstrap administrator."""

    def __init__(self, key: Ed25519PrivateKey, bootstrap_admin_sha256: str | None):
        self._key = key
        self._bootstrap_admin_sha256 = bootstrap_admin_sha256

    def build(self, revision: Revision, compiled: Compiled, api_keys: Sequence[ApiKeyRecord] = ()) -> InForce:
        """Signs what was compiled without errors, with the keys that hold when the revision is made.

        Blocking for some tens of milliseconds at 300 KB (2026-11).
        """
        assert compiled.policy is not None
        holding = _holding(api_keys, revision.create_time_us)
        snapshot = policy_pb2.PolicySnapshot(
            version_info=revision.version,
            generation=revision.generation,
            policy_json=to_json(compiled.policy),
            api_keys=[_hash_message(key) for key in holding],
        )
        snapshot.create_time.FromMicroseconds(revision.create_time_us)
        known = [KnownApiKey(key.sha256, key.principal, key.expire_time_us, key.key_id) for key in holding]
        access = AccessIndex(compiled.policy.rbac, self._bootstrap_admin_sha256, known)
        return InForce(revision, compiled, sign(snapshot, self._key), access, tuple(api_keys))

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


def content_version(documents_version: str, api_keys: Sequence[ApiKeyRecord], now_us: int) -> str:
    """The version of documents and the API keys beside them: the documents' own where no key holds."""
    holding = _holding(api_keys, now_us)
    if not holding:
        return documents_version
    known = [(key.key_id, key.sha256, key.principal, key.expire_time_us) for key in holding]
    return version_of([("documents", documents_version.encode()), ("api_keys", json.dumps(known).encode())])


def _holding(api_keys: Sequence[ApiKeyRecord], now_us: int) -> list[ApiKeyRecord]:
    return sorted((key for key in api_keys if key.holds(now_us)), key=lambda key: key.key_id)


def _hash_message(key: ApiKeyRecord) -> policy_pb2.ApiKeyHash:
    message = policy_pb2.ApiKeyHash(sha256=key.sha256, principal=key.principal, key_id=key.key_id)
    if key.expire_time_us is not None:
        message.expire_time.FromMicroseconds(key.expire_time_us)
    return message
