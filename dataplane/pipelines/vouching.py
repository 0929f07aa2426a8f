"""Sees to it that the cache has a tombstone of every memory that is forgotten and may still be in an index.

Searches without the record store rely on that (`pipelines.without_records`): they take rows from the indexes and leave
out what has a tombstone. Whoever reaches both the record store and the cache looks every few seconds. When nobody has
vouched for the cache since it may have lost something, it reads the continuity of the cache, buries all removals that
an index has not applied, and vouches for that continuity.

Why nothing forgotten comes back. Let a forget be acknowledged, a vouch for continuity C hold, and the tombstones be
read under C. A forget buries, commits, buries again and is acknowledged (`adapters.wrappers.cached_records`).

* It buried under C, before or after its commit: the tombstone is there, for nothing was lost since.
* It did not. The second burying was before C began, so the commit was, too, and the removals were listed after C was
  read: the listing had it, and it was buried, or every index had applied it durably and no longer has the memory. A
  row of the outbox goes only once the index has flushed what it says, so an index that is killed does not unlearn it.
  (With one burying, before the commit, it could be lost, and the listing could miss a removal not yet committed.)
* The data plane that forgot could not reach the cache: it keeps the tombstone until the cache has taken it, relies on
  nothing meanwhile, and its forget names `cache` in `pending_backends`. If it dies first, the tombstone is still made:
  all removals not applied are buried again every RENEW_S, by whoever reaches both. This also renews the tombstones of
  what an index has not applied for longer than tombstones are kept.
* An index is set back to an older state and holds again what it had removed: tombstones are kept for 30 days, and an
  index that was set back is not relied on (`Projectors.unlevel`) until it was compared with the record store.
* A tombstone is taken away only when a memory stands again, and put back unless it is seen to stand after that.

A cache of this process alone, beside a record store that others use, too, hears nothing of what these forget: nobody
vouches for it.
"""

import asyncio
import logging

from dataplane.ending import end
from dataplane.errors import BackendUnavailable
from dataplane.ports import Cache, Problem, RecordStore

log = logging.getLogger("memplane.vouching")

INTERVAL_S = 2.0
RENEW_S = 30.0
"""How often it is looked, and how often all removals that were not applied are buried anew. Unmeasured."""

TELL_AFTER_S = 30.0
"""For how long nobody may have vouched, though both answer, before it is told. Unmeasured."""
NOT_VOUCHED = Problem(
    "TOMBSTONES_NOT_VOUCHED",
    "nobody can vouch that no tombstone is missing from the cache, so searches are refused while the record store is "
    "down; a Redis must let its user run INFO, which tells of its restarts",
)

PAGE_SIZE = 500
STEP_TIMEOUT_S = 5.0
"""Removals listed and buried at once, and how long that may take. On SQLite a million of them take 2.4 s in all, hold
the event loop for 15 ms at most and need 34 MB (2026-11)."""


class Vouching:
    """Vouches for the cache, in the background, from `start` to `stop`.

    `problems`, one dict throughout, says under `cache` when that has been in vain for TELL_AFTER_S, both answering.
    """

    def __init__(self, store: RecordStore, cache: Cache, interval_s: float = INTERVAL_S, renew_s: float = RENEW_S):
        self.problems: dict[str, tuple[Problem, ...]] = {}
        self._store = store
        self._cache = cache
        self._interval_s = interval_s
        self._renew_s = renew_s
        self._renew_at_s = 0.0
        self._in_vain_since_s: float | None = None
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Begins to look."""
        self._task = asyncio.create_task(self._run(), name="vouching")

    async def stop(self) -> None:
        """Ends it."""
        if self._task is not None:
            await end(self._task)

    async def look(self) -> None:
        """Looks once. Raises BackendUnavailable when the record store or the cache does not answer."""
        now_s = asyncio.get_running_loop().time()
        if now_s < self._renew_at_s and await self._cache.is_vouched(_deadline_s()):
            self._note(now_s, is_vouched=True)
            return
        continuity = await self._cache.continuity(_deadline_s())
        await self._bury_all()
        await self._cache.vouch(continuity, _deadline_s())
        self._renew_at_s = now_s + self._renew_s
        self._note(now_s, is_vouched=await self._cache.is_vouched(_deadline_s()))

    def _note(self, now_s: float, *, is_vouched: bool) -> None:
        """Tells when vouching has been in vain for long."""
        if is_vouched:
            self._in_vain_since_s = None
            self.problems.clear()
            return
        self._in_vain_since_s = now_s if self._in_vain_since_s is None else self._in_vain_since_s
        if now_s - self._in_vain_since_s >= TELL_AFTER_S and not self.problems:
            log.warning("cache: %s", NOT_VOUCHED.message)
            self.problems["cache"] = (NOT_VOUCHED,)

    async def _bury_all(self) -> None:
        after = ""
        while page := await self._store.unapplied_removals(after, PAGE_SIZE, _deadline_s()):
            await self._cache.bury(page, _deadline_s())
            after = page[-1]

    async def _run(self) -> None:
        while True:
            try:
                await self.look()
            except BackendUnavailable as error:
                log.debug("nobody vouches for the cache from here: %s", error)
                self._in_vain_since_s = None  # who does not answer is told by its own examination
            except Exception:  # the loop must live on: until it does, nobody relies on the cache
                log.exception("the tombstones of the cache could not be looked after")
            await asyncio.sleep(self._interval_s)


def _deadline_s() -> float:
    return asyncio.get_running_loop().time() + STEP_TIMEOUT_S
