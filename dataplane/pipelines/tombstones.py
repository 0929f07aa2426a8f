"""Which memories are forgotten, as far as the cache can be relied on for it: for answers without the record store.

`pipelines.vouching` has the argument why a cache that is vouched for misses none. What is read from it counts only when
nothing was lost before the reading ended, so: the continuity, then whether somebody vouched, then the tombstones, then
the continuity again. The same continuity at both ends says that nothing was lost in between, and that who vouched did
so before the tombstones were read.
"""

from collections.abc import Sequence

from dataplane.errors import BackendUnavailable
from dataplane.ports import Cache


class Tombstones:
    """What the cache knows of the forgotten."""

    def __init__(self, cache: Cache):
        self._cache = cache

    async def relied_on(self, deadline_s: float) -> str:
        """The continuity that somebody vouched for; raises BackendUnavailable when nobody did."""
        continuity = await self._cache.continuity(deadline_s)
        if not continuity or not await self._cache.is_vouched(deadline_s):
            raise BackendUnavailable("cache", "tombstones may be missing from it")
        return continuity

    async def among(self, memory_ids: Sequence[str], continuity: str, deadline_s: float) -> set[str]:
        """Those of the ids that are forgotten; raises BackendUnavailable when that continuity has ended."""
        buried = await self._cache.buried(memory_ids, deadline_s)
        if await self._cache.continuity(deadline_s) != continuity:
            raise BackendUnavailable("cache", "tombstones were lost while they were read")
        return buried
