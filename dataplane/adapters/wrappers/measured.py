"""Times every call of a backend. One wrapper for all ports: it adds nothing that depends on what a method means."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any, Protocol, TypeVar, cast

from dataplane.errors import BackendUnavailable
from dataplane.ports import RecordReads, RecordStore

T = TypeVar("T")

OK = "ok"
UNAVAILABLE = "unavailable"
REFUSED = "refused"
"""How a call ended: as promised, without the backend, or with another error that the port tells of."""


class Observe(Protocol):
    """Hears of the end of every call that was not cancelled."""

    def __call__(self, backend: str, operation: str, outcome: str, seconds: float, /) -> None:
        """Counts a call of the port method `operation`."""
        ...


def measured(inner: T, backend: str, observe: Observe) -> T:
    """The same port, its async methods timed under the backend's name."""
    return cast(T, _Measured(inner, backend, observe))


def measured_records(inner: RecordStore, observe: Observe) -> RecordStore:
    """The same record store, timed; so is what it gives to read from."""
    return cast(RecordStore, _MeasuredRecords(inner, "record_store", observe))


class _Measured:
    """Stands for `inner`. Timed methods are kept on the instance, so that each is wrapped once."""

    def __init__(self, inner: Any, backend: str, observe: Observe):
        self._inner = inner
        self._backend = backend
        self._observe = observe

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        if not inspect.iscoroutinefunction(found):
            return found
        timed = self._timed(name, found)
        setattr(self, name, timed)
        return timed

    def _timed(self, operation: str, call: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        backend, observe, now_s = self._backend, self._observe, asyncio.get_running_loop().time

        async def timed(*arguments: Any, **named: Any) -> Any:
            started_s = now_s()
            try:
                answer = await call(*arguments, **named)
            except BackendUnavailable:
                observe(backend, operation, UNAVAILABLE, now_s() - started_s)
                raise
            except Exception:  # whatever the port tells of is counted and goes on to the caller
                observe(backend, operation, REFUSED, now_s() - started_s)
                raise
            observe(backend, operation, OK, now_s() - started_s)
            return answer

        return timed


class _MeasuredRecords(_Measured):
    """What is given to read from stays the same object, so that who wraps it can keep its wrapper."""

    def __init__(self, inner: RecordStore, backend: str, observe: Observe):
        super().__init__(inner, backend, observe)
        self._replica: RecordReads | None = None
        self._lent: RecordReads | None = None

    async def reads(self, at_least: int, deadline_s: float) -> RecordReads:
        found: RecordReads = await self._inner.reads(at_least, deadline_s)
        if found is self._inner:
            return cast(RecordReads, self)
        if self._lent is None or found is not self._replica:
            self._replica, self._lent = found, measured(found, "record_replica", self._observe)
        return self._lent
