"""When an index is purged of what was erased for good, and how that survives a restart.

The record store remembers it: the marker of an index is the outbox position of an erasure that awaits the purge, 0 when
none does. It is saved before the erasure's outbox row is settled and set back after the purge, unless another process
noted one meanwhile; so that a killed process purges once more rather than never.
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


def marker_of(target: str) -> str:
    """The name of an index's marker; `target` is the index's name in the outbox."""
    return f"{target}.purge"


class Purge:
    """The purge of one index: due after an erasure, until it is done."""

    def __init__(self, store: RecordStore, target: str, index: Index, options: PurgeOptions):
        self._store = store
        self._target = target
        self._marker = marker_of(target)
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
        """Learns what another process left to be purged, or is about to."""
        if not self.is_due and await self._store.marker(self._marker, deadline_s):
            self._at_s = _now_s() + self._options.delay_s

    async def note(self, rows: Sequence[OutboxRow], deadline_s: float) -> None:
        """Looks for erasures among rows that the index has just followed."""
        gone = {row.memory_id: row.position for row in rows if row.memory is None}
        erased = await self._store.tombstones(list(gone), deadline_s) if gone else set()
        if not erased:
            return
        newest = max(gone[memory_id] for memory_id in erased)
        await self._store.save_marker(self._marker, newest, deadline_s)
        if not self.is_due:
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
            noted = await self._store.marker(self._marker, deadline_s)
            if not noted:  # another process was faster
                self._at_s = None
                return
            await self._index.purge(deadline_s)
            if await self._store.marker(self._marker, deadline_s) == noted:
                await self._store.save_marker(self._marker, 0, deadline_s)
        except BackendUnavailable as error:
            log.warning(
                "%s not purged of erased data, next try in %g s: %s", self._target, self._options.retry_s, error
            )
            return
        self._at_s = None
        log.info("%s purged of erased data in %.1f s", self._target, _now_s() - started_s)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
