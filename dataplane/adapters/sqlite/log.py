"""Moves the write-ahead log into the file, and sees that nothing of what was deleted stays in either.

Every page that comes into the file comes through the log, and nobody but `WriteAheadLog` moves it: SQLite's own
checkpoints are off. After each move the pages that came are looked at, and their gaps zeroed (see `pages`), before the
log is cut off: a process killed in between finds the log whole when it starts again, and does both once more. So after
`empty` has returned True no file holds a byte of a row that was deleted before.

The bytes are zeroed in the file itself, past SQLite, which has no means to do so short of VACUUM. It is safe because
one process has the file (`connection.lock`), the thread that calls this is the only one that writes, readers never look
into gaps, and the cache of the writing connection is dropped, so that it cannot bring an old gap back.
"""

import os
import sqlite3
from collections.abc import Iterator
from contextlib import suppress

from dataplane.adapters.sqlite.pages import dirty_gap

_LOG_HEADER = 32
_FRAME_HEADER = 24
_FRAMES_AT_ONCE = 256


class WriteAheadLog:
    """The log of a connection in WAL mode, for the thread that writes with it. Raises sqlite3.Error and OSError.

    Args:
        connection: The one that writes, without a transaction whenever it is used here.
        max_pages: From that size on the log is long.
    """

    def __init__(self, connection: sqlite3.Connection, max_pages: int) -> None:
        self._connection = connection
        (_, _, path) = connection.execute("PRAGMA database_list").fetchone()
        self._page_size = int(connection.execute("PRAGMA page_size").fetchone()[0])
        self._wait_ms = int(connection.execute("PRAGMA busy_timeout").fetchone()[0])
        self._log_path = f"{path}-wal"
        # Open until every connection is closed: POSIX drops all locks of a process on a file with any of its handles.
        self._file = os.open(path, os.O_RDWR)
        self._frame_size = _FRAME_HEADER + self._page_size
        self._max_bytes = _LOG_HEADER + max_pages * self._frame_size
        self._long_bytes = self._max_bytes
        self._dirty: set[int] = set()  # pages whose gaps are yet to be zeroed

    @property
    def is_long(self) -> bool:
        """Whether it is time to empty it; after a try in vain, once it has grown as much again."""
        return self._bytes() >= self._long_bytes

    def empty(self, *, patient: bool) -> bool:
        """Moves all of it into the file and cuts it off; False when a read that goes on is in the way.

        A `patient` call waits for reads, as long as the connection waits for locks.
        """
        self._long_bytes = self._bytes() + self._max_bytes  # unless all goes well
        self._dirty |= self._dirty_pages()
        is_empty = self._checkpoint("FULL", patient=patient)
        if self._zero_gaps():
            self._connection.execute("PRAGMA shrink_memory")
        is_empty = is_empty and self._checkpoint("TRUNCATE", patient=patient)
        if is_empty:
            self._long_bytes = self._max_bytes
        return is_empty

    def close(self) -> None:
        """To be called when every connection of this process to the file is closed.

        SQLite moves the log once more when the last one closes, which may succeed where `empty` failed just before.
        """
        try:
            self._zero_gaps()
        finally:
            os.close(self._file)

    def _checkpoint(self, mode: str, *, patient: bool) -> bool:
        wait_ms = self._wait_ms // 2 if patient else 0  # each of two
        self._connection.execute(f"PRAGMA busy_timeout = {wait_ms}")
        try:
            (busy, _, _) = self._connection.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
        finally:
            self._connection.execute(f"PRAGMA busy_timeout = {self._wait_ms}")
        return not busy

    def _bytes(self) -> int:
        with suppress(FileNotFoundError):  # nothing was written yet
            return os.stat(self._log_path).st_size
        return 0

    def _dirty_pages(self) -> set[int]:
        """The numbers of pages that bring a gap with something in it into the file, by any frame of the log.

        Old frames that nobody has overwritten yet do no harm. Many are read at a time: each read gives the interpreter
        away, and waits to have it back.
        """
        if not self._bytes():
            return set()
        with open(self._log_path, "rb") as log:
            log.seek(_LOG_HEADER)
            found: set[int] = set()
            while frames := log.read(_FRAMES_AT_ONCE * self._frame_size):
                found.update(self._dirty_in(frames))
            return found

    def _dirty_in(self, frames: bytes) -> Iterator[int]:
        for start in range(0, len(frames) - self._frame_size + 1, self._frame_size):
            number = int.from_bytes(frames[start : start + 4], "big")
            gap = dirty_gap(frames[start + _FRAME_HEADER : start + self._frame_size], number)
            if gap.stop > gap.start:
                yield number

    def _zero_gaps(self) -> bool:
        """Whether there were any to be zeroed."""
        was_dirty = bool(self._dirty)
        for number in sorted(self._dirty):
            self._zero_gap(number)
        if was_dirty:
            os.fsync(self._file)
        self._dirty.clear()
        return was_dirty

    def _zero_gap(self, number: int) -> None:
        """By what the file has now: the log may have more than one page of that number, and not all may have come."""
        start = (number - 1) * self._page_size
        page = os.pread(self._file, self._page_size, start) if number else b""
        gap = dirty_gap(page, number) if len(page) == self._page_size else slice(0, 0)
        os.pwrite(self._file, bytes(gap.stop - gap.start), start + gap.start)
