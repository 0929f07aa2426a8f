"""How long a connection lasts, and how a server stops without losing a call."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final

import grpc
from grpc_health.v1 import health

from memplane.settings import Setting, Settings

Admit = Callable[[str, Any, int, Any], AbstractAsyncContextManager[None]]

SETTLE_S: Final = 0.05
"""No call may be under way for so long before connections are cut: one that has just arrived has then begun.
Unmeasured."""

RENEW: Final = (("memplane-stream", "renew"),)
"""Trailing metadata of a stream that ended only because its connection is to be renewed: it is opened again at once."""

SETTINGS: Final = (
    Setting("drain-s", "3", "seconds between a stop (health then says NOT_SERVING) and the end of new calls, 0 to 600"),
    Setting("stop-grace-s", "10", "seconds that calls under way may take after that, 0 to 600"),
    Setting(
        "max-connection-age-s", "300", "seconds after which a connection is renewed, give or take a tenth; 0: never"
    ),
    Setting("max-connection-age-grace-s", "30", "seconds that calls on such a connection may still take, 1 to 3600"),
)
"""What both planes let an administrator choose. The defaults are unmeasured."""


@dataclass(frozen=True, slots=True)
class Lifetime:
    """The settings of that name, in seconds; `max_connection_age_s` 0: connections last."""

    drain_s: float = 3.0
    stop_grace_s: float = 10.0
    max_connection_age_s: float = 300.0
    max_connection_age_grace_s: float = 30.0

    @classmethod
    def of(cls, given: Settings) -> "Lifetime":
        """From what was given. Raises BadConfig."""
        return cls(
            drain_s=given.number("drain-s", 0, 600),
            stop_grace_s=given.number("stop-grace-s", 0, 600),
            max_connection_age_s=given.number("max-connection-age-s", 0, 86_400),
            max_connection_age_grace_s=given.number("max-connection-age-grace-s", 1, 3_600),
        )

    def options(self) -> list[tuple[str, int]]:
        """For a gRPC server, which spreads the age by a tenth, so that clients do not all come back at once."""
        if not self.max_connection_age_s:
            return []
        age_ms, grace_ms = self.max_connection_age_s * 1_000, self.max_connection_age_grace_s * 1_000
        return [
            ("grpc.max_connection_age_ms", max(1, int(age_ms))),
            ("grpc.max_connection_age_grace_ms", int(grace_ms)),
        ]


class Underway:
    """Counts the unary calls under way, those that wait to be admitted included."""

    def __init__(self) -> None:
        self._count = 0
        self._changed = asyncio.Event()

    def around(self, admit: Admit) -> Admit:
        """The same admission, whose calls are counted."""

        @asynccontextmanager
        async def counted(method: str, request: Any, size_bytes: int, context: Any) -> AsyncIterator[None]:
            self._count += 1
            try:
                async with admit(method, request, size_bytes, context):
                    yield
            finally:
                self._count -= 1
                self._changed.set()

        return counted

    async def none(self) -> None:
        """Waits until nothing has been under way for SETTLE_S."""
        while True:
            self._changed.clear()
            if self._count:
                await self._changed.wait()
                continue
            await asyncio.sleep(SETTLE_S)
            if not self._count and not self._changed.is_set():
                return


async def drain(servicer: health.aio.HealthServicer, lifetime: Lifetime) -> None:
    """Tells by health that the server goes away, and serves on for as long as balancers need to notice."""
    await servicer.enter_graceful_shutdown()
    await asyncio.sleep(lifetime.drain_s)


async def finish(server: grpc.aio.Server, underway: Underway, lifetime: Lifetime) -> None:
    """Takes no new calls, and cuts connections once those under way are done, or after `stop_grace_s`.

    Streams, such as watches of health, do not hold it up.
    """
    stopping = asyncio.ensure_future(server.stop(lifetime.stop_grace_s))
    idle = asyncio.ensure_future(underway.none())
    await asyncio.wait({stopping, idle}, return_when=asyncio.FIRST_COMPLETED)
    idle.cancel()
    await server.stop(0)
    await stopping
