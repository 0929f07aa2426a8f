"""The key that snapshots are signed with: made at first start, private to the owner, its public half beside it."""

import os
from contextlib import suppress
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_pem_private_key,
)

_OWNER_ONLY = 0o600


class BadSigningKey(Exception):
    """The key file is there and holds no Ed25519 private key."""


def load_or_make_key(key_file: Path) -> Ed25519PrivateKey:
    """The signing key; a new one where there is no file. Writes the public key (PEM) beside it, suffix `.pub`.

    Blocking. Raises BadSigningKey, or OSError when a file cannot be read or written.
    """
    try:
        key = _parsed(key_file)
    except FileNotFoundError:
        key = Ed25519PrivateKey.generate()
        _write_whole(key_file, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), _OWNER_ONLY)
    public = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    _write_whole(key_file.with_suffix(".pub"), public, 0o644)
    return key


def _parsed(key_file: Path) -> Ed25519PrivateKey:
    try:
        key = load_pem_private_key(key_file.read_bytes(), password=None)
    except ValueError as error:
        raise BadSigningKey(f"{key_file} holds no private key in PEM") from error
    if not isinstance(key, Ed25519PrivateKey):
        raise BadSigningKey(f"{key_file} holds a private key that is not Ed25519")
    return key


def _write_whole(path: Path, data: bytes, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(path.name + ".new")
    with suppress(FileNotFoundError):
        draft.unlink()
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    draft.replace(path)
