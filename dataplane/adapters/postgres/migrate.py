"""Brings a database to the newest schema, with its roles, rights and partitions.

All of it is one transaction under an advisory lock: any number of migrations may start at once, and a database is never
between two schemas. Doing it again changes nothing.
"""

from collections.abc import Iterator

import psycopg

from dataplane.adapters.postgres import access
from dataplane.adapters.postgres.access import OwnerConnection
from dataplane.adapters.postgres.faults import translated
from dataplane.adapters.postgres.login import connect_as_owner
from dataplane.adapters.postgres.options import BACKEND, MONTHS_AHEAD, PostgresOptions
from dataplane.adapters.postgres.schema import READ_APPLIED, due, read_migrations
from dataplane.errors import Misconfigured

_LOCK = 7_236_833_521_446_216
"""Any number, the same for every release."""
_MIGRATIONS_TABLE = """
CREATE TABLE memplane.schema_migrations (
    version    integer     NOT NULL PRIMARY KEY,
    name       text        NOT NULL,
    checksum   text        NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
)"""


def migrate(options: PostgresOptions, *, is_check: bool = False) -> list[str]:
    """What was missing and was made; with `is_check`, what is missing, and nothing is made.

    Raises Misconfigured for a database or role that this cannot be done with or as, and BackendUnavailable.
    """
    with translated(), connect_as_owner(options) as connection:
        try:
            with connection.transaction(force_rollback=is_check):
                connection.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
                return list(_steps(connection, options))
        except psycopg.errors.InsufficientPrivilege as error:
            raise Misconfigured(
                BACKEND,
                "the role of migrate_dsn may not make or change the schema memplane; give it the database with "
                "ALTER DATABASE ... OWNER TO ..., or log in as the owner of the schema",
            ) from error


def _steps(connection: OwnerConnection, options: PostgresOptions) -> Iterator[str]:
    yield from _make_schema(connection)
    yield from access.take_back(connection, options)
    applied = {row[0]: row[1] for row in connection.execute(READ_APPLIED)}
    for migration in due(read_migrations(), applied):
        connection.execute(migration.text.encode())
        connection.execute(
            "INSERT INTO memplane.schema_migrations (version, name, checksum) VALUES (%s, %s, %s)",
            (migration.version, migration.name, migration.checksum),
        )
        yield f"migration {migration.name}"
    yield from access.make_roles(connection, options)
    yield from access.grant(connection, options)
    [(made,)] = connection.execute("SELECT memplane.make_partitions(%s)", (MONTHS_AHEAD,)).fetchall()
    if made:
        yield f"{made} partitions"


def _make_schema(connection: OwnerConnection) -> Iterator[str]:
    if connection.execute("SELECT to_regnamespace('memplane')").fetchall() == [(None,)]:
        connection.execute("CREATE SCHEMA memplane")
        yield "schema memplane"
    if connection.execute("SELECT to_regclass('memplane.schema_migrations')").fetchall() == [(None,)]:
        connection.execute(_MIGRATIONS_TABLE)
