"""Checks signed tokens (JWT: RFC 7519, with the advice of RFC 8725).

Rules:
1. The algorithm must be one of those configured and fit the key's type; `none` and shared secrets never are.
2. The key is the one that the token names. Without a name it is the only one that fits.
3. iss, aud, exp and the principal's claim must be there; exp, nbf and iat hold give or take the leeway.
4. A header that must be understood (`crit`) is not understood, so the token is refused.
5. What a token is refused for is told, what stands in it is not.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import jwt

from memplane.authentication.key_set import VerifyingKey
from memplane.authentication.token_keys import TokenKeys
from memplane.authentication.token_settings import TokenSettings

MAX_TOKEN_CHARS: Final = 8 * 1024
MAX_GROUPS: Final = 1_000
MAX_SUBJECT_CHARS: Final = 256
MAX_TIME_S: Final = 253_402_300_800
"""The end of the year 9999."""
CACHED_TOKENS: Final = 10_000
"""Tokens whose signature is remembered as good; one takes about 1 KB."""
_US: Final = 1_000_000

_REFUSALS: Final[Mapping[type[Exception], str]] = {
    jwt.InvalidSignatureError: "its signature is not of this token",
    jwt.InvalidAudienceError: "it is for another audience",
    jwt.InvalidIssuerError: "it is of another issuer",
    jwt.InvalidAlgorithmError: "its algorithm is not taken here",
}


class TokenRefused(Exception):
    """A token is not taken; the text completes "the token is refused: ", and shows nothing of it."""


class KeysUnknown(Exception):
    """No key has been read since the start, so no token can be checked."""


@dataclass(frozen=True, slots=True)
class TokenClaims:
    """What a token that was checked says. Times in microseconds since 1970 UTC, before any leeway."""

    subject: str
    groups: frozenset[str]
    expire_time_us: int
    not_before_us: int


class TokenVerifier:
    """Checks tokens with the keys in `keys`. Signatures that were good are remembered until the keys change."""

    def __init__(self, settings: TokenSettings, keys: TokenKeys):
        self.keys = keys
        self._settings = settings
        self._leeway_us = round(settings.leeway_s * _US)
        self._checked: OrderedDict[bytes, TokenClaims] = OrderedDict()
        self._generation = -1

    async def prepare(self, token: str) -> None:
        """Has the keys looked at again when the token names one that is not known."""
        if len(token) > MAX_TOKEN_CHARS:
            return
        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError):
            return
        if header.get("alg") in self._settings.algorithms:
            await self.keys.look_for(str(header.get("kid", "")))

    def verify(self, token: str, now_us: int) -> TokenClaims:
        """What the token says. Raises TokenRefused or KeysUnknown."""
        if len(token) > MAX_TOKEN_CHARS:
            raise TokenRefused(f"it has more than {MAX_TOKEN_CHARS} characters")
        if self._generation != self.keys.generation:
            self._checked.clear()
            self._generation = self.keys.generation
        digest = hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
        claims = self._checked.get(digest)
        if claims is None:
            claims = self._check(token)
            self._remember(digest, claims)
        self._check_times(claims, now_us)
        return claims

    def _remember(self, digest: bytes, claims: TokenClaims) -> None:
        self._checked[digest] = claims
        if len(self._checked) > CACHED_TOKENS:
            self._checked.popitem(last=False)

    def _check(self, token: str) -> TokenClaims:
        try:
            header = jwt.get_unverified_header(token)
        except (jwt.PyJWTError, ValueError, RecursionError) as error:
            raise TokenRefused("it is no signed JWT") from error
        key, algorithm = self._key_for(header)
        try:
            payload = jwt.decode(
                token,
                key.key,
                algorithms=[algorithm],
                audience=self._settings.audience,
                issuer=self._settings.issuer,
                options={
                    "require": ["exp", "iss", "aud", self._settings.principal_claim],
                    "verify_exp": False,  # by our own clock, below
                    "verify_nbf": False,
                    "verify_iat": False,
                    "verify_sub": False,  # the principal's claim is checked below
                },
            )
        except jwt.MissingRequiredClaimError as error:
            raise TokenRefused(f"it has no claim {error.claim}") from error
        except (jwt.PyJWTError, ValueError, TypeError, RecursionError) as error:
            raise TokenRefused(_REFUSALS.get(type(error), "it is no signed JWT")) from error
        return self._claims(payload)

    def _key_for(self, header: Mapping[str, Any]) -> tuple[VerifyingKey, str]:
        algorithm, kid = header.get("alg"), header.get("kid", "")
        if not isinstance(algorithm, str) or algorithm not in self._settings.algorithms:
            raise TokenRefused("its algorithm is not taken here")
        if "crit" in header or "b64" in header:
            raise TokenRefused("its header asks for what is not understood here (crit)")
        if self.keys.current is None:
            raise KeysUnknown
        key = self.keys.current.named(kid, algorithm) if kid else self.keys.current.only(algorithm)
        if key is None:
            raise TokenRefused("it is signed with a key that is not known here" if kid else "it names no key (kid)")
        return key, algorithm

    def _claims(self, payload: Mapping[str, Any]) -> TokenClaims:
        subject = payload.get(self._settings.principal_claim)
        if not isinstance(subject, str) or not 1 <= len(subject) <= MAX_SUBJECT_CHARS:
            raise TokenRefused(f"its claim {self._settings.principal_claim} is no text of 1 to {MAX_SUBJECT_CHARS}")
        not_before = max(_time_us(payload, name) if name in payload else 0 for name in ("nbf", "iat"))
        return TokenClaims(subject, self._groups(payload), _time_us(payload, "exp"), not_before)

    def _groups(self, payload: Mapping[str, Any]) -> frozenset[str]:
        """A list of texts, or one text; none where the claim is missing."""
        given = payload.get(self._settings.groups_claim, [])
        groups = [given] if isinstance(given, str) else given
        if not isinstance(groups, list) or not all(isinstance(each, str) for each in groups):
            raise TokenRefused(f"its claim {self._settings.groups_claim} is no list of texts")
        if len(groups) > MAX_GROUPS:
            raise TokenRefused(f"its claim {self._settings.groups_claim} has more than {MAX_GROUPS} items")
        return frozenset(groups)

    def _check_times(self, claims: TokenClaims, now_us: int) -> None:
        if now_us >= claims.expire_time_us + self._leeway_us:
            raise TokenRefused("it has expired")
        if now_us < claims.not_before_us - self._leeway_us:
            raise TokenRefused("it is not valid yet")


def _time_us(payload: Mapping[str, Any], name: str) -> int:
    value = payload.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= MAX_TIME_S:  # NaN is not
        raise TokenRefused(f"its claim {name} is no time")
    return int(value * _US)
