"""When an index is purged of what was erased for good, and how that survives a restart.

The record store remembers it: the marker of an index is the outbox position of an erasure that awaits the purge, 0 when
none does. It is saved before the erasure's outbox row is settled and set back after the purge, unless another process
noted one meanwhile; so that a killed process purges once more rather than never. A purge that had to be asked for again
counts for what was erased before it was first asked for: when more came since, another one follows.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from dataplane.changes import OutboxRow
from dataplane.errors import BackendUnavailable, NotYet
from dataplane.ports import Index, RecordStore

log = logging.getLogger("memplane.purge")


@dataclass(frozen=True, slots=True)
class PurgeOptions:
    """Seconds from the first erasure to the purge, that it lets the outbox go first, to a next try, and of a purge.

    The delay lets many erasures share a purge, and so does the rest after one: `rest_ratio` times as long as it took,
    for who forgets all the time would have the index copied all the time. `again_s` is to a next try of one that came
    too early (NotYet), `retry_s` of one that failed, `turn_s` to a next look whether another index's purge is over.
    Unmeasured.
    """

    delay_s: float = 5.0
    rest_ratio: float = 9.0
    patience_s: float = 60.0
    again_s: float = 10.0
    turn_s: float = 0.5
    retry_s: float = 60.0
    timeout_s: float = 600.0


def marker_of(target: str) -> str:
    """The name of an index's marker; `target` is the index's name in the outbox."""
    return f"{target}.purge"


class Purge:
    """The purge of one index: due after an erasure, until it is done."""

    def __init__(
        self, store: RecordStore, target: str, index: Index, options: PurgeOptions, turn: asyncio.Lock | None = None
    ):
        """`turn` is held while the index is purged: of the indexes that share one, one is purged at a time."""
        self._store = store
        self._target = target
        self._marker = marker_of(target)
        self._index = index
        self._options = options
        self._turn = turn or asyncio.Lock()
        self._at_s: float | None = None
        self._rested_at_s = 0.0
        self._asked = 0  # the marker when the index was first asked for the purge that it has not finished
        self._said = ""

    @property
    def is_due(self) -> bool:
        """Whether files of the index may still hold what was erased for good."""
        return self._at_s is not None

    @property
    def wait_s(self) -> float | None:
        """Seconds until it is time, or until a next look whether it is; None when nothing is due."""
        if self._at_s is None:
            return None
        return max(self._options.turn_s if self._turn.locked() else 0.0, self._at_s - _now_s())

    async def load(self, deadline_s: float) -> None:
        """Learns what another process left to be purged, or is about to."""
        if not self.is_due and await self._store.marker(self._marker, deadline_s):
            self._at_s = self._next_s()

    async def note(self, rows: Sequence[OutboxRow], deadline_s: float) -> None:
        """Looks for erasures among rows that the index has just followed."""
        gone = {row.memory_id: row.position for row in rows if row.memory is None}
        erased = await self._store.tombstones(list(gone), deadline_s) if gone else set()
        if not erased:
            return
        newest = max(gone[memory_id] for memory_id in erased)
        await self._store.save_marker(self._marker, newest, deadline_s)
        if not self.is_due:
            self._at_s = self._next_s()

    async def run_when_due(self, *, drained: bool) -> None:
        """Purges when it is time; a hindrance is logged once, and it is tried again. The index must not be written to.

        Before the outbox is `drained` it has patience, but not for ever: writes may never cease.
        """
        started_s = _now_s()
        patience_s = 0.0 if drained or self._asked else self._options.patience_s
        if self._at_s is None or started_s < self._at_s + patience_s:
            return
        if self._turn.locked():  # not waited for: the index follows the outbox meanwhile
            return
        self._at_s = started_s + self._options.retry_s
        try:
            async with self._turn:
                is_done = await self._run(started_s + self._options.timeout_s)
        except BackendUnavailable as error:
            self._postpone(error, started_s)
            return
        self._rested_at_s = _now_s() + self._options.rest_ratio * (_now_s() - started_s)
        self._at_s = None if is_done else self._next_s()
        self._said = ""

    def _next_s(self) -> float:
        return max(self._rested_at_s, _now_s() + self._options.delay_s)

    async def _run(self, deadline_s: float) -> bool:
        """Whether nothing is left to be purged."""
        started_s = _now_s()
        noted = await self._store.marker(self._marker, deadline_s)
        if not noted:  # another process was faster; what the index was asked for still counts for then alone
            return True
        self._asked = self._asked or noted
        await self._index.purge(deadline_s)
        covered, self._asked = self._asked, 0
        log.info("%s purged of erased data in %.1f s", self._target, _now_s() - started_s)
        if await self._store.marker(self._marker, deadline_s) != covered:
            return False
        await self._store.save_marker(self._marker, 0, deadline_s)
        return True

    def _postpone(self, error: BackendUnavailable, started_s: float) -> None:
        is_early = isinstance(error, NotYet)
        wait_s = self._options.again_s if is_early else self._options.retry_s
        self._at_s = started_s + wait_s
        if str(error) != self._said:
            self._said = str(error)
            level = logging.INFO if is_early else logging.WARNING
            log.log(level, "%s not purged of erased data yet, tried again every %g s: %s", self._target, wait_s, error)


def _now_s() -> float:
    return asyncio.get_running_loop().time()
