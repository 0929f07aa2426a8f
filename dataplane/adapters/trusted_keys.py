"""The public keys of control planes that this data plane trusts."""

import re
from collections.abc import Mapping
from pathlib import Path

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from memplane.policy.snapshot import key_id

_PEM = re.compile(rb"-----BEGIN PUBLIC KEY-----.*?-----END PUBLIC KEY-----", re.DOTALL)


class NoTrustedKey(Exception):
    """The file is missing, or holds no Ed25519 public key."""


def read_trusted_keys(path: Path) -> Mapping[str, Ed25519PublicKey]:
    """The keys of a PEM file (one or more, so that keys can be rotated) by key id. Raises NoTrustedKey."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise NoTrustedKey(f"{path} cannot be read: {error.strerror}") from error
    keys = [_public_key(block, path) for block in _PEM.findall(data)]
    if not keys:
        raise NoTrustedKey(f"{path} holds no public key in PEM form")
    return {key_id(key): key for key in keys}


def _public_key(block: bytes, path: Path) -> Ed25519PublicKey:
    try:
        key = load_pem_public_key(block)
    except (ValueError, UnsupportedAlgorithm) as error:
        raise NoTrustedKey(f"{path} holds something that is no public key") from error
    if not isinstance(key, Ed25519PublicKey):
        raise NoTrustedKey(f"{path} holds a public key that is not Ed25519")
    return key
