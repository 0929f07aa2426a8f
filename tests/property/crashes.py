"""A process that dies at a chosen call of a port, before or after the backend did what it was asked to."""

import functools
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, TypeVar, cast

T = TypeVar("T")


class Crash(BaseException):
    """The process is dead. No Exception: nothing may live on."""


@dataclass
class Death:
    """When the process dies: after `calls` more calls of any port; with the last one's effect where `after`."""

    calls: int | None = None
    after: bool = False
    is_dead: bool = False

    def arm(self, plan: tuple[int, bool] | None) -> None:
        """Dies as planned, (calls, after), or not."""
        self.calls, self.after = plan if plan is not None else (None, False)

    async def passes(self, call: Callable[[], Awaitable[Any]]) -> Any:
        """The answer of a call, if the process lives to hear it."""
        if self.is_dead:
            raise Crash
        if self.calls is None:
            return await call()
        self.calls -= 1
        if self.calls >= 0:
            answer = await call()
            if self.is_dead:
                raise Crash
            return answer
        self.is_dead = True
        if self.after:
            await call()
        raise Crash


def mortal(port: T, death: Death) -> T:
    """The same port, as the process that may die sees it."""
    return cast(T, _Mortal(port, death))


class _Mortal:
    def __init__(self, port: Any, death: Death):
        self._port = port
        self._death = death

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if not inspect.iscoroutinefunction(found):
            return found

        @functools.wraps(found)
        async def call(*arguments: Any, **named: Any) -> Any:
            return await self._death.passes(lambda: found(*arguments, **named))

        return call
