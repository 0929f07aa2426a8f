"""How tests let planes know who calls: API keys by the policy's hashes, and no tokens unless asked for."""

import time
from collections.abc import Callable, Sequence
from typing import Protocol

from dataplane.server.callers import Callers
from memplane.authentication.authenticator import Authenticator
from memplane.authentication.steady_clock import SteadyClock
from memplane.authentication.tokens import TokenVerifier
from memplane.policy.snapshot import PolicySnapshot


class Clock(Protocol):
    def now_us(self) -> int: ...


def authenticator_of(clock: Clock, tokens: TokenVerifier | None = None) -> Authenticator:
    return Authenticator(SteadyClock(clock, time.monotonic), tokens)


def callers_of(
    policy: Callable[[], PolicySnapshot | None], clock: Clock, tokens: TokenVerifier | None = None
) -> Callers:
    return Callers(policy, authenticator_of(clock, tokens))


class FakeContext:
    """A call's context with this bearer text in its metadata (None: no such metadata), and this client certificate."""

    def __init__(self, bearer: str | None = None, uris: Sequence[str] = (), *, certificate: bool = False) -> None:
        self.metadata = [] if bearer is None else [("authorization", f"Bearer {bearer}")]
        self._auth = {"peer_uri": [uri.encode() for uri in uris]}
        if uris or certificate:
            self._auth["x509_pem_cert"] = [b"-----BEGIN CERTIFICATE-----"]

    def invocation_metadata(self) -> list[tuple[str, str]]:
        return self.metadata

    def auth_context(self) -> dict[str, list[bytes]]:
        return self._auth
