"""Every accepted policy set, answers for retried requests, and what the policy folder last held: in SQLite.

The newest revision is the one in force. When SQLite fails, calls raise Unavailable, and the log has the cause.

Generations count up and are never used again. All calls run on one worker thread; a transaction is on disk when its
call returns (WAL, synchronous FULL).
"""

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeVar

from controlplane.documents import Document
from memplane.errors import Unavailable

log = logging.getLogger("memplane.controlplane.revisions")

SCHEMA_VERSION = 1
REQUEST_KEPT_US = 24 * 3600 * 1_000_000
"""How long an answer to a request_id is remembered: 24 hours."""

_SCHEMA = """
CREATE TABLE revisions (
  generation INTEGER PRIMARY KEY AUTOINCREMENT,
  version TEXT NOT NULL,
  create_time_us INTEGER NOT NULL,
  author TEXT NOT NULL,
  comment TEXT NOT NULL,
  origin TEXT NOT NULL
) STRICT;
CREATE TABLE documents (
  generation INTEGER NOT NULL REFERENCES revisions,
  name TEXT NOT NULL,
  content BLOB NOT NULL,
  PRIMARY KEY (generation, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE answers (
  author TEXT NOT NULL,
  request_id TEXT NOT NULL,
  payload_sha256 TEXT NOT NULL,
  create_time_us INTEGER NOT NULL,
  answer BLOB NOT NULL,
  PRIMARY KEY (author, request_id)
) STRICT, WITHOUT ROWID;
CREATE TABLE folder (
  only_row INTEGER PRIMARY KEY CHECK (only_row = 1),
  version TEXT NOT NULL,
  refusal TEXT NOT NULL
) STRICT;
"""
_COLUMNS = "generation, version, create_time_us, author, comment, origin"
_T = TypeVar("_T")


class UnknownSchema(Exception):
    """The file was written by another version of MemPlane."""


@dataclass(frozen=True, slots=True)
class Revision:
    """An accepted policy set. `documents` are empty in lists. `origin` is `rpc` or `folder`."""

    generation: int
    version: str
    create_time_us: int
    author: str
    comment: str
    origin: str
    documents: tuple[Document, ...] = ()

    @property
    def etag(self) -> str:
        """Changes with every acceptance."""
        return f"{self.generation}-{self.version.removeprefix('sha256:')[:16]}"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request was answered, for its retries."""

    author: str
    request_id: str
    payload_sha256: str
    create_time_us: int
    answer: bytes


@dataclass(frozen=True, slots=True)
class FolderContent:
    """What the policy folder last held: its digest (empty: it was never looked at), and why it was refused, if so."""

    version: str = ""
    refusal: str = ""


@dataclass(frozen=True, slots=True)
class Change:
    """What one reload writes, all or nothing. None: that part stays as it is."""

    revision: Revision | None = None
    answer: Answer | None = None
    folder: FolderContent | None = None


class RevisionStore:
    """The store; `open` makes one."""

    def __init__(self, database: sqlite3.Connection, worker: ThreadPoolExecutor):
        self._database = database
        self._worker = worker
        self._last_failure = ""

    @classmethod
    async def open(cls, path: Path) -> "RevisionStore":
        """Opens or makes the file. Raises UnknownSchema, or sqlite3.Error when it is no such file."""
        worker = ThreadPoolExecutor(1, thread_name_prefix="revisions")
        try:
            database = await asyncio.get_running_loop().run_in_executor(worker, _connect, path)
        except Exception:
            worker.shutdown()
            raise
        return cls(database, worker)

    async def close(self) -> None:
        """Waits for running calls and closes the file."""
        await self._call(lambda database: database.close())
        self._worker.shutdown()

    async def latest(self) -> Revision | None:
        """The revision in force, with its documents; None before the first."""
        return await self._call(lambda database: _revision(database, None))

    async def get(self, generation: int) -> Revision | None:
        """One revision with its documents; None when there is no such."""
        return await self._call(lambda database: _revision(database, generation))

    async def page(self, before: int, page_size: int) -> list[Revision]:
        """Revisions of a generation below `before`, newest first, without documents."""
        query = f"SELECT {_COLUMNS} FROM revisions WHERE generation < ? ORDER BY generation DESC LIMIT ?"  # noqa: S608 - constant columns
        return await self._call(
            lambda database: [Revision(*row) for row in database.execute(query, (before, page_size))]
        )

    async def write(self, change: Change) -> None:
        """Writes all of it in one transaction. Raises Unavailable, and then nothing of it is there."""
        await self._call(lambda database: _write(database, change))
        self._last_failure = ""

    async def answer(self, author: str, request_id: str, now_us: int) -> Answer | None:
        """What this author's request was answered in the last 24 hours."""
        query = (
            "SELECT author, request_id, payload_sha256, create_time_us, answer FROM answers"
            " WHERE author = ? AND request_id = ? AND create_time_us > ?"
        )
        given = (author, request_id, now_us - REQUEST_KEPT_US)
        row = await self._call(lambda database: database.execute(query, given).fetchone())
        return None if row is None else Answer(*row)

    async def folder(self) -> FolderContent:
        """What the policy folder last held."""
        row = await self._call(lambda database: database.execute("SELECT version, refusal FROM folder").fetchone())
        return FolderContent() if row is None else FolderContent(*row)

    async def _call(self, work: Callable[[sqlite3.Connection], _T]) -> _T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._worker, work, self._database)
        except sqlite3.Error as error:
            self._note_failure(error)
            raise Unavailable("revision store") from error

    def _note_failure(self, error: sqlite3.Error) -> None:
        """One line until a write succeeds again: the folder's watch tries every second."""
        reason = f"{getattr(error, 'sqlite_errorname', type(error).__name__)}: {error}"
        if reason != self._last_failure:
            log.error("the revision store failed, nothing was changed: %s", reason)
        self._last_failure = reason


def _connect(path: Path) -> sqlite3.Connection:
    database = sqlite3.connect(path, isolation_level=None)
    try:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.execute("PRAGMA foreign_keys = ON")
        _migrate(database, path)
    except Exception:
        database.close()
        raise
    return database


def _migrate(database: sqlite3.Connection, path: Path) -> None:
    found = database.execute("PRAGMA user_version").fetchone()[0]
    if found == 0:
        database.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT;")
    elif found != SCHEMA_VERSION:
        raise UnknownSchema(f"{path} has schema {found}; this version of MemPlane reads {SCHEMA_VERSION}")


def _revision(database: sqlite3.Connection, generation: int | None) -> Revision | None:
    where = "ORDER BY generation DESC LIMIT 1" if generation is None else "WHERE generation = ?"
    given = () if generation is None else (generation,)
    row = database.execute(f"SELECT {_COLUMNS} FROM revisions {where}", given).fetchone()  # noqa: S608 - constants
    if row is None:
        return None
    documents = database.execute("SELECT name, content FROM documents WHERE generation = ? ORDER BY name", (row[0],))
    return replace(Revision(*row), documents=tuple(Document(*document) for document in documents))


def _write(database: sqlite3.Connection, change: Change) -> None:
    database.execute("BEGIN IMMEDIATE")
    try:
        if change.revision is not None:
            _insert_revision(database, change.revision)
        if change.answer is not None:
            _insert_answer(database, change.answer)
        if change.folder is not None:
            folder = (change.folder.version, change.folder.refusal)
            database.execute("INSERT OR REPLACE INTO folder VALUES (1, ?, ?)", folder)
        database.execute("COMMIT")
    except Exception:
        if database.in_transaction:  # SQLite has rolled back itself when the disk is full
            database.execute("ROLLBACK")
        raise


def _insert_revision(database: sqlite3.Connection, revision: Revision) -> None:
    row = (
        revision.generation,
        revision.version,
        revision.create_time_us,
        revision.author,
        revision.comment,
        revision.origin,
    )
    database.execute(f"INSERT INTO revisions ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", row)  # noqa: S608 - constants
    database.executemany(
        "INSERT INTO documents VALUES (?, ?, ?)",
        [(revision.generation, document.name, document.content) for document in revision.documents],
    )


def _insert_answer(database: sqlite3.Connection, answer: Answer) -> None:
    database.execute("DELETE FROM answers WHERE create_time_us <= ?", (answer.create_time_us - REQUEST_KEPT_US,))
    database.execute(
        "INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?)",
        (answer.author, answer.request_id, answer.payload_sha256, answer.create_time_us, answer.answer),
    )
