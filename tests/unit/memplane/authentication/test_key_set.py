import json
from typing import Any

import pytest
from jwt.algorithms import ECAlgorithm

from memplane.authentication.key_set import MAX_BYTES, MAX_KEYS, BadKeySet, read_key_set
from tests.tokens import Issuer

EC = Issuer("ec")
RSA = Issuer("rsa", "RS256")
SMALL = Issuer("small", "RS256", rsa_bits=1024)


def keys(*given: dict[str, Any]) -> bytes:
    return json.dumps({"keys": given}).encode()


def test_a_key_is_found_by_name_and_algorithm() -> None:
    found = read_key_set(keys(EC.jwk(), RSA.jwk()))
    assert len(found) == 2
    assert found.named("ec", "ES256") is not None
    assert found.named("ec", "RS256") is None
    assert found.named("rsa", "PS512") is not None
    assert found.has("rsa")
    assert not found.has("other")


def test_a_key_that_names_its_algorithm_verifies_that_alone() -> None:
    found = read_key_set(keys(RSA.jwk(alg="PS256")))
    assert found.named("rsa", "PS256") is not None
    assert found.named("rsa", "RS256") is None


def test_two_keys_of_one_name_are_told_apart_by_type() -> None:
    found = read_key_set(keys(EC.jwk(kid="same"), RSA.jwk(kid="same")))
    assert found.named("same", "ES256") is not None
    assert found.named("same", "RS256") is not None


@pytest.mark.parametrize(
    "unusable",
    [
        {"kty": "oct", "k": "AAAA", "kid": "shared"},
        {"kty": "oct", "k": "AAAA", "alg": "ES256", "kid": "shared"},
        EC.jwk(use="enc"),
        EC.jwk(key_ops=["sign"]),
        EC.jwk(alg="RS256"),
        EC.jwk(alg="HS256"),
        EC.jwk(crv="P-999"),
        EC.jwk(crv=["P-256"]),
        EC.jwk(x="AAAA"),
        EC.jwk(x=7),
        EC.jwk(kid=7),
        RSA.jwk(n=None),
        RSA.jwk(e="!"),
        SMALL.jwk(),
        ECAlgorithm.to_jwk(EC.key, as_dict=True),
        {"kid": "nothing"},
        {},
    ],
    ids=lambda given: str({name: value for name, value in given.items() if name not in ("x", "y", "n", "d")}),
)
def test_what_could_not_or_must_not_verify_is_passed_over(unusable: dict[str, Any]) -> None:
    with pytest.raises(BadKeySet, match="is a public key for signatures"):
        read_key_set(keys(unusable))
    assert len(read_key_set(keys(unusable, RSA.jwk()))) == 1


@pytest.mark.parametrize(
    "data",
    [b"", b"{", b"[]", b"7", b'{"keys": {}}', b"{}", b'{"keys": []}', b"\xff", b"[" * 100_000, b" " * (MAX_BYTES + 1)],
    ids=lambda data: repr(data[:20]),
)
def test_what_is_no_key_set_is_refused(data: bytes) -> None:
    with pytest.raises(BadKeySet):
        read_key_set(data)


def test_a_set_of_too_many_keys_is_refused() -> None:
    with pytest.raises(BadKeySet, match=f"at most {MAX_KEYS}"):
        read_key_set(json.dumps({"keys": [{}] * (MAX_KEYS + 1)}).encode())
