"""What a search leaves behind, written after its answer: access counts with raised strength, and the retrieval log."""

import asyncio
import logging

from dataplane.changes import AccessRecord, RetrievalRecord
from dataplane.ending import end
from dataplane.logic.accesses import merged
from dataplane.ports import RecordStore

log = logging.getLogger("memplane.record")

MAX_WAITING = 20_000
"""Records kept while the record store is slow; the oldest go first, and are counted in `dropped`. Unmeasured."""

PAUSE_AFTER_FAILURE_S = 2.0
"""How long a store that could not take records is left alone. Unmeasured."""


class Recorder:
    """Collects records and writes them in batches, every `interval_s`."""

    def __init__(self, store: RecordStore, interval_s: float = 0.2, timeout_s: float = 10.0):
        self.dropped = 0
        self.failed = 0
        self._problem = ""
        self._store = store
        self._interval_s = interval_s
        self._timeout_s = timeout_s
        self._accesses: list[AccessRecord] = []
        self._retrievals: list[RetrievalRecord] = []
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to write what is noted."""
        self._task = asyncio.create_task(self._run(), name="recorder")

    async def stop(self) -> None:
        """Writes what is left and stops."""
        if self._task is not None:
            await end(self._task)
            await self.flush()

    def note(self, retrieval: RetrievalRecord, accesses: list[AccessRecord]) -> None:
        """Takes the records of one search; never waits."""
        self._retrievals.append(retrieval)
        self._accesses.extend(accesses)
        self.dropped += _cut(self._retrievals) + _cut(self._accesses)

    async def flush(self) -> None:
        """Writes everything noted so far; what cannot be written stays for the next time."""
        accesses, retrievals = self._accesses, self._retrievals
        self._accesses, self._retrievals = [], []
        deadline_s = asyncio.get_running_loop().time() + self._timeout_s
        try:
            if accesses:
                await self._store.record_accesses(merged(accesses), deadline_s)
                accesses = []
            if retrievals:
                await self._store.record_retrievals(retrievals, deadline_s)
                retrievals = []
            self._problem = ""
        except Exception as error:  # noqa: BLE001 - a search must not fail for its log: kept, counted, tried again
            self.failed += 1
            if repr(error) != self._problem:
                log.warning("records wait: %r", error)
            self._problem = repr(error)
            self._accesses[:0] = accesses
            self._retrievals[:0] = retrievals

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(PAUSE_AFTER_FAILURE_S if self._problem else self._interval_s)
            await self.flush()


def _cut(records: list[AccessRecord] | list[RetrievalRecord]) -> int:
    surplus = max(0, len(records) - MAX_WAITING)
    if surplus:
        del records[:surplus]
    return surplus
