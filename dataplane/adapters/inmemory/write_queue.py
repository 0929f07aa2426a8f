"""A write queue that lives as long as its process: for tests and trials."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from dataplane.adapters.inmemory.deadline import check
from dataplane.adapters.queue_numbers import number_of
from dataplane.changes import QueueDepth, QueuedWrite, QueueEntry, SetAsideWrite
from dataplane.errors import QueueFull
from dataplane.ports import Clock
from dataplane.ports.backend import Examination

BACKEND = "queue"
RETRY_AFTER_S = 1.0
POLL_S = 0.01
"""How often a waiting taker looks. Unmeasured."""
SET_ASIDE_KEPT = 1_000


@dataclass(slots=True)
class _Row:
    write: QueuedWrite
    deliveries: int = 0
    owner: str = ""
    taken_until_us: int = 0


class InMemoryWriteQueue:
    """Holds at most `max_entries`; what is taken comes back after `claim_after_s` of the clock."""

    def __init__(self, clock: Clock, max_entries: int = 100_000, claim_after_s: float = 10.0) -> None:
        self._clock = clock
        self._max_entries = max_entries
        self._claim_after_us = int(claim_after_s * 1e6)
        self._rows: dict[str, _Row] = {}
        self._numbered = 0
        self._set_aside: dict[int, QueuedWrite] = {}

    async def examine(self, deadline_s: float) -> Examination:
        """See the port."""
        check(BACKEND, deadline_s)
        return Examination("in-memory write queue")

    async def close(self) -> None:
        """See the port."""

    async def put(self, write: QueuedWrite, deadline_s: float) -> None:
        """See the port."""
        check(BACKEND, deadline_s)
        is_new = await self.find(write.operation, deadline_s) is None
        if is_new and len(self._rows) >= self._max_entries:
            raise QueueFull(RETRY_AFTER_S)
        self._add(write)

    def _add(self, write: QueuedWrite) -> None:
        if all(row.write.operation != write.operation for row in self._rows.values()):
            self._numbered += 1
            self._rows[str(self._numbered)] = _Row(write)

    async def take(self, owner: str, page_size: int, wait_s: float, deadline_s: float) -> list[QueueEntry]:
        """See the port."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + wait_s
        while True:
            check(BACKEND, deadline_s)
            taken = self._take(owner, page_size)
            if taken or loop.time() >= until_s:
                return taken
            await asyncio.sleep(POLL_S)

    def _take(self, owner: str, page_size: int) -> list[QueueEntry]:
        now_us = self._clock.now_us()
        live = {number: row for number, row in self._rows.items() if row.taken_until_us > now_us}
        held = {row.write.order_key for row in live.values() if row.owner != owner}
        free = [number for number, row in self._rows.items() if number not in live and row.write.order_key not in held]
        return [self._hand_out(number, owner, now_us) for number in free[:page_size]]

    def _hand_out(self, number: str, owner: str, now_us: int) -> QueueEntry:
        row = self._rows[number]
        row.owner, row.taken_until_us, row.deliveries = owner, now_us + self._claim_after_us, row.deliveries + 1
        return QueueEntry(number, row.write, row.deliveries)

    async def renew(self, owner: str, entries: Sequence[QueueEntry], deadline_s: float) -> None:
        """See the port."""
        check(BACKEND, deadline_s)
        for entry in entries:
            row = self._rows.get(entry.entry_id)
            if row is not None and row.owner == owner:
                row.taken_until_us = self._clock.now_us() + self._claim_after_us

    async def done(self, entries: Sequence[QueueEntry], deadline_s: float) -> None:
        """See the port."""
        check(BACKEND, deadline_s)
        for entry in entries:
            self._rows.pop(entry.entry_id, None)

    async def set_aside(self, entries: Sequence[QueueEntry], deadline_s: float) -> None:
        """See the port."""
        check(BACKEND, deadline_s)
        for entry in entries:
            row = self._rows.pop(entry.entry_id, None)
            if row is not None:
                self._set_aside[int(entry.entry_id)] = row.write
        self._set_aside = dict(sorted(self._set_aside.items())[-SET_ASIDE_KEPT:])

    async def set_aside_writes(self, after_id: str, page_size: int, deadline_s: float) -> list[SetAsideWrite]:
        """See the port."""
        check(BACKEND, deadline_s)
        above = [(number, write) for number, write in self._set_aside.items() if number > number_of(after_id)]
        return [SetAsideWrite(str(number), write) for number, write in above[:page_size]]

    async def replay_set_aside(self, entry_ids: Sequence[str], deadline_s: float) -> int:
        """See the port."""
        check(BACKEND, deadline_s)
        wanted = [number_of(entry_id) for entry_id in entry_ids] or list(self._set_aside)
        found = [self._set_aside.pop(number) for number in wanted if number in self._set_aside]
        for write in found:
            self._add(write)
        return len(found)

    async def find(self, operation: str, deadline_s: float) -> QueuedWrite | None:
        """See the port."""
        check(BACKEND, deadline_s)
        return next((row.write for row in self._rows.values() if row.write.operation == operation), None)

    async def depth(self, deadline_s: float) -> QueueDepth:
        """See the port."""
        check(BACKEND, deadline_s)
        now_us = self._clock.now_us()
        taken = sum(row.taken_until_us > now_us for row in self._rows.values())
        oldest = min((row.write.time_us for row in self._rows.values()), default=None)
        return QueueDepth(len(self._rows) - taken, taken, oldest, len(self._set_aside))
