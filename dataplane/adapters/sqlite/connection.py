"""Opens connections as this store needs them, keeps other processes out, and words SQLite's errors as our own.

The index of the write-ahead log lies in memory that the connections of this process share, not in a `-shm` file
(https://www.sqlite.org/vfs.html, `unix-excl`): that file is cut off and laid out anew at each start, and no store could
be opened, not even to be read, where the disk has no room for it. No other program can open the file meanwhile.
"""

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from dataplane.adapters.sqlite.pages import MAX_PAGES
from dataplane.errors import BackendUnavailable

BACKEND = "record_store"


@dataclass(frozen=True, slots=True)
class SqliteOptions:
    """How the file is opened.

    Measured (2026-11, 10,000 memories with 384 dimensions): a cache of 8 MiB takes a quarter off a fetch against 2 MiB
    and 32 MiB no more; 4,000 checkpoint pages take a third off a group commit against 1,000. Others are unmeasured.

    Attributes:
        synchronous_full: Every group commit waits for the disk, so that acknowledged writes survive loss of power, too;
            otherwise they survive the end of the process (kill -9) alone.
        readers: Threads for long reads.
        queue_size: Commits that may wait for the writer.
        batch_size: Commits in one transaction.
        busy_timeout_ms: How long to wait for a lock that another program holds.
        max_size_bytes: The file grows no further; 0 is no bound but that of `pages.MAX_PAGES`, 128 GiB.
        cache_size_kib: Page cache of each connection.
        checkpoint_pages: Size of the write-ahead log, in pages of 4 KiB, at which it is moved into the file.
    """

    synchronous_full: bool = False
    readers: int = 2
    queue_size: int = 20_000
    batch_size: int = 512
    busy_timeout_ms: int = 1_000
    max_size_bytes: int = 0
    cache_size_kib: int = 8_192
    checkpoint_pages: int = 4_000


@dataclass
class StoreInUse(Exception):
    """Another process (or another store of this one, or a program that looks into it) has the file open."""

    path: Path

    def __str__(self) -> str:
        return f"{self.path} is in use by another data plane or program; one process at a time may open it"


def as_unavailable(error: sqlite3.Error) -> BackendUnavailable:
    """The domain error for an error of SQLite; only its symbolic name is kept, for messages may quote content."""
    return BackendUnavailable(BACKEND, getattr(error, "sqlite_errorname", type(error).__name__))


@contextmanager
def translated() -> Iterator[None]:
    """Turns errors of SQLite and of the file system into BackendUnavailable."""
    try:
        yield
    except sqlite3.Error as error:
        raise as_unavailable(error) from error
    except OSError as error:
        raise BackendUnavailable(BACKEND, error.strerror or type(error).__name__) from error


def lock(path: Path) -> int:
    """Takes the lock file beside a database and returns its descriptor; closing that gives the lock back.

    The system drops the lock with the process, however it ends. Raises StoreInUse.
    """
    descriptor = os.open(f"{path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise StoreInUse(path) from None
    return descriptor


def open_writer(path: Path, options: SqliteOptions) -> sqlite3.Connection:
    """The one connection that writes. The file is made readable by its owner alone. Raises StoreInUse."""
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    with _taking(path):
        connection = _connect(path, "rw", options)
    with closed_on_error(connection):
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute(f"PRAGMA synchronous = {'FULL' if options.synchronous_full else 'NORMAL'}")
        connection.execute("PRAGMA wal_autocheckpoint = 0")  # WriteAheadLog does it
        connection.execute("PRAGMA secure_delete = ON")
        connection.execute("PRAGMA foreign_keys = ON")
        (page_size,) = connection.execute("PRAGMA page_size").fetchone()
        asked_pages = options.max_size_bytes // page_size if options.max_size_bytes else MAX_PAGES
        connection.execute(f"PRAGMA max_page_count = {min(max(1, asked_pages), MAX_PAGES)}")
        if connection.execute("PRAGMA auto_vacuum").fetchone() != (0,):
            connection.close()
            raise BackendUnavailable(BACKEND, "the file has auto_vacuum on; switch it off and VACUUM")
    return connection


@contextmanager
def _taking(path: Path) -> Iterator[None]:
    """The first connection that may write takes the file when it first reads it."""
    try:
        yield
    except sqlite3.OperationalError as error:
        if error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY:  # the low byte of each extended code
            raise StoreInUse(path) from error
        raise


def open_reader(path: Path, options: SqliteOptions) -> sqlite3.Connection:
    """A connection that cannot write; to be opened after the writer's, and closed before it."""
    connection = _connect(path, "ro", options)
    with closed_on_error(connection):
        connection.execute("PRAGMA query_only = ON")
    return connection


def _connect(path: Path, mode: str, options: SqliteOptions) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"{path.absolute().as_uri()}?mode={mode}&vfs=unix-excl",
        uri=True,
        timeout=options.busy_timeout_ms / 1_000,
        isolation_level=None,
        check_same_thread=False,
        cached_statements=256,
    )
    with closed_on_error(connection):
        connection.execute(f"PRAGMA cache_size = -{options.cache_size_kib}")
    return connection


@contextmanager
def closed_on_error(connection: sqlite3.Connection) -> Iterator[None]:
    """Closes a connection that is of no use because the block failed."""
    try:
        yield
    except sqlite3.Error:
        connection.close()
        raise
