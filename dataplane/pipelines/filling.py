"""How an index gets what the record store held before it began to follow the outbox.

An index in this process's folder is *levelled*: compared with the store by version, and repaired. An index on a server
is *filled*: everything goes through its outbox, so that all processes share the work. A marker in the store tells how
far filling is, so that another process goes on where one was killed.
"""

import logging
from collections.abc import Sequence

from dataplane.changes import OutboxRow
from dataplane.model import Held, IndexKey
from dataplane.pipelines.projection import Applier, DeadlineS, Projection
from dataplane.ports import RecordStore

log = logging.getLogger("memplane.project")

DONE = -1
"""The marker of an index that was filled; 0: nothing was enqueued yet; else how far, see `_time_in`."""
_PREFIX = "mem_"


class Levelling:
    """Brings an index to the record store: adds and renews what is missing or old, removes what is not there."""

    def __init__(self, store: RecordStore, projection: Projection, page_size: int, deadline_s: DeadlineS):
        self._store = store
        self._projection = projection
        self._page_size = page_size
        self._deadline_s = deadline_s
        self._applier = Applier(store, projection, deadline_s)

    async def run(self) -> bool:
        """Whether there was anything to do. Raises BackendUnavailable."""
        index, model = self._projection.index, self._projection.model
        known = await index.versions(self._deadline_s())
        after_id, repaired = "", 0
        while rows := await self._store.scan(after_id, self._page_size, self._deadline_s(), model):
            held = {row.memory_id: known.pop(row.memory_id, None) for row in rows}
            due = [row for row in rows if not _is_current(row, held[row.memory_id])]
            failed = await self._applier.apply(due) if due else {}
            await self._enqueue(rows, after_id, failed)
            after_id = rows[-1].memory_id
            repaired += len(due)
        if known:
            keys = [IndexKey(memory_id, held.namespace) for memory_id, held in known.items()]
            await index.delete(keys, self._deadline_s())
        if repaired or known:
            log.info("%s levelled: %d entries renewed, %d removed", self._projection.name, repaired, len(known))
        return bool(repaired or known)

    async def _enqueue(self, rows: Sequence[OutboxRow], after_id: str, failed: dict[str, str]) -> None:
        """Leaves what could not be applied to the outbox, where it is tried again, counted and visible."""
        before = after_id
        for row in rows:
            if row.memory_id in failed:
                await self._store.enqueue_all(self._projection.target, before, 1, self._deadline_s())
            before = row.memory_id


class Filling:
    """Puts every memory into the outbox of an index that is new, by one process at a time as a rule.

    Two at once do no harm: a memory is enqueued twice at most.
    """

    def __init__(self, store: RecordStore, target: str, page_size: int, deadline_s: DeadlineS):
        self.is_done = False
        self._store = store
        self._target = target
        self._marker = f"{target}.filled"
        self._page_size = page_size
        self._deadline_s = deadline_s
        self._seen: int | None = None

    async def prepare(self) -> None:
        """Before the index is registered: what an index of this name left behind counts no more."""
        registered = [item.index for item in await self._store.progress(self._deadline_s())]
        if self._target not in registered:
            await self._store.save_marker(self._marker, 0, self._deadline_s())

    async def is_mine(self, *, is_new: bool) -> bool:
        """Whether this process has to go on with it: it registered the index, or nobody got on since it looked last."""
        value = await self._store.marker(self._marker, self._deadline_s())
        stands, self._seen = value == self._seen, value
        self.is_done = value == DONE
        return not self.is_done and (is_new or stands)

    async def run(self) -> None:
        """Enqueues what is missing. Raises BackendUnavailable; then it can be run again."""
        started = await self._store.marker(self._marker, self._deadline_s())
        after_id = f"{_PREFIX}{started:012x}" if started > 0 else ""
        while ids := await self._store.enqueue_all(self._target, after_id, self._page_size, self._deadline_s()):
            after_id = ids[-1]
            await self._store.save_marker(self._marker, _time_in(after_id), self._deadline_s())
        await self._store.save_marker(self._marker, DONE, self._deadline_s())
        self.is_done = True


def _is_current(row: OutboxRow, held: Held | None) -> bool:
    return held is not None and row.memory is not None and held.version == row.memory.version


def _time_in(memory_id: str) -> int:
    """The milliseconds with which an id begins: all ids up to that time were enqueued. 0 for an id without them."""
    try:
        return int(memory_id.removeprefix(_PREFIX)[:12], 16)
    except ValueError:
        return 0
