"""Cached texts that end with the stamp they were cached under.

What depends on memories lies in the cache sealed by a key made of its scope's stamp. In Redis a stamp is random, lies
nowhere but in the cache's epochs, and is replaced by every change of a memory in the scope. So the text of a memory
that was erased cannot be read out of Redis from the moment the erasure is acknowledged, although the values themselves
go only when their time is over. (A server that keeps a log of its commands keeps old epochs there until it is
rewritten.) The stamps of a cache in process are counters: who reads the memory of a process needs no key.
"""

import hashlib
import secrets

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE_BYTES = 12


def seal(stamp: str, data: bytes) -> bytes:
    """The data, to be read with this stamp alone: a nonce, then AES-256-GCM."""
    nonce = secrets.token_bytes(_NONCE_BYTES)
    return nonce + _cipher(stamp).encrypt(nonce, data, None)


def unseal(stamp: str, sealed: bytes) -> bytes:
    """What was sealed; raises ValueError for another stamp, and for anything else."""
    try:
        return _cipher(stamp).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], None)
    except InvalidTag as error:
        raise ValueError("sealed under another stamp") from error


def _cipher(stamp: str) -> AESGCM:
    return AESGCM(hashlib.sha256(f"memplane cache {stamp}".encode()).digest())
