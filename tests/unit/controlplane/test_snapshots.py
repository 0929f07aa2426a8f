from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from controlplane.compile import compile_documents
from controlplane.documents import Document
from controlplane.fleet import Target
from controlplane.revisions import Revision
from controlplane.snapshots import SnapshotBuilder, Snapshots
from memplane.identity import Identity
from memplane.policy.access import hash_api_key
from memplane.policy.snapshot import key_id, open_signed

READER = hash_api_key("reader-key")
RBAC = f"""
rbac:
  principals:
    reader:
      api_key_sha256: ["{READER}"]
      grants:
        - namespace: "*"
          permissions: [policy.read]
""".encode()


def test_what_is_built_opens_at_a_data_plane_as_what_was_compiled() -> None:
    key = Ed25519PrivateKey.generate()
    compiled = compile_documents([Document("a.yaml", RBAC)], bootstrap_admin=True)
    revision = Revision(4, compiled.version, 1_000_000, "ann", "", "rpc")
    built = SnapshotBuilder(key, hash_api_key("admin")).build(revision, compiled)
    public = key.public_key()
    opened = open_signed(built.signed, {key_id(public): public}, bootstrap_admin_sha256=None)
    assert (opened.version, opened.generation, opened.create_time_us) == (compiled.version, 4, 1_000_000)
    assert opened.access.by_api_key("reader-key", 0) == Identity("reader")
    assert built.access.allows(Identity("reader"), "policy.read", None)


def test_before_there_is_a_policy_only_the_bootstrap_administrator_may_act() -> None:
    builder = SnapshotBuilder(Ed25519PrivateKey.generate(), hash_api_key("admin"))
    snapshots = Snapshots(builder.access_without_policy())
    admin = snapshots.access.by_api_key("admin", 0)
    assert admin is not None
    assert snapshots.access.allows(admin, "policy.reload", None)
    assert snapshots.access.by_api_key("reader-key", 0) is None
    assert snapshots.target == Target()


def test_without_a_bootstrap_administrator_and_a_policy_nobody_is_known() -> None:
    builder = SnapshotBuilder(Ed25519PrivateKey.generate(), None)
    assert builder.access_without_policy().by_api_key("admin", 0) is None
