"""The revision store in PostgreSQL, for control planes on several machines.

One connection, made anew when it is lost; its schema is made at the start, under an advisory lock, so that several
control planes may start at once. A driver's message may quote values and is never passed on. Writers take turns by
another advisory lock, held until the transaction ends: what they read of the newest generation cannot be outrun.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import astuple, replace
from typing import Any, TypeVar

import psycopg
from psycopg import AsyncConnection, conninfo

from controlplane.documents import Document
from controlplane.postgres_schema import LOCK, SCHEMA, SCHEMA_VERSION, STATEMENTS, VERSION_QUERY
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
    UnusableStore,
)
from memplane.errors import Unavailable
from memplane.settings import Secret

log = logging.getLogger("memplane.controlplane.revisions")

CALL_S = 10.0
"""Most that one call may take, waiting for others included. Unmeasured."""
MIN_SERVER_VERSION = 140_000
"""PostgreSQL 14, as `server_version_num` says it."""

_COLUMNS = "generation, version, create_time_us, author, comment, origin"
_KEY_COLUMNS = "key_id, sha256, principal, create_time_us, expire_time_us, description, author, revoke_time_us"
_NEWEST = "SELECT coalesce(max(generation), 0) FROM memplane_control.revisions"

_Connection = AsyncConnection[tuple[Any, ...]]
_T = TypeVar("_T")


class PostgresRevisions:
    """A RevisionStore in a database; `open` makes one. Belongs to one event loop."""

    def __init__(self, dsn: Secret):
        self._dsn = dsn
        self._turn = asyncio.Lock()
        self._connection: _Connection | None = None
        self._last_failure = ""

    @classmethod
    async def open(cls, dsn: Secret) -> "PostgresRevisions":
        """Connects, and makes the schema where it is missing.

        Raises UnusableStore for a database that this cannot be done in or as, Unavailable when nothing answers.
        """
        store = cls(dsn)
        try:
            await store._call(_migrate)
        except BaseException:  # a start that is cancelled leaves no connection either
            await store.close()
            raise
        return store

    async def close(self) -> None:
        """See RevisionStore."""
        async with self._turn:
            await self._drop()

    async def newest(self) -> int:
        """See RevisionStore."""
        return await self._call(_newest)

    async def head(self) -> Head:
        """See RevisionStore."""

        async def read(connection: _Connection) -> Head:
            async with connection.transaction():
                await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                revision = await _revision(connection, await _newest(connection))
                return Head(revision, tuple(await _keys(connection, "revoke_time_us IS NULL")))

        return await self._call(read)

    async def get(self, generation: int) -> Revision | None:
        """See RevisionStore."""
        return await self._call(lambda connection: _revision(connection, generation))

    async def page(self, before: int, page_size: int) -> list[Revision]:
        """See RevisionStore."""
        query = (
            f"SELECT {_COLUMNS} FROM memplane_control.revisions WHERE generation < %s ORDER BY generation DESC LIMIT %s"  # noqa: S608 - constants
        )
        return [Revision(*row) for row in await self._rows(query, (before, page_size))]

    async def write(self, change: Change) -> None:
        """See RevisionStore."""

        async def write(connection: _Connection) -> None:
            async with connection.transaction():
                await connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
                await _write(connection, change)

        await self._call(write)
        self._last_failure = ""

    async def answer(self, author: str, request_id: str, now_us: int) -> Answer | None:
        """See RevisionStore."""
        query = (
            "SELECT author, request_id, payload_sha256, create_time_us, answer FROM memplane_control.answers"
            " WHERE author = %s AND request_id = %s AND create_time_us > %s"
        )
        rows = await self._rows(query, (author, request_id, now_us - REQUEST_KEPT_US))
        return Answer(*rows[0]) if rows else None

    async def folder(self, holder: str) -> FolderContent:
        """See RevisionStore."""
        rows = await self._rows("SELECT version, refusal FROM memplane_control.folders WHERE holder = %s", (holder,))
        return FolderContent(*rows[0]) if rows else FolderContent()

    async def brought_by_another(self, holder: str, version: str) -> bool:
        """See RevisionStore."""
        query = (
            "SELECT EXISTS (SELECT 1 FROM memplane_control.taken_contents WHERE version = %s AND number >"
            " coalesce((SELECT seen_number FROM memplane_control.folders WHERE holder = %s), 0))"
        )
        return bool((await self._rows(query, (version, holder)))[0][0])

    async def api_keys(self) -> list[ApiKeyRecord]:
        """See RevisionStore."""
        return await self._call(lambda connection: _keys(connection, "TRUE"))

    async def _rows(self, query: str, parameters: tuple[Any, ...]) -> list[tuple[Any, ...]]:
        async def read(connection: _Connection) -> list[tuple[Any, ...]]:
            return await (await connection.execute(query, parameters)).fetchall()

        return await self._call(read)

    async def _call(self, work: Callable[[_Connection], Awaitable[_T]]) -> _T:
        """Does the work on the connection. A failed one is dropped, so that the next call makes another."""
        try:
            async with asyncio.timeout(CALL_S), self._turn:
                try:
                    return await work(await self._connected())
                except (psycopg.Error, OSError, asyncio.CancelledError):
                    await self._drop()
                    raise
        except (psycopg.Error, OSError) as error:  # TimeoutError is an OSError
            self._note_failure(error)
            raise Unavailable("revision store") from None

    async def _connected(self) -> _Connection:
        if self._connection is None or self._connection.closed:
            self._connection = await AsyncConnection.connect(
                self._dsn,
                autocommit=True,
                connect_timeout=round(CALL_S / 2),
                prepare_threshold=None,  # a pooler in transaction mode may stand between
                application_name="memplane-control",
                keepalives_idle=30,
            )
        return self._connection

    async def _drop(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(psycopg.Error, OSError):
                await connection.close()

    def _note_failure(self, error: Exception) -> None:
        """One line until a write succeeds again: the store is asked twice a second."""
        sqlstate = error.sqlstate if isinstance(error, psycopg.Error) else None
        reason = f"{type(error).__name__}, {f'SQLSTATE {sqlstate}' if sqlstate else 'no answer'}"
        if reason != self._last_failure:
            log.error("the revision store at %s failed, nothing was changed: %s", address(self._dsn), reason)
        self._last_failure = reason


def address(dsn: Secret) -> str:
    """Host, port and database of a DSN, without who logs in. Raises UnusableStore for what is no DSN."""
    try:
        given = conninfo.conninfo_to_dict(dsn)
    except psycopg.ProgrammingError as error:
        raise UnusableStore("revisions-dsn: no DSN, such as postgresql://user:password@host/database") from error
    return f"{given.get('host', 'localhost')}:{given.get('port', 5432)}/{given.get('dbname', '')}"


async def _migrate(connection: _Connection) -> None:
    """Makes the tables, once, whoever comes first."""
    if connection.info.server_version < MIN_SERVER_VERSION:
        raise UnusableStore(f"PostgreSQL {connection.info.server_version // 10_000}; 14 or newer is needed")
    try:
        async with connection.transaction():
            await connection.execute("SELECT pg_advisory_xact_lock(%s)", (LOCK,))
            found = await _schema_version(connection)
            for statement in STATEMENTS if found == 0 else ():
                await connection.execute(statement)
    except psycopg.errors.InsufficientPrivilege as error:
        raise UnusableStore(
            f"the role of revisions-dsn may not make or use the schema {SCHEMA}: give it the database (GRANT CREATE ON "
            "DATABASE), or the schema that another role has made (ALTER SCHEMA ... OWNER TO)"
        ) from error
    if found not in (0, SCHEMA_VERSION):
        raise UnknownSchema(f"{SCHEMA} has schema {found}; this version of MemPlane reads {SCHEMA_VERSION}")


async def _schema_version(connection: _Connection) -> int:
    [(is_there,)] = await (await connection.execute(VERSION_QUERY)).fetchall()
    if not is_there:
        return 0
    query = "SELECT max(version) FROM memplane_control.schema_version"
    [(version,)] = await (await connection.execute(query)).fetchall()
    return int(version)


async def _newest(connection: _Connection) -> int:
    [(newest,)] = await (await connection.execute(_NEWEST)).fetchall()
    return int(newest)


async def _revision(connection: _Connection, generation: int) -> Revision | None:
    query = f"SELECT {_COLUMNS} FROM memplane_control.revisions WHERE generation = %s"  # noqa: S608 - constants
    row = await (await connection.execute(query, (generation,))).fetchone()
    if row is None:
        return None
    query = 'SELECT name, content FROM memplane_control.documents WHERE generation = %s ORDER BY name COLLATE "C"'
    documents = await (await connection.execute(query, (generation,))).fetchall()
    return replace(Revision(*row), documents=tuple(Document(name, bytes(content)) for name, content in documents))


async def _keys(connection: _Connection, condition: str) -> list[ApiKeyRecord]:
    query = (
        f"SELECT {_KEY_COLUMNS} FROM memplane_control.api_keys WHERE {condition}"  # noqa: S608 - constants
        ' ORDER BY create_time_us DESC, key_id COLLATE "C" DESC'
    )
    return [ApiKeyRecord(*row) for row in await (await connection.execute(query)).fetchall()]


async def _write(connection: _Connection, change: Change) -> None:
    if change.revision is not None:
        await _insert_revision(connection, change.revision)
    if change.new_key is not None:
        await _insert_key(connection, change.new_key)
    if change.ended_key is not None:
        statement = (
            "UPDATE memplane_control.api_keys SET revoke_time_us = %s WHERE key_id = %s AND revoke_time_us IS NULL"
        )
        await connection.execute(statement, (change.ended_key.revoke_time_us, change.ended_key.key_id))
    if change.answer is not None:
        await _insert_answer(connection, change.answer)
    if change.folder is not None:
        await _note_folder(connection, change.folder)


async def _insert_revision(connection: _Connection, revision: Revision) -> None:
    newest = await _newest(connection)
    if revision.generation != newest + 1:
        raise Outrun(newest)
    statement = f"INSERT INTO memplane_control.revisions ({_COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s)"  # noqa: S608 - constants
    await connection.execute(statement, astuple(revision)[:-1])
    async with connection.cursor() as cursor:
        await cursor.executemany(
            "INSERT INTO memplane_control.documents VALUES (%s, %s, %s)",
            [(revision.generation, document.name, document.content) for document in revision.documents],
        )


async def _insert_key(connection: _Connection, key: ApiKeyRecord) -> None:
    statement = (
        f"INSERT INTO memplane_control.api_keys ({_KEY_COLUMNS}) VALUES (%s, %s, %s, %s, %s, %s, %s, %s)"  # noqa: S608 - constants
        " ON CONFLICT (key_id) DO NOTHING"
    )
    if (await connection.execute(statement, astuple(key))).rowcount == 0:
        raise KeyIdTaken(key.key_id)


async def _insert_answer(connection: _Connection, answer: Answer) -> None:
    ended = "DELETE FROM memplane_control.answers WHERE create_time_us <= %s"
    await connection.execute(ended, (answer.create_time_us - REQUEST_KEPT_US,))
    statement = (
        "INSERT INTO memplane_control.answers VALUES (%s, %s, %s, %s, %s) ON CONFLICT (author, request_id)"
        " DO UPDATE SET payload_sha256 = excluded.payload_sha256, create_time_us = excluded.create_time_us,"
        " answer = excluded.answer"
    )
    await connection.execute(statement, astuple(answer))


async def _note_folder(connection: _Connection, note: FolderNote) -> None:
    version = note.content.version
    if note.is_taken:
        await connection.execute("INSERT INTO memplane_control.taken_contents (version) VALUES (%s)", (version,))
    seen = "SELECT coalesce(max(number), 0) FROM memplane_control.taken_contents WHERE version = %s"
    [(number,)] = await (await connection.execute(seen, (version,))).fetchall()
    await connection.execute(
        "DELETE FROM memplane_control.taken_contents"
        " WHERE number <= (SELECT max(number) FROM memplane_control.taken_contents) - %s",
        (FOLDER_CONTENTS_KEPT,),
    )
    await connection.execute(
        "INSERT INTO memplane_control.folders AS held VALUES (%s, %s, %s, %s) ON CONFLICT (holder) DO UPDATE SET"
        " version = excluded.version, refusal = excluded.refusal,"
        " seen_number = greatest(held.seen_number, excluded.seen_number)",
        (note.holder, version, note.content.refusal, number),
    )
