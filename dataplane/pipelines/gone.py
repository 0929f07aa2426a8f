"""Removes the beacons of data planes that are gone.

Each data plane that runs says so every STAMP_S by a marker with the record store's time. One that did not for GONE_S is
taken for gone: its beacons go from the indexes that this data plane follows, and what these acknowledged to it from the
record store. Its own last beacon stays there, a few bytes, or one that comes back after all with its folder would know
of a past that the record store lacks, and say that it was restored. It begins anew in the indexes.

Nothing is removed before this process was heard itself for STAMP_S in the present era: a record store that was restored
has old times, and everybody who runs has renewed his by then.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence

from dataplane.pipelines.index_care import IndexCare
from dataplane.pipelines.lineage import BEACON
from dataplane.ports import RecordStore

log = logging.getLogger("memplane.beacons")

HEARD = "heard:"
STAMP_S = 3_600.0
GONE_S = 30 * 86_400.0
MOST = 20
"""Data planes removed by one look. Unmeasured, as the times above."""


class GonePlanes:
    """Says that this data plane runs, and removes what is left of others that do not."""

    def __init__(self, store: RecordStore, cares: Sequence[IndexCare], node: str, deadline: Callable[[], float]):
        self._store = store
        self._cares = tuple(cares)
        self._node = node
        self._deadline = deadline
        self._next_at_s = 0.0
        self._era = -1

    async def look(self, era: int) -> None:
        """Stamps and removes when it is time. Raises BackendUnavailable."""
        now_s = asyncio.get_running_loop().time()
        if era == self._era and now_s < self._next_at_s:
            return
        await self._store.stamp_marker(f"{HEARD}{self._node}", self._deadline())
        was_heard, self._era, self._next_at_s = era == self._era, era, now_s + STAMP_S
        if was_heard:
            await self._watch_unknown()
            for marker in await self._store.stale_markers(HEARD, GONE_S, MOST, self._deadline()):
                await self._remove(marker.removeprefix(HEARD))

    async def _watch_unknown(self) -> None:
        """From now on those count whose beacons lie in an index and who never said that they run."""
        names = {name for care in self._cares for name in care.heard or {}} - {self._node}
        for name in sorted(names):
            if not await self._store.marker(f"{HEARD}{name}", self._deadline()):
                await self._store.stamp_marker(f"{HEARD}{name}", self._deadline())

    async def _remove(self, name: str) -> None:
        """Removes what a data plane left, or, where an index does not answer, leaves it for another time."""
        if name == self._node or any(care.heard is None for care in self._cares):
            return
        for care in self._cares:
            await care.index.index.save_beacon(name, 0, self._deadline())
        kept = [f"{BEACON}{name}:{care.index.name}" for care in self._cares]
        await self._store.drop_markers([*kept, f"{HEARD}{name}"], self._deadline())
        log.info("data plane %s was not heard of for %d days: its beacons are removed", name, GONE_S / 86_400)
