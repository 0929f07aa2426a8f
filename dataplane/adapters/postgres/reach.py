"""Where a server is, and whether anything answers there."""

import asyncio
import re
from itertools import zip_longest
from typing import Final

import psycopg
from psycopg import AsyncConnection, conninfo

from dataplane.adapters.postgres.options import BACKEND
from dataplane.errors import Misconfigured
from memplane.settings import Secret

LOOK_AGAIN_S: Final = 0.25
"""How often a server that did not answer is looked for. Unmeasured."""
_PATIENCE_S: Final = 1.0
"""How long an answer is waited for: a server is found again within this and LOOK_AGAIN_S of its return. Unmeasured."""
_LIBPQ_PATIENCE_S: Final = 2
"""The least that libpq takes."""
_MOST_PORT: Final = 65_535
# libpq reads these only when it connects, and says so in words alone.
_UNREADABLE: Final = re.compile(r"invalid (?!integer )([a-z_]+) value|for connection option \"([a-z_]+)\"")

_BY_SERVER: Final = re.compile(r"failed: \w+:  ")
"""What libpq passes on of a server begins with a severity, in the server's language, and two spaces."""
_NOT_NOW: Final = ("starting up", "shutting down", "in recovery mode", "not accepting connections")


def check(dsn: Secret, name: str) -> None:
    """Raises Misconfigured for a text that is no DSN; the text itself is never shown, for it holds a password."""
    try:
        given = conninfo.conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        raise Misconfigured(
            BACKEND, f"{name} is not a DSN such as postgresql://memplane_app:PASSWORD@host:5432/memplane"
        ) from None
    if not given.get("dbname") or not given.get("user"):
        raise Misconfigured(BACKEND, f"{name} names no database or no user: postgresql://user:password@host/database")
    if not all(_is_port(port) for port in _listed(given.get("port"))):
        raise Misconfigured(BACKEND, f"{name} has a port that is no number from 1 to {_MOST_PORT}; 5432 is usual")


def unreadable(said: str) -> str:
    """The option of a DSN whose value libpq refused, going by its words; "" when it speaks of something else."""
    found = _UNREADABLE.search(said)
    return (found[1] or found[2]) if found else ""


def address(dsn: Secret) -> str:
    """HOST:PORT, of several servers with commas between; no user and no password."""
    given = conninfo.conninfo_to_dict(dsn)
    hosts = _listed(given.get("host") or given.get("hostaddr")) or ["the local socket"]
    ports = _listed(given.get("port")) or ["5432"]
    pairs = zip_longest(hosts, ports[: len(hosts)], fillvalue=ports[0])
    return ", ".join(f"{host}:{port or 5432}" for host, port in pairs)


async def answers(dsn: Secret) -> bool:
    """True when a server answers there, if only to refuse the login; one that starts up or shuts down does not yet."""
    try:
        async with asyncio.timeout(_PATIENCE_S):
            connection = await AsyncConnection.connect(
                dsn, connect_timeout=_LIBPQ_PATIENCE_S, application_name="memplane"
            )
    except (psycopg.Error, OSError, TimeoutError) as error:  # whatever it is: who looks must go on looking
        said = str(error)
        return bool(_BY_SERVER.search(said)) and not any(words in said for words in _NOT_NOW)
    await connection.close()
    return True


def _listed(text: str | int | None) -> list[str]:
    return str(text).split(",") if text else []


def _is_port(text: str) -> bool:
    return not text or (text.isascii() and text.isdigit() and 0 < int(text) <= _MOST_PORT)
