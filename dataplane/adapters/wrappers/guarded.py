"""A port whose calls are bounded in time and number, and not made while the backend counts as down.

One wrapper for all ports: what a method is to its callers stands in `call_classes`, how it is bounded in `lane`.
"""

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from dataplane.adapters.wrappers.call_classes import CALL_CLASSES, CallClass
from dataplane.adapters.wrappers.lane import GRACE_S, Lane, Probe
from dataplane.errors import BackendUnavailable
from dataplane.logic.breaker import BreakerState
from dataplane.ports import RecordReads, RecordStore
from memplane.policy.degradation import BackendLimits

T = TypeVar("T")

READS = "reads"
WRITES = "writes"
REPLICA_READS = "replica_reads"
"""What lanes are called."""

Limits = Callable[[], BackendLimits]
"""Gives the limits in force; asked at each call."""
Method = Callable[..., Awaitable[Any]]


@dataclass(frozen=True, slots=True)
class Probes:
    """Something small to ask a backend, for each class of calls."""

    read: Probe
    write: Probe


@dataclass(frozen=True, slots=True)
class Guard:
    """What a backend is guarded by: a lane for each class of calls."""

    backend: str
    lanes: Sequence[Lane]

    async def close(self) -> None:
        """Ends what goes on in the background. Idempotent."""
        for lane in self.lanes:
            await lane.close()


def guarded(inner: T, port: type[Any], backend: str, limits: Limits, probes: Probes) -> tuple[T, Guard]:
    """The same port, guarded, and its guard."""
    lanes = _lanes(backend, limits, probes)
    return cast(T, _Guarded(inner, port, lanes)), Guard(backend, [*lanes.values()])


def guarded_records(inner: RecordStore, backend: str, limits: Limits, probes: Probes) -> tuple[RecordStore, Guard]:
    """The same record store, guarded, and its guard.

    What it gives to read from has a breaker of its own, and is replaced by the store where it fails.
    """
    lanes = _lanes(backend, limits, probes)
    found = _GuardedRecords(inner, lanes, limits)
    return cast(RecordStore, found), Guard(backend, [*lanes.values(), found.replica])


def _lanes(backend: str, limits: Limits, probes: Probes) -> dict[CallClass, Lane]:
    return {
        CallClass.READ: Lane(backend, READS, limits, lambda now: now.timeout_s, probes.read),
        CallClass.WRITE: Lane(backend, WRITES, limits, lambda now: now.write_timeout_s, probes.write),
    }


class _Guarded:
    """Stands for `inner`. Guarded methods are kept on the instance, so that each is wrapped once."""

    def __init__(self, inner: Any, port: type[Any], lanes: Mapping[CallClass, Lane]):
        self._inner = inner
        self._port = port
        self._lanes = lanes
        self._backend = lanes[CallClass.READ].backend

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        position = deadline_position(self._port, name)
        if position is None:
            return method
        lane = self._lanes.get(CALL_CLASSES[self._port][name])
        kept = _through(lane, method, position) if lane is not None else _in_time(method, position, self._backend)
        setattr(self, name, kept)
        return kept


class _GuardedRecords(_Guarded):
    def __init__(self, inner: RecordStore, lanes: Mapping[CallClass, Lane], limits: Limits):
        super().__init__(inner, RecordStore, lanes)
        self._limits = limits
        self._found: RecordReads = inner
        self._guarded: Any = self
        self.replica = Lane(self._backend, REPLICA_READS, limits, lambda now: now.timeout_s, self._probe_replica)

    async def reads(self, at_least: int, deadline_s: float) -> RecordReads:
        """See the port. The store itself while the replica counts as down.

        What is lent reads on from the store once the replica has failed it, and never from the replica after that: what
        follows would be older than what was read before.
        """
        if self.replica.breaker.state is BreakerState.OPEN:
            return cast(RecordStore, self)
        until_s = min(deadline_s, asyncio.get_running_loop().time() + self._limits().timeout_s)
        found: RecordReads = await _in_time(self._inner.reads, 1, self._backend)(at_least, until_s)
        if found is self._inner:
            return cast(RecordStore, self)
        if found is not self._found:
            self._found, self._guarded = found, _Guarded(found, RecordReads, {CallClass.READ: self.replica})
        return cast(RecordReads, _OrElse(self._guarded, self))

    async def _probe_replica(self, deadline_s: float) -> object:
        return await self._found.last_position(deadline_s)


class _OrElse:
    """Calls `first` until that is unavailable, from then on `second`."""

    def __init__(self, first: Any, second: Any):
        self._first = first
        self._second = second
        self._is_lost = False

    def __getattr__(self, name: str) -> Any:
        first, second = getattr(self._first, name), getattr(self._second, name)

        async def call(*arguments: Any, **named: Any) -> Any:
            if not self._is_lost:
                try:
                    return await first(*arguments, **named)
                except BackendUnavailable:
                    self._is_lost = True
            return await second(*arguments, **named)

        return call


def deadline_position(port: type[Any], name: str) -> int | None:
    """Where a method's deadline stands among its positional arguments; None: it has none, or is none of the port's."""
    method = getattr(port, name, None)
    if not inspect.iscoroutinefunction(method):
        return None
    names = [*inspect.signature(method).parameters][1:]
    return names.index("deadline_s") if "deadline_s" in names else None


def _through(lane: Lane, method: Method, position: int) -> Method:
    async def call(*arguments: Any, **named: Any) -> Any:
        if len(arguments) <= position:
            asked_s = named.pop("deadline_s")
            return await lane.run(asked_s, lambda until_s: method(*arguments, deadline_s=until_s, **named))
        before, after = arguments[:position], arguments[position + 1 :]
        return await lane.run(arguments[position], lambda until_s: method(*before, until_s, *after, **named))

    return call


def _in_time(method: Method, position: int, backend: str) -> Method:
    """The method, given up when it has not ended by its own deadline."""

    async def call(*arguments: Any, **named: Any) -> Any:
        deadline_s = arguments[position] if len(arguments) > position else named["deadline_s"]
        try:
            async with asyncio.timeout_at(deadline_s + GRACE_S):
                return await method(*arguments, **named)
        except TimeoutError:
            raise BackendUnavailable(backend, "does not answer in time") from None

    return call
