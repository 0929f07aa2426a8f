"""Which memories stand again, after the record store was restored, though they were forgotten since the backup.

The record store does not know of it any more; the tombstones in the cache do, for 30 days. They are told to the
operator and not acted upon: a forget that failed half-way leaves a tombstone, too.
"""

import asyncio
import logging
from collections.abc import Callable

from dataplane.ending import end
from dataplane.errors import BackendUnavailable
from dataplane.model import IndexKey
from dataplane.ports import Cache, RecordStore

log = logging.getLogger("memplane.beacons")

PAGE_SIZE = 500
MAX_TOLD = 1_000
"""How many are looked at at once, and how many named in the log. Unmeasured."""


class Returned:
    """Looks for them in the background; `count` is how many were found."""

    def __init__(self, store: RecordStore, cache: Cache, deadline: Callable[[], float]):
        self.count = 0
        self._store = store
        self._cache = cache
        self._deadline = deadline
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to look, unless it does already."""
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="returned-memories")

    async def stop(self) -> None:
        """Ends it."""
        if self._task is not None:
            await end(self._task)

    async def _run(self) -> None:
        try:
            await self.look()
        except BackendUnavailable as error:
            log.warning("whether forgotten memories came back with the backup is not known: %s", error)

    async def look(self) -> None:
        """Goes through all memories once; raises BackendUnavailable."""
        after_id, count, found = "", 0, list[IndexKey]()
        while rows := await self._store.scan(after_id, PAGE_SIZE, self._deadline(), ""):
            after_id = rows[-1].memory_id
            buried = await self._cache.buried([row.memory_id for row in rows], self._deadline())
            count += len(buried)
            found += [IndexKey(row.memory_id, row.namespace) for row in rows if row.memory_id in buried]
            del found[MAX_TOLD:]
            await asyncio.sleep(0)
        self.count = count
        for key in found:
            log.error("forgotten since the backup, stands again: memplane forget %s %s", key.namespace, key.memory_id)
