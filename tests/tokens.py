"""An issuer of signed tokens for tests: EC and RSA keys, a key set, and whatever claims are wanted."""

import json
from collections.abc import Mapping
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

from memplane.authentication.token_settings import TokenSettings

ISSUER = "https://login.bank.example"
AUDIENCE = "memplane"
NOW_S = 1_760_000_000


class Issuer:
    """Signs with the key `kid`; `algorithm` is RS256, PS256, ES256 or EdDSA."""

    def __init__(self, kid: str = "key-1", algorithm: str = "ES256", rsa_bits: int = 2048) -> None:
        self.kid = kid
        self.algorithm = algorithm
        self.key = self._make(algorithm, rsa_bits)

    def _make(self, algorithm: str, rsa_bits: int) -> Any:
        if algorithm == "EdDSA":
            return ed25519.Ed25519PrivateKey.generate()
        if algorithm == "ES256":
            return ec.generate_private_key(ec.SECP256R1())
        return rsa.generate_private_key(65537, rsa_bits)

    def jwk(self, **fields: Any) -> dict[str, Any]:
        """The public key, with fields of its own in place of or beside the usual ones."""
        makers = {"EdDSA": OKPAlgorithm, "ES256": ECAlgorithm}
        made = makers.get(self.algorithm, RSAAlgorithm).to_jwk(self.key.public_key(), as_dict=True)
        return {**made, "kid": self.kid, "use": "sig", **fields}

    def token(self, claims: Mapping[str, Any] | None = None, headers: Mapping[str, Any] | None = None) -> str:
        """A good token for an hour, but for what is given; a claim or header that is None is left out."""
        said = {"iss": ISSUER, "aud": AUDIENCE, "sub": "ann", "exp": NOW_S + 3600, **(claims or {})}
        above = {"kid": self.kid, **(headers or {})}
        kept = {name: value for name, value in said.items() if value is not None}
        return jwt.encode(
            kept, self.key, self.algorithm, {name: value for name, value in above.items() if value is not None}
        )


def key_set(*issuers: Issuer) -> bytes:
    return json.dumps({"keys": [issuer.jwk() for issuer in issuers]}).encode()


def settings(jwks: str = "jwks.json", algorithms: tuple[str, ...] = ("ES256",), **fields: Any) -> TokenSettings:
    return TokenSettings(ISSUER, AUDIENCE, jwks, algorithms, **fields)
