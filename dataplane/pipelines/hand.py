"""The outbox rows of one index that a projector holds: leased, kept while it works, settled or given back in doubt.

What was sent to a server may reach it long after whoever sent it gave up, stopped or died, and after others went on. An
older version never replaces a newer one in an index, but what was removed meanwhile would be back. So:
1. Nothing is sent for a row once its lease may have run out; a lease that lasts is renewed.
2. A memory that was in hands which did not settle it is *doubted* by whoever settles it: after `doubt_s` the index is
   brought to what the record store says once more. The doubt lies in the record store before the row is settled.
3. Hands that find that they worked beyond their lease doubt what they held.
4. A lease that comes through after it was given up is renewed by nobody: after each release the hand has another name.
An index in the process's own folder needs none of this: what was sent ends with the process. What it has of doubts a
rebuild left, which noted orphans and did not come to put them in line.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dataplane.changes import Failure, Lease, OutboxRow
from dataplane.errors import BackendUnavailable
from dataplane.ports import RecordStore

log = logging.getLogger("memplane.project")

RENEWALS = 4
"""How often a lease is renewed in its time. Unmeasured."""
KEPT = 2 / 3
"""What a renewed lease has left at least: the store may leave one alone that has so much (`renew_outbox`)."""
LOOKS = 6
"""How often it is looked for doubts in the time that one waits. Unmeasured."""
PAGE_SIZE = 500
"""Doubts put in line at once. Unmeasured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOptions:
    """Who holds, for how long, and what waits how long afterwards; see `ProjectorOptions`."""

    owner: str
    batch_size: int
    lease_s: float
    doubt_s: float
    retry_s: float
    attempts: int
    step_timeout_s: float


class Hand:
    """What one projector holds of an index; everything raises BackendUnavailable."""

    def __init__(self, store: RecordStore, target: str, options: HandOptions, *, own: bool):
        self._store = store
        self._target = target
        self._options = options
        self._own = own
        self._rows: dict[int, OutboxRow] = {}
        self._releases = 0
        self._until_s = 0.0
        self._overran = False
        self._recall_at_s = 0.0

    def deadline(self) -> float:
        """The deadline of a step that begins now, for rows that are held: it must not begin once they may be lost."""
        if self._is_overrun():
            raise BackendUnavailable("record_store", "did not renew leases in time; others may hold the rows by now")
        return _now_s() + self._options.step_timeout_s

    async def lease(self, model: str) -> list[OutboxRow]:
        """The next rows due, at most a batch."""
        started_s, lease = _now_s(), self._lease
        rows = await self._store.lease_outbox(
            self._target, lease, self._options.batch_size, model, self._step_deadline()
        )
        if rows and not self._rows:
            self._until_s, self._overran = started_s + lease.seconds, False
        self._rows.update((row.position, row) for row in rows)
        return rows

    async def settle(self, rows: Sequence[OutboxRow]) -> None:
        """Drops what is durable in the index; what is in doubt comes again."""
        await self._doubt(rows if self._is_overrun() else [row for row in rows if row.abandoned])
        await self._store.settle_outbox(self._target, self._owner, rows, self._step_deadline())
        self._let_go(rows)

    async def postpone(self, rows: Sequence[OutboxRow], reasons: Mapping[str, str]) -> None:
        """Gives back what the index refused, to be tried later or not at all."""
        failures = [self._failure(row, reasons[row.memory_id]) for row in rows]
        await self._store.postpone_outbox(self._target, self._owner, failures, self._step_deadline())
        self._let_go(rows)

    async def release(self) -> None:
        """Gives back everything, under whatever name of this hand, for others to go on with it."""
        if self._is_overrun():
            await self._doubt(list(self._rows.values()))
        await self._store.release_outbox(self._options.owner, self._step_deadline())
        self._rows.clear()
        self._releases += 1

    async def recall(self) -> None:
        """Puts in line, now and then, what was doubted long enough ago, by whomever."""
        if _now_s() < self._recall_at_s:
            return
        while await self._store.enqueue_doubted(self._target, PAGE_SIZE, self._step_deadline()) == PAGE_SIZE:
            log.info("much of %s was in doubt and is applied again", self._target)
        self._recall_at_s = _now_s() + self._options.doubt_s / LOOKS

    async def keep(self) -> None:
        """Renews what is held until cancelled."""
        while True:
            await asyncio.sleep(self._options.lease_s / RENEWALS)
            try:
                await self._renew()
            except BackendUnavailable as error:
                log.debug("leases of %s were not renewed: %s", self._target, error)
            except Exception:  # the loop must live on: leases that are not renewed run out, which does no harm
                log.exception("leases of %s could not be renewed", self._target)

    @property
    def _owner(self) -> str:
        return f"{self._options.owner}/{self._releases}"

    @property
    def _lease(self) -> Lease:
        return Lease(self._owner, self._options.lease_s)

    async def _renew(self) -> None:
        if not self._rows:
            return
        started_s, self._overran = _now_s(), self._is_overrun()
        await self._store.renew_outbox(self._lease, started_s + self._options.lease_s / RENEWALS)
        self._until_s = max(self._until_s, started_s + KEPT * self._options.lease_s)

    async def _doubt(self, rows: Sequence[OutboxRow]) -> None:
        if rows and not self._own:
            await self._store.doubt_outbox(self._target, rows, self._options.doubt_s, self._step_deadline())

    def _failure(self, row: OutboxRow, reason: str) -> Failure:
        tries, most = row.attempts + 1, self._options.attempts
        level = logging.ERROR if tries >= most else logging.WARNING
        log.log(level, "%s does not take %s (try %d of %d): %s", self._target, row.memory_id, tries, most, reason)
        return Failure(row, reason, None if tries >= most else self._options.retry_s * 2**row.attempts)

    def _let_go(self, rows: Sequence[OutboxRow]) -> None:
        for row in rows:
            self._rows.pop(row.position, None)

    def _is_overrun(self) -> bool:
        return bool(self._rows) and (self._overran or _now_s() > self._until_s)

    def _step_deadline(self) -> float:
        return _now_s() + self._options.step_timeout_s


def _now_s() -> float:
    return asyncio.get_running_loop().time()
