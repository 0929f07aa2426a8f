"""A policy snapshot: signed by the control plane, and opened by a data plane into what requests are decided by."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from google.protobuf.message import DecodeError

from memplane.policy.access import AccessIndex, KnownApiKey
from memplane.policy.codec import InvalidPolicy, from_json
from memplane.policy.effective import EffectivePolicies
from memplane.policy.rbac import KEY_HASH
from memplane.v1 import policy_pb2


@dataclass
class UntrustedSnapshot(Exception):
    """A snapshot that no trusted key has signed."""

    key_id: str
    detail: str

    def __str__(self) -> str:
        return f"policy snapshot signed with key {self.key_id!r}: {self.detail}"


@dataclass(frozen=True, slots=True)
class PolicySnapshot:
    """One policy in force, immutable: its version, what it says for each namespace, and who may do what."""

    version: str
    generation: int
    create_time_us: int
    policies: EffectivePolicies
    access: AccessIndex


def key_id(public_key: Ed25519PublicKey) -> str:
    """Names a key: the first 16 hex digits of the SHA-256 of its 32 raw bytes."""
    return hashlib.sha256(public_key.public_bytes_raw()).hexdigest()[:16]


def sign(snapshot: policy_pb2.PolicySnapshot, key: Ed25519PrivateKey) -> policy_pb2.SignedPolicySnapshot:
    """The snapshot's bytes with their signature."""
    payload = snapshot.SerializeToString(deterministic=True)
    return policy_pb2.SignedPolicySnapshot(
        payload=payload, signature=key.sign(payload), key_id=key_id(key.public_key())
    )


def open_signed(
    signed: policy_pb2.SignedPolicySnapshot,
    trusted: Mapping[str, Ed25519PublicKey],
    bootstrap_admin_sha256: str | None,
) -> PolicySnapshot:
    """The snapshot, checked whole and built for use; `trusted` maps key ids to keys.

    Raises:
        UntrustedSnapshot: The key is not trusted, or the signature is not its own. Nothing of the payload was read.
        InvalidPolicy: It is signed, but not a policy that this build understands.
    """
    _check_signature(signed, trusted)
    message = _parse(signed.payload)
    policy = from_json(message.policy_json)
    return PolicySnapshot(
        version=message.version_info,
        generation=message.generation,
        create_time_us=message.create_time.ToMicroseconds(),
        policies=EffectivePolicies(policy),
        access=AccessIndex(policy.rbac, bootstrap_admin_sha256, [_known(key) for key in message.api_keys]),
    )


def _known(key: policy_pb2.ApiKeyHash) -> KnownApiKey:
    if KEY_HASH.fullmatch(key.sha256) is None:
        raise InvalidPolicy(f"api_keys: key {key.key_id!r} has no SHA-256 of 64 hex digits")
    expire_time_us = key.expire_time.ToMicroseconds() if key.HasField("expire_time") else None
    return KnownApiKey(key.sha256, key.principal, expire_time_us, key.key_id)


def _check_signature(signed: policy_pb2.SignedPolicySnapshot, trusted: Mapping[str, Ed25519PublicKey]) -> None:
    key = trusted.get(signed.key_id)
    if key is None:
        raise UntrustedSnapshot(signed.key_id, "the key is not trusted here")
    try:
        key.verify(signed.signature, signed.payload)
    except InvalidSignature as error:
        raise UntrustedSnapshot(signed.key_id, "the signature is not of this payload") from error


def _parse(payload: bytes) -> policy_pb2.PolicySnapshot:
    try:
        message = policy_pb2.PolicySnapshot.FromString(payload)
    except DecodeError as error:
        raise InvalidPolicy("the payload is no PolicySnapshot") from error
    if not message.version_info or message.generation < 1:
        raise InvalidPolicy(f"version {message.version_info!r}, generation {message.generation}: both are required")
    return message
