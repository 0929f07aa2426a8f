"""A record store whose accesses gather elsewhere first, so that a hot memory is changed once every few seconds."""

import asyncio
import logging
from collections.abc import Sequence
from typing import Any, Protocol, cast

from dataplane.changes import AccessRecord
from dataplane.ending import end
from dataplane.errors import BackendUnavailable
from dataplane.ports import RecordStore

log = logging.getLogger("memplane.counters")


class AccessCounters(Protocol):
    """Where the accesses of all data planes gather. An access is counted at least once."""

    async def add(self, accesses: Sequence[AccessRecord]) -> None:
        """Takes accesses; raises BackendUnavailable, also when it has too many."""
        ...

    async def flush(self, store: RecordStore) -> int:
        """Writes to the store what has gathered, unless another does just now; how many rows that changed.

        Raises BackendUnavailable; what was not written then is written by a later flush.
        """
        ...

    async def close(self) -> None:
        """Lets go. Idempotent."""
        ...


class CountedRecords:
    """Counts by way of the counters, and in the store itself when these cannot take them.

    `start` begins to flush every `interval_s`; `stop` flushes a last time and closes the counters.
    """

    def __init__(self, inner: RecordStore, counters: AccessCounters, interval_s: float = 5.0):
        self._inner = inner
        self._counters = counters
        self._interval_s = interval_s
        self._task: asyncio.Task[None] | None = None

    @property
    def records(self) -> RecordStore:
        """The record store whose accesses are counted so."""
        return cast(RecordStore, self)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        setattr(self, name, found)
        return found

    async def record_accesses(self, accesses: Sequence[AccessRecord], deadline_s: float) -> None:
        """See the port; the counts reach the rows within seconds."""
        try:
            await self._counters.add(accesses)
        except BackendUnavailable:
            await self._inner.record_accesses(accesses, deadline_s)

    def start(self) -> None:
        """Begins to flush."""
        self._task = asyncio.create_task(self._run(), name="access-counters")

    async def stop(self) -> None:
        """Flushes a last time. Idempotent."""
        if self._task is not None:
            await end(self._task)
            self._task = None
            await self._flush()
        await self._counters.close()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._interval_s)
            await self._flush()

    async def _flush(self) -> None:
        try:
            await self._counters.flush(self._inner)
        except BackendUnavailable as error:
            log.debug("access counts wait: %s", error)
