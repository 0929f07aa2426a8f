"""Starts what authentication needs: the one place where its parts are put together, for both planes."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from memplane.authentication.authenticator import Authenticator
from memplane.authentication.key_sources import KeyFile, KeySource, KeyUrl
from memplane.authentication.steady_clock import Clock, SteadyClock
from memplane.authentication.token_keys import TokenKeys
from memplane.authentication.token_settings import TokenSettings
from memplane.authentication.tokens import TokenVerifier
from memplane.settings import BadConfig


@asynccontextmanager
async def authenticating(settings: TokenSettings | None, clock: Clock) -> AsyncIterator[Authenticator]:
    """An Authenticator, whose keys for tokens are kept current inside the block. `settings` None: no tokens.

    Raises:
        BadConfig: The file of keys cannot be used. A server that does not answer is asked again and again instead.
    """
    steady = SteadyClock(clock, time.monotonic)
    if settings is None:
        yield Authenticator(steady)
        return
    keys = TokenKeys(_source(settings), time.monotonic)
    await keys.look()
    if keys.problem and not settings.is_url:
        raise BadConfig(f"jwt-jwks: {keys.problem}")
    looking = asyncio.create_task(keys.run(), name="token-keys-loop")
    try:
        yield Authenticator(steady, TokenVerifier(settings, keys))
    finally:
        looking.cancel()
        with suppress(asyncio.CancelledError):
            await looking


def _source(settings: TokenSettings) -> KeySource:
    if settings.is_url:
        return KeyUrl(settings.jwks, settings.refresh_s, settings.jwks_ca)
    return KeyFile(Path(settings.jwks))
