"""Logging in, and what is wrong when that fails, told so that an administrator can put it right."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

import psycopg
from psycopg import AsyncConnection, Connection, conninfo

from dataplane.adapters.postgres.options import BACKEND, MIN_SERVER_VERSION, PostgresOptions
from dataplane.adapters.postgres.pool import connection_arguments
from dataplane.adapters.postgres.reach import address, check, unreadable
from dataplane.errors import BackendUnavailable, Misconfigured
from memplane.settings import Secret

# libpq gives no SQLSTATE to a login that failed; the server's words are all there is.
_REFUSALS = (
    ("password authentication failed", "the password or the role of {where} is wrong"),
    ("no password supplied", "{where} needs a password"),
    ("no pg_hba.conf entry", "the server does not let {where} in from here; see its pg_hba.conf"),
    ("is not permitted to log in", "the role of {where} may not log in; run ALTER ROLE ... LOGIN"),
)


async def connect(dsn: Secret, options: PostgresOptions) -> AsyncConnection[tuple[Any, ...]]:
    """One connection. Raises Misconfigured when the server refuses the login, BackendUnavailable when none answers."""
    check(dsn, "dsn")
    try:
        return await AsyncConnection.connect(dsn, **connection_arguments(options))
    except psycopg.OperationalError as error:
        refuse(dsn, "dsn", error)


@contextmanager
def connect_as_owner(options: PostgresOptions) -> Iterator[Connection[tuple[Any, ...]]]:
    """One connection for migrations; raises as `connect` does, and Misconfigured for a server that cannot take them."""
    dsn = options.migrate_dsn
    if dsn is None:
        raise Misconfigured(BACKEND, "migrate_dsn is missing: the DSN of the role that owns the tables")
    check(dsn, "migrate_dsn")
    check(options.dsn, "dsn")
    try:
        connection = Connection.connect(dsn, **connection_arguments(options))
    except psycopg.OperationalError as error:
        refuse(dsn, "migrate_dsn", error)
    with connection:
        check_version(connection.info.server_version)
        [(is_standby,)] = connection.execute("SELECT pg_is_in_recovery()").fetchall()
        if is_standby:
            raise Misconfigured(BACKEND, "migrate_dsn leads to a standby; give the primary's")
        yield connection


def check_version(server_version: int) -> None:
    """Raises Misconfigured for a server that is too old; `server_version` as libpq counts (140005 is 14.5)."""
    if server_version < MIN_SERVER_VERSION:
        raise Misconfigured(BACKEND, f"the server is PostgreSQL {server_version // 10_000}; 14 or newer is needed")


def refuse(dsn: Secret, name: str, error: psycopg.OperationalError) -> NoReturn:
    """Raises what a failed login comes to; `name` is that of the setting."""
    said = str(error)
    where = _where(dsn)
    for words, meaning in _REFUSALS:
        if words in said:
            raise Misconfigured(BACKEND, meaning.format(where=where)) from None
    if 'database "' in said and "does not exist" in said:
        raise Misconfigured(BACKEND, f"there is no such database: {where}") from None
    if 'role "' in said and "does not exist" in said:
        raise Misconfigured(BACKEND, f"there is no such role: {where}") from None
    if "SSL" in said or "certificate" in said:
        raise Misconfigured(BACKEND, f"TLS with {where} failed; see sslmode and sslrootcert of the DSN") from None
    if option := unreadable(said):
        raise Misconfigured(BACKEND, f"{name} has a value for {option} that PostgreSQL does not know") from None
    user = conninfo.conninfo_to_dict(dsn).get("user")
    advice = f"start the server or correct {BACKEND}.{name}"
    raise BackendUnavailable(BACKEND, f"nothing answers at {address(dsn)} (user {user}); {advice}") from None


def _where(dsn: Secret) -> str:
    """Who and where, without the password."""
    given = conninfo.conninfo_to_dict(dsn)
    return f"{given.get('user')} at {address(dsn)}/{given.get('dbname')}"
