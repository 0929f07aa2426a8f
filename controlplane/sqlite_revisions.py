"""The revision store in a SQLite file, which several control planes of one machine may share.

All calls run on one worker thread; a transaction is on disk when its call returns (WAL, synchronous FULL).
"""

import asyncio
import logging
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, replace
from pathlib import Path
from typing import TypeVar

from controlplane.documents import Document
from controlplane.revisions import (
    FOLDER_CONTENTS_KEPT,
    REQUEST_KEPT_US,
    Answer,
    ApiKeyRecord,
    Change,
    FolderContent,
    FolderNote,
    Head,
    KeyIdTaken,
    Outrun,
    Revision,
    UnknownSchema,
)
from memplane.errors import Unavailable

log = logging.getLogger("memplane.controlplane.revisions")

SCHEMA_VERSION = 2
BUSY_S = 10.0
"""How long a call waits for another process's transaction; each takes milliseconds. Unmeasured."""

_SCHEMA = (
    """CREATE TABLE revisions (
      generation INTEGER PRIMARY KEY AUTOINCREMENT,
      version TEXT NOT NULL,
      create_time_us INTEGER NOT NULL,
      author TEXT NOT NULL,
      comment TEXT NOT NULL,
      origin TEXT NOT NULL
    ) STRICT""",
    """CREATE TABLE documents (
      generation INTEGER NOT NULL REFERENCES revisions,
      name TEXT NOT NULL,
      content BLOB NOT NULL,
      PRIMARY KEY (generation, name)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE api_keys (
      key_id TEXT PRIMARY KEY,
      sha256 TEXT NOT NULL UNIQUE,
      principal TEXT NOT NULL,
      create_time_us INTEGER NOT NULL,
      expire_time_us INTEGER,
      description TEXT NOT NULL,
      author TEXT NOT NULL,
      revoke_time_us INTEGER
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE answers (
      author TEXT NOT NULL,
      request_id TEXT NOT NULL,
      payload_sha256 TEXT NOT NULL,
      create_time_us INTEGER NOT NULL,
      answer BLOB NOT NULL,
      PRIMARY KEY (author, request_id)
    ) STRICT, WITHOUT ROWID""",
    """CREATE TABLE taken_contents (
      number INTEGER PRIMARY KEY AUTOINCREMENT,
      version TEXT NOT NULL
    ) STRICT""",
    """CREATE TABLE folders (
      holder TEXT PRIMARY KEY,
      version TEXT NOT NULL,
      refusal TEXT NOT NULL,
      seen_number INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID""",
    f"PRAGMA user_version = {SCHEMA_VERSION}",
)
_COLUMNS = "generation, version, create_time_us, author, comment, origin"
_KEY_COLUMNS = "key_id, sha256, principal, create_time_us, expire_time_us, description, author, revoke_time_us"
_T = TypeVar("_T")


class SqliteRevisions:
    """A RevisionStore in a file; `open` makes one."""

    def __init__(self, database: sqlite3.Connection, worker: ThreadPoolExecutor):
        self._database = database
        self._worker = worker
        self._last_failure = ""

    @classmethod
    async def open(cls, path: Path) -> "SqliteRevisions":
        """Opens or makes the file. Raises UnknownSchema, or sqlite3.Error when it is no such file."""
        worker = ThreadPoolExecutor(1, thread_name_prefix="revisions")
        try:
            database = await asyncio.get_running_loop().run_in_executor(worker, _connect, path)
        except Exception:
            worker.shutdown()
            raise
        return cls(database, worker)

    async def close(self) -> None:
        """See RevisionStore."""
        await self._call(lambda database: database.close())
        self._worker.shutdown()

    async def newest(self) -> int:
        """See RevisionStore."""
        return await self._call(_newest)

    async def head(self) -> Head:
        """See RevisionStore."""
        return await self._call(_head)

    async def get(self, generation: int) -> Revision | None:
        """See RevisionStore."""
        return await self._call(lambda database: _revision(database, generation))

    async def page(self, before: int, page_size: int) -> list[Revision]:
        """See RevisionStore."""
        query = f"SELECT {_COLUMNS} FROM revisions WHERE generation < ? ORDER BY generation DESC LIMIT ?"  # noqa: S608 - constant columns
        return await self._call(
            lambda database: [Revision(*row) for row in database.execute(query, (before, page_size))]
        )

    async def write(self, change: Change) -> None:
        """See RevisionStore."""
        await self._call(lambda database: _write(database, change))
        self._last_failure = ""

    async def answer(self, author: str, request_id: str, now_us: int) -> Answer | None:
        """See RevisionStore."""
        query = (
            "SELECT author, request_id, payload_sha256, create_time_us, answer FROM answers"
            " WHERE author = ? AND request_id = ? AND create_time_us > ?"
        )
        given = (author, request_id, now_us - REQUEST_KEPT_US)
        row = await self._call(lambda database: database.execute(query, given).fetchone())
        return None if row is None else Answer(*row)

    async def folder(self, holder: str) -> FolderContent:
        """See RevisionStore."""
        query = "SELECT version, refusal FROM folders WHERE holder = ?"
        row = await self._call(lambda database: database.execute(query, (holder,)).fetchone())
        return FolderContent() if row is None else FolderContent(*row)

    async def brought_by_another(self, holder: str, version: str) -> bool:
        """See RevisionStore."""
        query = (
            "SELECT EXISTS (SELECT 1 FROM taken_contents WHERE version = ?"
            " AND number > coalesce((SELECT seen_number FROM folders WHERE holder = ?), 0))"
        )
        return await self._call(lambda database: bool(database.execute(query, (version, holder)).fetchone()[0]))

    async def api_keys(self) -> list[ApiKeyRecord]:
        """See RevisionStore."""
        return await self._call(lambda database: _keys(database, "TRUE"))

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
    database = sqlite3.connect(path, timeout=BUSY_S, isolation_level=None)
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
    """Makes the tables, once, whoever comes first."""
    database.execute("BEGIN IMMEDIATE")
    try:
        found = database.execute("PRAGMA user_version").fetchone()[0]
        for statement in _SCHEMA if found == 0 else ():
            database.execute(statement)
        database.execute("COMMIT")
    except Exception:
        _undo(database)
        raise
    if found not in (0, SCHEMA_VERSION):
        raise UnknownSchema(f"{path} has schema {found}; this version of MemPlane reads {SCHEMA_VERSION}")


def _newest(database: sqlite3.Connection) -> int:
    return int(database.execute("SELECT coalesce(max(generation), 0) FROM revisions").fetchone()[0])


def _head(database: sqlite3.Connection) -> Head:
    database.execute("BEGIN")
    try:
        return Head(_revision(database, _newest(database)), tuple(_keys(database, "revoke_time_us IS NULL")))
    finally:
        _undo(database)


def _revision(database: sqlite3.Connection, generation: int) -> Revision | None:
    query = f"SELECT {_COLUMNS} FROM revisions WHERE generation = ?"  # noqa: S608 - constant columns
    row = database.execute(query, (generation,)).fetchone()
    if row is None:
        return None
    documents = database.execute("SELECT name, content FROM documents WHERE generation = ? ORDER BY name", (row[0],))
    return replace(Revision(*row), documents=tuple(Document(*document) for document in documents))


def _keys(database: sqlite3.Connection, condition: str) -> list[ApiKeyRecord]:
    query = f"SELECT {_KEY_COLUMNS} FROM api_keys WHERE {condition} ORDER BY create_time_us DESC, key_id DESC"  # noqa: S608 - constants
    return [ApiKeyRecord(*row) for row in database.execute(query)]


def _write(database: sqlite3.Connection, change: Change) -> None:
    database.execute("BEGIN IMMEDIATE")
    try:
        if change.revision is not None:
            _insert_revision(database, change.revision)
        if change.new_key is not None:
            _insert_key(database, change.new_key)
        if change.ended_key is not None:
            ended = (change.ended_key.revoke_time_us, change.ended_key.key_id)
            database.execute(
                "UPDATE api_keys SET revoke_time_us = ? WHERE key_id = ? AND revoke_time_us IS NULL", ended
            )
        if change.answer is not None:
            _insert_answer(database, change.answer)
        if change.folder is not None:
            _note_folder(database, change.folder)
        database.execute("COMMIT")
    except Exception:
        _undo(database)
        raise


def _undo(database: sqlite3.Connection) -> None:
    if database.in_transaction:  # SQLite has rolled back itself when the disk is full
        database.execute("ROLLBACK")


def _insert_revision(database: sqlite3.Connection, revision: Revision) -> None:
    newest = _newest(database)
    if revision.generation != newest + 1:
        raise Outrun(newest)
    row = astuple(revision)[:-1]
    database.execute(f"INSERT INTO revisions ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)", row)  # noqa: S608 - constants
    database.executemany(
        "INSERT INTO documents VALUES (?, ?, ?)",
        [(revision.generation, document.name, document.content) for document in revision.documents],
    )


def _insert_key(database: sqlite3.Connection, key: ApiKeyRecord) -> None:
    if database.execute("SELECT 1 FROM api_keys WHERE key_id = ?", (key.key_id,)).fetchone() is not None:
        raise KeyIdTaken(key.key_id)
    database.execute(f"INSERT INTO api_keys ({_KEY_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)", astuple(key))  # noqa: S608 - constants


def _insert_answer(database: sqlite3.Connection, answer: Answer) -> None:
    database.execute("DELETE FROM answers WHERE create_time_us <= ?", (answer.create_time_us - REQUEST_KEPT_US,))
    database.execute("INSERT OR REPLACE INTO answers VALUES (?, ?, ?, ?, ?)", astuple(answer))


def _note_folder(database: sqlite3.Connection, note: FolderNote) -> None:
    version = note.content.version
    row = database.execute("SELECT seen_number FROM folders WHERE holder = ?", (note.holder,)).fetchone()
    seen = 0 if row is None else int(row[0])
    if note.is_taken:
        database.execute("INSERT INTO taken_contents (version) VALUES (?)", (version,))
    query = "SELECT coalesce(max(number), 0) FROM taken_contents WHERE version = ?"
    seen = max(seen, int(database.execute(query, (version,)).fetchone()[0]))
    database.execute(
        "DELETE FROM taken_contents WHERE number <= (SELECT max(number) FROM taken_contents) - ?",
        (FOLDER_CONTENTS_KEPT,),
    )
    row = (note.holder, version, note.content.refusal, seen)
    database.execute("INSERT OR REPLACE INTO folders VALUES (?, ?, ?, ?)", row)
