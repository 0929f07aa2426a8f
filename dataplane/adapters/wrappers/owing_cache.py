"""A cache that owes what it could not be told: drops and tombstones reach it as soon as it answers again.

A write must not fail because the cache is down, and must not be forgotten by it either. So here `drop`, `bury` and
`unbury` do not fail: what the cache could not take is kept and tried again in the background until it has taken it.
Until then this process does not trust cached answers of the namespaces owed: their `stamp` is BackendUnavailable.
Other processes that do reach the cache may answer from it meanwhile, until what they find expires; who forgets is told
by `owes`.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from dataplane.ending import end
from dataplane.errors import BackendUnavailable
from dataplane.model import Scope
from dataplane.ports import Cache, Examination

log = logging.getLogger("memplane.cache")

MAX_OWED = 100_000
"""Namespaces, and memory ids, that are owed at most; beyond it the oldest are let go to expire. Unmeasured."""

PAGE = 500
"""How many are told at once."""


@dataclass
class _Drop:
    """Namespaces that will be dropped by one call; the first who asked leads it."""

    namespaces: set[str] = field(default_factory=set)
    is_led: bool = False
    over: asyncio.Event = field(default_factory=asyncio.Event)


class OwingCache:
    """A `ports.Cache` over another one. `start` begins to pay in the background; `close` tries a last time."""

    def __init__(self, cache: Cache, interval_s: float = 0.5, timeout_s: float = 1.0):
        self._cache = cache
        self._interval_s = interval_s
        self._timeout_s = timeout_s
        self._namespaces: dict[str, int] = {}
        self._tombstones: dict[str, bool] = {}
        self._times_owed = 0
        self._next_drop = _Drop()
        self._drops_in_turn = asyncio.Lock()
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to pay what is owed."""
        self._task = asyncio.create_task(self._run(), name="cache-debts")

    def owes(self, namespaces: Iterable[str], memory_ids: Iterable[str] = ()) -> bool:
        """Whether others may still find in the cache, or not find buried there, what was changed here.

        That is: cached answers of one of the namespaces, or tombstones of some of the memories.
        """
        return not (self._namespaces.keys().isdisjoint(namespaces) and self._tombstones.keys().isdisjoint(memory_ids))

    def owe(self, namespaces: Iterable[str]) -> None:
        """Takes it that these must be dropped (again), soon; until then they are not trusted here."""
        self._times_owed += 1
        for namespace in namespaces:
            self._namespaces.pop(namespace, None)
            self._namespaces[namespace] = self._times_owed
        _cut(self._namespaces)

    async def get(self, scope: Scope, keys: Sequence[str], deadline_s: float) -> list[bytes | None]:
        """See the port."""
        return await self._cache.get(scope, keys, deadline_s)

    async def put(self, scope: Scope, values: Mapping[str, bytes], ttl_s: float, deadline_s: float) -> None:
        """See the port."""
        await self._cache.put(scope, values, ttl_s, deadline_s)

    async def stamp(self, scope: Scope, deadline_s: float) -> str:
        """See the port. Raises BackendUnavailable also while a drop is owed in the scope."""
        stamp = await self._cache.stamp(scope, deadline_s)
        if self._namespaces and (scope.system or self.owes((*scope.namespaces, *scope.shared))):
            raise BackendUnavailable("cache", "has not heard of the last changes yet")
        return stamp

    async def drop(self, namespaces: Sequence[str], deadline_s: float) -> None:
        """See the port. Does not fail: what cannot be dropped now is owed.

        Those that come while one is under way go together in the next, which begins after all of them were asked for.
        A drop may take `timeout_s`, however little is left to the caller.
        """
        together = self._next_drop
        together.namespaces.update(namespaces)
        if together.is_led:
            await together.over.wait()
            return
        together.is_led = True
        try:
            async with self._drops_in_turn:
                self._next_drop = _Drop()
                await self._cache.drop(sorted(together.namespaces), max(deadline_s, self._deadline_s()))
        except BaseException as error:
            self.owe(together.namespaces)
            if not isinstance(error, BackendUnavailable):
                raise
        finally:
            if self._next_drop is together:
                self._next_drop = _Drop()
            together.over.set()

    async def bury(self, memory_ids: Sequence[str], deadline_s: float) -> None:
        """See the port. Does not fail: what cannot be buried now is owed."""
        self._decided(memory_ids, (False,))
        try:
            await self._cache.bury(memory_ids, deadline_s)
        except BackendUnavailable:
            self._owe_tombstones(dict.fromkeys(memory_ids, True))
        else:
            self._decided(memory_ids, (True,))

    async def unbury(self, memory_ids: Sequence[str], deadline_s: float) -> None:
        """See the port. Does not fail: what cannot be unburied now is owed."""
        self._decided(memory_ids, (True, False))
        try:
            await self._cache.unbury(memory_ids, deadline_s)
        except BackendUnavailable:
            self._owe_tombstones(dict.fromkeys(memory_ids, False))

    async def buried(self, memory_ids: Sequence[str], deadline_s: float) -> set[str]:
        """See the port. What is owed counts as done."""
        known = {memory_id for memory_id in memory_ids if self._tombstones.get(memory_id)}
        found = await self._cache.buried(memory_ids, deadline_s)
        return known | {memory_id for memory_id in found if self._tombstones.get(memory_id) is not False}

    async def continuity(self, deadline_s: float) -> str:
        """See the port."""
        return await self._cache.continuity(deadline_s)

    async def vouch(self, continuity: str, deadline_s: float) -> None:
        """See the port. Nothing happens while tombstones are owed: these are missing there."""
        if not any(self._tombstones.values()):
            await self._cache.vouch(continuity, deadline_s)

    async def is_vouched(self, deadline_s: float) -> bool:
        """See the port. Not while tombstones are owed."""
        return await self._cache.is_vouched(deadline_s) and not any(self._tombstones.values())

    async def examine(self, deadline_s: float) -> Examination:
        """See the port."""
        return await self._cache.examine(deadline_s)

    async def pay(self) -> None:
        """Tells the cache what is owed, tombstones first; raises BackendUnavailable when it does not take it."""
        for memory_ids, is_buried in _pages(self._tombstones):
            tell = self._cache.bury if is_buried else self._cache.unbury
            await tell(memory_ids, self._deadline_s())
            for memory_id in memory_ids:
                if self._tombstones.get(memory_id) is is_buried:
                    del self._tombstones[memory_id]
        while self._namespaces:
            told = dict(list(self._namespaces.items())[:PAGE])
            await self._cache.drop(list(told), self._deadline_s())
            for namespace, time_owed in told.items():
                if self._namespaces.get(namespace) == time_owed:
                    del self._namespaces[namespace]

    async def close(self) -> None:
        """See the port."""
        if self._task is not None:
            await end(self._task)
            self._task = None
            try:
                await self.pay()
            except BackendUnavailable as error:
                log.warning("the cache did not hear of changes in %d namespaces: %s", len(self._namespaces), error)
        await self._cache.close()

    async def _run(self) -> None:
        while True:
            await asyncio.sleep(self._interval_s)
            try:
                await self.pay()
            except BackendUnavailable as error:
                log.debug("the cache is owed %d namespaces: %s", len(self._namespaces), error)
            except Exception:  # the loop must live on: what is owed is not relied on here until it was told
                log.exception("the cache could not be told what it is owed")

    def _deadline_s(self) -> float:
        return asyncio.get_running_loop().time() + self._timeout_s

    def _decided(self, memory_ids: Iterable[str], owed: Sequence[bool]) -> None:
        """What was owed of these so far, to bury (True) or to unbury (False), counts no more."""
        if self._tombstones:
            for memory_id in memory_ids:
                if self._tombstones.get(memory_id) in owed:
                    del self._tombstones[memory_id]

    def _owe_tombstones(self, decided: Mapping[str, bool]) -> None:
        self._tombstones.update(decided)
        _cut(self._tombstones)


def _pages(tombstones: Mapping[str, bool]) -> list[tuple[list[str], bool]]:
    """Ids to bury and ids to unbury, in pages."""
    pages = []
    for is_buried in (True, False):
        ids = [memory_id for memory_id, wanted in tombstones.items() if wanted is is_buried]
        pages += [(ids[start : start + PAGE], is_buried) for start in range(0, len(ids), PAGE)]
    return pages


def _cut(owed: dict[str, int] | dict[str, bool]) -> None:
    while len(owed) > MAX_OWED:
        del owed[next(iter(owed))]
