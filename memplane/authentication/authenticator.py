"""Tells who calls, by what the call carries. Both planes ask it at every call.

Rules:
1. `authorization: Bearer …` comes first: `mpk_…` is an API key, three parts joined by dots are a signed token (JWT),
   anything else is refused. What is refused there is never made good by a certificate.
2. Without that metadata the client certificate tells who calls, by the one SPIFFE id among its URIs.
3. Every credential is checked at every call: its end against a clock that cannot be set back, an API key by the hash
   that the policy in force knows it by. So a key that was revoked is worthless with the next policy.
4. Keys are found by their hash alone, so that how long it takes tells nothing of how near a guess was.
"""

import re
from typing import Any, Final

import grpc

from memplane.authentication.steady_clock import SteadyClock
from memplane.authentication.tokens import KeysUnknown, TokenRefused, TokenVerifier
from memplane.errors import Unauthenticated, Unavailable
from memplane.identity import Identity, Method
from memplane.policy.access import AccessIndex
from memplane.rpc.credentials import bearer_of
from memplane.rpc.tls import peer_spiffe_ids

API_KEY_PREFIX: Final = "mpk_"
_TOKEN: Final = re.compile(r"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*\.[A-Za-z0-9_-]*")
_NO_CREDENTIALS: Final = (
    "no credentials; send metadata 'authorization: Bearer API_KEY_OR_TOKEN', or come with a client certificate"
)

_Context = grpc.aio.ServicerContext[Any, Any]


class Authenticator:
    """`tokens` None: signed tokens are not taken."""

    def __init__(self, clock: SteadyClock, tokens: TokenVerifier | None = None):
        self._clock = clock
        self._tokens = tokens

    async def prepare(self, context: _Context) -> None:
        """Waits for a token's key when it is not known yet, a few seconds at most; comes before `identify`."""
        if self._tokens is None:
            return
        bearer = bearer_of(context)
        if bearer is not None and _is_token(bearer):
            await self._tokens.prepare(bearer)

    def identify(self, context: _Context, access: AccessIndex) -> Identity:
        """Who calls, as far as `access` knows.

        Raises:
            Unauthenticated: By which method nobody was recognised, and why.
            Unavailable: The keys of tokens have not been read since the start.
        """
        bearer = bearer_of(context)
        if bearer is None:
            return self._by_certificate(context, access)
        if bearer.startswith(API_KEY_PREFIX):
            return self._by_api_key(bearer, access)
        if _is_token(bearer):
            return self._by_token(bearer, access)
        raise Unauthenticated("the bearer text is no API key (mpk_…) and no signed token (JWT)")

    def problems(self) -> dict[str, str]:
        """What an administrator should look after: by code, what is wrong and what to do."""
        found = {}
        if self._tokens is not None and self._tokens.keys.problem:
            found["TOKEN_KEYS"] = f"tokens are checked with old keys (jwt-jwks): {self._tokens.keys.problem}"
        if back_us := self._clock.back_us():
            found["CLOCK_SET_BACK"] = (
                f"the clock was set back by {back_us / 1_000_000:.0f} s; credentials end as if it had not been, until "
                "this process is started again"
            )
        return found

    def _by_api_key(self, key: str, access: AccessIndex) -> Identity:
        identity = access.by_api_key(key, self._clock.now_us())
        if identity is None:
            raise Unauthenticated("the API key is not known, or was revoked, or has expired", Method.API_KEY)
        return identity

    def _by_token(self, token: str, access: AccessIndex) -> Identity:
        if self._tokens is None:
            raise Unauthenticated("signed tokens are not taken here (jwt-issuer)", Method.TOKEN)
        try:
            claims = self._tokens.verify(token, self._clock.now_us())
        except TokenRefused as refusal:
            raise Unauthenticated(f"the token is refused: {refusal}", Method.TOKEN) from refusal
        except KeysUnknown as error:
            raise Unavailable("key set of tokens") from error
        identity = access.by_token(claims.subject, claims.groups, claims.expire_time_us)
        if identity is None:
            raise Unauthenticated("the policy knows neither the token's subject nor one of its groups", Method.TOKEN)
        return identity

    def _by_certificate(self, context: _Context, access: AccessIndex) -> Identity:
        ids = peer_spiffe_ids(context)
        if not ids:
            if context.auth_context().get("x509_pem_cert"):
                refusal = "the client certificate has not exactly one URI name that is a SPIFFE id"
                raise Unauthenticated(refusal, Method.CERTIFICATE)
            raise Unauthenticated(_NO_CREDENTIALS)
        identity = access.by_spiffe_id(ids[0])
        if identity is None:
            raise Unauthenticated("the client certificate's SPIFFE id is not in the policy", Method.CERTIFICATE)
        return identity


def _is_token(bearer: str) -> bool:
    return _TOKEN.fullmatch(bearer) is not None
