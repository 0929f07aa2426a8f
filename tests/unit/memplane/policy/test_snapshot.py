import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from memplane.identity import Identity
from memplane.policy.codec import InvalidPolicy, to_json
from memplane.policy.model import PolicySet
from memplane.policy.rbac import BOOTSTRAP_ADMIN
from memplane.policy.snapshot import UntrustedSnapshot, key_id, open_signed, sign
from memplane.v1 import policy_pb2

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER = Ed25519PrivateKey.from_private_bytes(bytes(32))
TRUSTED = {key_id(KEY.public_key()): KEY.public_key()}


def message(**changes: object) -> policy_pb2.PolicySnapshot:
    made = policy_pb2.PolicySnapshot(version_info="sha256:1", generation=3, policy_json=to_json(PolicySet()))
    made.create_time.FromMicroseconds(1_700_000_000_000_001)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def test_a_key_is_named_by_16_hex_digits_of_its_hash() -> None:
    assert key_id(KEY.public_key()) == "56475aa75463474c"


def test_a_signed_snapshot_opens() -> None:
    snapshot = open_signed(sign(message(), KEY), TRUSTED, bootstrap_admin_sha256="0" * 64)
    assert (snapshot.version, snapshot.generation, snapshot.create_time_us) == ("sha256:1", 3, 1_700_000_000_000_001)
    assert snapshot.policies.for_namespace("dept").retrieve.top_k == 6
    assert snapshot.access.allows(Identity(BOOTSTRAP_ADMIN), "memory.read", "dept")


def test_a_key_that_is_not_trusted_is_refused() -> None:
    with pytest.raises(UntrustedSnapshot, match="not trusted"):
        open_signed(sign(message(), OTHER), TRUSTED, None)


def test_a_signature_of_another_key_under_a_trusted_name_is_refused() -> None:
    forged = sign(message(), OTHER)
    forged.key_id = key_id(KEY.public_key())
    with pytest.raises(UntrustedSnapshot, match="signature"):
        open_signed(forged, TRUSTED, None)


@pytest.mark.parametrize("field", ["payload", "signature"])
def test_every_changed_byte_is_noticed(field: str) -> None:
    signed = sign(message(), KEY)
    for place in (0, len(getattr(signed, field)) - 1):
        changed = policy_pb2.SignedPolicySnapshot.FromString(signed.SerializeToString())
        data = bytearray(getattr(signed, field))
        data[place] ^= 1
        setattr(changed, field, bytes(data))
        with pytest.raises(UntrustedSnapshot):
            open_signed(changed, TRUSTED, None)


def test_an_empty_message_is_untrusted() -> None:
    with pytest.raises(UntrustedSnapshot):
        open_signed(policy_pb2.SignedPolicySnapshot(), TRUSTED, None)


@pytest.mark.parametrize(
    "changes",
    [
        {"version_info": ""},
        {"generation": 0},
        {"policy_json": b""},
        {"policy_json": b'{"future_policy": {}}'},
        {"policy_json": b'{"namespace_policy": {"overrides": {"a": {"write_policy": {"threshold": 9}}}}}'},
        {"policy_json": b'{"rbac": {"principals": {"a": {"roles": ["gone"]}}}}'},
    ],
    ids=str,
)
def test_a_signed_snapshot_that_is_no_policy_is_refused(changes: dict[str, object]) -> None:
    with pytest.raises(InvalidPolicy):
        open_signed(sign(message(**changes), KEY), TRUSTED, None)


def test_signed_bytes_that_are_no_snapshot_are_refused() -> None:
    junk = b"\xff\xff\xff"
    signed = policy_pb2.SignedPolicySnapshot(payload=junk, signature=KEY.sign(junk), key_id=key_id(KEY.public_key()))
    with pytest.raises(InvalidPolicy, match="no PolicySnapshot"):
        open_signed(signed, TRUSTED, None)
