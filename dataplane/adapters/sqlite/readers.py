"""Read-only connections: one for short reads on the event loop, some for long reads on threads."""

import asyncio
import sqlite3
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import SimpleQueue
from typing import TypeVar

from dataplane.adapters.sqlite.connection import BACKEND, SqliteOptions, open_reader, translated
from dataplane.errors import BackendUnavailable

T = TypeVar("T")
# How many steps of SQLite's machine pass between looks at the clock: some 1 ms.
_STEPS_BETWEEN_LOOKS = 20_000


class Readers:
    """The reading side of one file. Readers see what is committed and never wait for the writer."""

    def __init__(self, path: Path, options: SqliteOptions) -> None:
        self._inline = open_reader(path, options)
        self._pooled: SimpleQueue[sqlite3.Connection] = SimpleQueue()
        self._all = [self._inline]
        for _ in range(options.readers):
            connection = open_reader(path, options)
            self._all.append(connection)
            self._pooled.put(connection)
        self._threads = ThreadPoolExecutor(options.readers, thread_name_prefix="record-store-reader")
        self._closed = False

    def now(self, read: Callable[[sqlite3.Connection], T], deadline_s: float) -> T:
        """Reads on the calling thread: for what takes less than handing it to another (some 100 µs)."""
        self._check_open()
        if asyncio.get_running_loop().time() > deadline_s:
            raise BackendUnavailable(BACKEND, "deadline passed before reading")
        with translated():
            return read(self._inline)

    async def later(self, read: Callable[[sqlite3.Connection], T], deadline_s: float) -> T:
        """Reads on a thread; a read that passes its deadline is broken off."""
        self._check_open()
        loop = asyncio.get_running_loop()
        remaining_s = deadline_s - loop.time()
        stop_at_s = time.monotonic() + remaining_s
        try:
            async with asyncio.timeout(remaining_s):
                return await loop.run_in_executor(self._threads, self._read, read, stop_at_s)
        except TimeoutError:
            raise BackendUnavailable(BACKEND, "deadline passed while reading") from None

    def _read(self, read: Callable[[sqlite3.Connection], T], stop_at_s: float) -> T:
        connection = self._pooled.get()
        try:
            with translated():
                connection.set_progress_handler(lambda: time.monotonic() > stop_at_s, _STEPS_BETWEEN_LOOKS)
                return read(connection)
        finally:
            self._pooled.put(connection)

    def _check_open(self) -> None:
        if self._closed:
            raise BackendUnavailable(BACKEND, "closed")

    def close(self) -> None:
        """Waits for reads under way and closes the connections. Idempotent."""
        self._closed = True
        self._threads.shutdown()
        for connection in self._all:
            connection.close()
