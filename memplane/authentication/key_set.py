"""A JSON Web Key Set (RFC 7517), read with suspicion: public keys that may verify signatures, and nothing else.

Rules:
1. Keys for encryption, shared secrets, private keys, unknown types and curves, and RSA keys of less than 2,048 bits are
   passed over. A set without one usable key is no set.
2. A key verifies the algorithms of its type alone, and if it names one, that one alone. So a public key is never taken
   for a shared secret, whatever a token's header says.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey

MAX_BYTES: Final = 1024 * 1024
MAX_KEYS: Final = 200
MIN_RSA_BITS: Final = 2048

_OF_RSA: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512")
_OF_CURVE: Final = {
    ("EC", "P-256"): ("ES256",),
    ("EC", "P-384"): ("ES384",),
    ("EC", "P-521"): ("ES512",),
    ("OKP", "Ed25519"): ("EdDSA",),
}
_PRIVATE: Final = ("d", "p", "q", "dp", "dq", "qi", "k")


class BadKeySet(Exception):
    """These bytes are no key set that could be used; the text tells why, and shows nothing of it."""


@dataclass(frozen=True, slots=True)
class VerifyingKey:
    """A public key. `kid` "": it has no name. `algorithms` are those that it may verify."""

    kid: str
    algorithms: frozenset[str]
    key: Any  # one of cryptography's public keys


class KeySet:
    """Immutable. Keys of one name are told apart by their algorithms; the first that fits is taken."""

    def __init__(self, keys: Sequence[VerifyingKey]):
        self._keys = tuple(keys)

    def named(self, kid: str, algorithm: str) -> VerifyingKey | None:
        """The key of that name that verifies that algorithm."""
        return next((each for each in self._keys if each.kid == kid and algorithm in each.algorithms), None)

    def only(self, algorithm: str) -> VerifyingKey | None:
        """The one key that verifies that algorithm, for tokens that name none; None: there are several, or none."""
        fitting = [each for each in self._keys if algorithm in each.algorithms]
        return fitting[0] if len(fitting) == 1 else None

    def has(self, kid: str) -> bool:
        """Whether there is a key of that name."""
        return any(each.kid == kid for each in self._keys)

    def __len__(self) -> int:
        return len(self._keys)


def read_key_set(data: bytes) -> KeySet:
    """The usable keys of a set. Raises BadKeySet."""
    if len(data) > MAX_BYTES:
        raise BadKeySet(f"{len(data)} bytes; at most {MAX_BYTES}")
    try:
        found = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise BadKeySet("this is no JSON") from error
    given = found.get("keys") if isinstance(found, dict) else None
    if not isinstance(given, list) or len(given) > MAX_KEYS:
        raise BadKeySet(f'this is no {{"keys": [...]}} of at most {MAX_KEYS} keys')
    keys = [key for each in given if isinstance(each, dict) and (key := _usable(each)) is not None]
    if not keys:
        raise BadKeySet(f"none of its {len(given)} keys is a public key for signatures")
    return KeySet(keys)


def _usable(given: dict[str, Any]) -> VerifyingKey | None:
    algorithms = _algorithms_of(given)
    kid = given.get("kid", "")
    if not algorithms or not isinstance(kid, str) or any(name in given for name in _PRIVATE):
        return None
    try:
        key = jwt.PyJWK.from_dict(given, algorithms[0]).key
    except (jwt.PyJWTError, ValueError, TypeError, AttributeError):  # a number that is no number, a point off its curve
        return None
    if isinstance(key, RSAPublicKey) and key.key_size < MIN_RSA_BITS:
        return None
    return VerifyingKey(kid, frozenset(algorithms), key)


def _algorithms_of(given: dict[str, Any]) -> tuple[str, ...]:
    """What a key may verify, by its type, use and algorithm; nothing when it is for something else."""
    if given.get("use", "sig") != "sig" or "verify" not in given.get("key_ops", ["verify"]):
        return ()
    kind, curve = given.get("kty"), given.get("crv")
    possible = _OF_RSA if kind == "RSA" else _OF_CURVE.get((str(kind), str(curve)), ())
    named = given.get("alg")
    return possible if named is None else tuple(name for name in possible if name == named)
