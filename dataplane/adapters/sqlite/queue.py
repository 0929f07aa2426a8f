"""The write queue on one SQLite file of its own, beside the records: durable with no server.

One process at a time has the file, so whoever held writes before is gone, and a taker need not look again for what
others put: `put` tells it.
"""

import asyncio
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from dataplane.adapters.handed_out import HandedOut
from dataplane.adapters.queue_limits import QUEUE_RANGES
from dataplane.adapters.sqlite import queue_statements as statements
from dataplane.adapters.sqlite.connection import SqliteOptions, closed_on_error, lock, open_writer, translated
from dataplane.adapters.sqlite.migrate import migrate
from dataplane.adapters.sqlite.writer import Writer
from dataplane.changes import QueueDepth, QueuedWrite, QueueEntry, SetAsideWrite
from dataplane.errors import BackendUnavailable, QueueFull
from dataplane.ports import Clock
from dataplane.ports.backend import Examination
from memplane.options import check_ranges

BACKEND = "queue"
LOOK_AGAIN_S = 1.0
"""How often a waiting taker looks whether abandoned writes have come free. Unmeasured."""


@dataclass(frozen=True, slots=True)
class SqliteQueueOptions:
    """How much the queue holds, and for how long a taker. Raises BadConfig, naming the field.

    Attributes:
        max_entries: More are refused.
        retry_after_s: When those who were refused are told to try again.
        claim_after_s: What is taken and neither done nor renewed for so long is handed out again.
        synchronous_full: Accepted writes survive loss of power, too.
    """

    max_entries: int = 100_000
    retry_after_s: float = 1.0
    claim_after_s: float = 10.0
    synchronous_full: bool = False

    def __post_init__(self) -> None:
        check_ranges(self, QUEUE_RANGES)


class SqliteWriteQueue:
    """A `ports.WriteQueue`. Made by `open`."""

    def __init__(self, lock_descriptor: int, writer: Writer, clock: Clock, options: SqliteQueueOptions) -> None:
        self._lock_descriptor = lock_descriptor
        self._writer = writer
        self._clock = clock
        self._options = options
        self._handed_out = HandedOut()
        self._arrived = asyncio.Event()
        self._freeing = asyncio.Lock()
        self._is_freed = False
        self._closed = False

    @classmethod
    async def open(cls, path: Path, options: SqliteQueueOptions, clock: Clock) -> "SqliteWriteQueue":
        """Opens or makes the file, with its folder; `clock` ends what takers hold.

        Beside the file lie `-wal` and `.lock`. Raises StoreInUse, SchemaTooNew, or BackendUnavailable when the
        file cannot be read.
        """
        with _named():
            descriptor, writer = await asyncio.to_thread(_open, path, options, asyncio.get_running_loop())
        return cls(descriptor, writer, clock, options)

    async def close(self) -> None:
        """See the port."""
        if self._closed:
            return
        self._closed = True
        await asyncio.to_thread(self._writer.close)
        os.close(self._lock_descriptor)

    async def examine(self, deadline_s: float) -> Examination:
        """See the port."""
        await self.depth(deadline_s)
        return Examination(f"SQLite {sqlite3.sqlite_version}")

    async def put(self, write: QueuedWrite, deadline_s: float) -> None:
        """See the port."""
        work = partial(statements.put, write=write, max_entries=self._options.max_entries)
        with _named():
            accepted = await self._writer.run(work, deadline_s)
        if not accepted:
            raise QueueFull(self._options.retry_after_s)
        self._arrived.set()

    async def take(self, owner: str, page_size: int, wait_s: float, deadline_s: float) -> list[QueueEntry]:
        """See the port."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + wait_s
        while True:
            self._arrived.clear()
            entries = await self._take(owner, page_size, deadline_s)
            remaining_s = until_s - loop.time()
            if entries or remaining_s <= 0:
                return entries
            with suppress(TimeoutError):
                async with asyncio.timeout(min(remaining_s, LOOK_AGAIN_S)):
                    await self._arrived.wait()

    async def _free_all(self, deadline_s: float) -> None:
        """Before the first is taken, and not when the file is opened, which must succeed on a full disk."""
        async with self._freeing:
            if not self._is_freed:
                await self._writer.run(statements.free_all, deadline_s)
                self._is_freed = True

    async def _take(self, owner: str, page_size: int, deadline_s: float) -> list[QueueEntry]:
        with _named():
            await self._free_all(deadline_s)
        now_us = self._clock.now_us()
        hold = statements.Hold(owner, now_us, now_us + int(self._options.claim_after_s * 1e6))
        known = self._handed_out.known_to(owner)
        work = partial(statements.take, hold=hold, page_size=page_size, known=known)
        with _named():
            entries = await self._writer.run(work, deadline_s)
        self._handed_out.note(owner, entries)
        return entries

    async def renew(self, owner: str, entries: Sequence[QueueEntry], deadline_s: float) -> None:
        """See the port."""
        now_us = self._clock.now_us()
        hold = statements.Hold(owner, now_us, now_us + int(self._options.claim_after_s * 1e6))
        with _named():
            await self._writer.run(partial(statements.renew, hold=hold, entries=entries), deadline_s)

    async def done(self, entries: Sequence[QueueEntry], deadline_s: float) -> None:
        """See the port."""
        with _named():
            await self._writer.run(partial(statements.remove, entries=entries), deadline_s, wipes=True)
        self._handed_out.forget(entries)
        self._arrived.set()  # what waited behind them is free for other takers

    async def set_aside(self, entries: Sequence[QueueEntry], deadline_s: float) -> None:
        """See the port."""
        with _named():
            await self._writer.run(partial(statements.set_aside, entries=entries), deadline_s)
        self._handed_out.forget(entries)
        self._arrived.set()

    async def set_aside_writes(self, after_id: str, page_size: int, deadline_s: float) -> list[SetAsideWrite]:
        """See the port."""
        work = partial(statements.set_aside_writes, after_id=after_id, page_size=page_size)
        with _named():
            return await self._writer.run(work, deadline_s)

    async def replay_set_aside(self, entry_ids: Sequence[str], deadline_s: float) -> int:
        """See the port."""
        with _named():
            replayed = await self._writer.run(partial(statements.replay_set_aside, entry_ids=entry_ids), deadline_s)
        self._arrived.set()
        return replayed

    async def find(self, operation: str, deadline_s: float) -> QueuedWrite | None:
        """See the port."""
        with _named():
            return await self._writer.run(partial(statements.find, operation=operation), deadline_s)

    async def depth(self, deadline_s: float) -> QueueDepth:
        """See the port."""
        with _named():
            return await self._writer.run(partial(statements.depth, now_us=self._clock.now_us()), deadline_s)


def _open(path: Path, options: SqliteQueueOptions, loop: asyncio.AbstractEventLoop) -> tuple[int, Writer]:
    file_options = SqliteOptions(synchronous_full=options.synchronous_full)
    with translated():
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor = lock(path)
        try:
            connection = open_writer(path, file_options)
            with closed_on_error(connection):
                migrate(connection, [statements.SCHEMA])
        except BaseException:
            os.close(descriptor)
            raise
    return descriptor, Writer(connection, file_options, loop)


@contextmanager
def _named() -> Iterator[None]:
    """The connection and its writer speak of the record store; here it is the queue that does not answer."""
    try:
        yield
    except BackendUnavailable as error:
        raise BackendUnavailable(BACKEND, error.detail) from error
