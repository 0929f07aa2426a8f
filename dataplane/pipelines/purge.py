"""When an index is purged of what was erased for good, and how that survives a restart.

The record store remembers it: the watermark "<index>.purge" is the outbox position of the first erasure that awaits the
purge, 0 when none does. It is saved before the index's own watermark passes the erasure and set back after the purge,
so that a killed process purges once more rather than never.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from dataplane.changes import OutboxRow
from dataplane.errors import BackendUnavailable
from dataplane.ports import Index, RecordStore

log = logging.getLogger("memplane.purge")


@dataclass(frozen=True, slots=True)
class PurgeOptions:
    """Seconds from the first erasure to the purge, that it lets the outbox go first, to a next try, and of a purge.

    The delay lets many erasures share a purge. Unmeasured.
    """

    delay_s: float = 5.0
    patience_s: float = 60.0
    retry_s: float = 60.0
    timeout_s: float = 600.0


class Purge:
    """The purge of one index: due after an erasure, until it is done."""

    def __init__(self, store: RecordStore, name: str, index: Index, options: PurgeOptions):
        self._store = store
        self._name = name
        self._marker = f"{name}.purge"
        self._index = index
        self._options = options
        self._at_s: float | None = None

    @property
    def is_due(self) -> bool:
        """Whether files of the index may still hold what was erased for good."""
        return self._at_s is not None

    @property
    def wait_s(self) -> float | None:
        """Seconds until it is time; None when nothing is due."""
        return None if self._at_s is None else max(0.0, self._at_s - _now_s())

    async def load(self, deadline_s: float) -> None:
        """Learns what an earlier process left to be purged."""
        if await self._store.watermark(self._marker, deadline_s):
            self._at_s = _now_s() + self._options.delay_s

    async def note(self, rows: Sequence[OutboxRow], deadline_s: float) -> None:
        """Looks for erasures among rows that the index has just followed."""
        gone = {row.memory_id: row.position for row in rows if row.memory is None}
        if self.is_due or not gone:
            return
        erased = await self._store.tombstones(list(gone), deadline_s)
        if erased:
            first = min(gone[memory_id] for memory_id in erased)
            await self._store.save_watermark(self._marker, first, deadline_s)
            self._at_s = _now_s() + self._options.delay_s

    async def run_when_due(self, *, drained: bool) -> None:
        """Purges when it is time; a failed one is logged and tried again later. The index must not be written to.

        Before the outbox is `drained` it has patience, but not for ever: writes may never cease.
        """
        started_s = _now_s()
        if self._at_s is None or started_s < self._at_s + (0.0 if drained else self._options.patience_s):
            return
        self._at_s = started_s + self._options.retry_s
        deadline_s = started_s + self._options.timeout_s
        try:
            await self._index.purge(deadline_s)
            await self._store.save_watermark(self._marker, 0, deadline_s)
        except BackendUnavailable as error:
            log.warning("%s not purged of erased data, next try in %g s: %s", self._name, self._options.retry_s, error)
            return
        self._at_s = None
        log.info("%s purged of erased data in %.1f s", self._name, _now_s() - started_s)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
