"""A backend that may not be there yet when the process starts: until it is, every call says so.

A store that is down must not keep a data plane from starting, or from answering with what the others hold. What is
wrong for good (a password, a version, a missing schema) ends the start instead, for it would never come right.
"""

import asyncio
import inspect
import logging
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar, cast

from dataplane.ending import end
from dataplane.errors import BackendUnavailable, Misconfigured
from dataplane.ports import Examination, Problem

log = logging.getLogger("memplane.deferred")

T = TypeVar("T")

FIRST_TRY_S = 10.0
"""How long a start waits for a backend before it goes on without."""
RETRY_S = 2.0
"""Seconds between tries. Unmeasured."""

Open = Callable[[], Awaitable[T]]
"""Opens the backend. Raises BackendUnavailable when nothing answers and Misconfigured when it cannot be used."""


async def opened_or_deferred(port: type[Any], backend: str, open_backend: Open[T]) -> T:
    """The backend, opened, or a stand-in that goes on trying. `port` tells what can be called. Raises Misconfigured."""
    try:
        async with asyncio.timeout(FIRST_TRY_S):
            return await open_backend()
    except BackendUnavailable as error:
        problem = error.words
    except TimeoutError:
        problem = f"did not answer within {FIRST_TRY_S:g} s"
    log.warning("%s cannot be reached and is tried again every %g s: %s", backend, RETRY_S, problem)
    return cast(T, _Deferred(port, backend, open_backend, problem))


class _Deferred:
    def __init__(self, port: type[Any], backend: str, open_backend: Open[Any], problem: str):
        self._port = port
        self._backend = backend
        self._open = open_backend
        self._problem = problem
        self._misconfigured = False
        self._inner: Any = None
        self._task: asyncio.Task[None] | None = asyncio.create_task(self._run(), name=f"opening-{backend}")

    def __getattr__(self, name: str) -> Any:
        if not inspect.iscoroutinefunction(getattr(self._port, name, None)):
            if self._inner is None:
                raise AttributeError(name)
            return getattr(self._inner, name)

        async def call(*arguments: Any, **named: Any) -> Any:
            if self._inner is None:
                raise BackendUnavailable(self._backend, self._problem)
            answer = await getattr(self._inner, name)(*arguments, **named)
            # A record store that gives itself to read from: wrappers must know it again.
            return self if answer is self._inner else answer

        return call

    async def examine(self, deadline_s: float) -> Examination:
        """See the port; a wrong setting that showed only now is told as a problem."""
        if self._inner is not None:
            found: Examination = await self._inner.examine(deadline_s)
            return found
        if self._misconfigured:
            return Examination("", (Problem("MISCONFIGURED", self._problem),))
        raise BackendUnavailable(self._backend, self._problem)

    async def close(self) -> None:
        """See the port."""
        if self._task is not None:
            await end(self._task)
        if self._inner is not None:
            await self._inner.close()

    async def _run(self) -> None:
        while self._inner is None:
            await asyncio.sleep(RETRY_S)
            try:
                self._inner = await self._open()
                log.info("%s answers", self._backend)
            except BackendUnavailable as error:
                self._problem, self._misconfigured = error.words, False
            except Misconfigured as error:
                if error.problem != self._problem:
                    log.warning("%s", error)
                self._problem, self._misconfigured = error.problem, True
            except Exception as error:  # the loop must live on: the backend may still come
                log.exception("%s could not be opened", self._backend)
                self._problem, self._misconfigured = type(error).__name__, False
