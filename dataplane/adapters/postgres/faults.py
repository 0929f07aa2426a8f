"""PostgreSQL's errors in our own words.

A driver's message may quote values of rows and is never passed on: what is kept is the SQLSTATE, the class of the error
and our own reading of it.
"""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType

import psycopg

from dataplane.adapters.postgres.options import BACKEND
from dataplane.errors import BackendUnavailable

_MEANS: Mapping[str, str] = MappingProxyType(
    {
        "25006": "the server is read-only (a standby, or default_transaction_read_only)",
        "42501": "a grant is missing; run memplane migrate",
        "42P01": "a table is missing; run memplane migrate",
        "3F000": "the schema is missing; run memplane migrate",
        "53100": "the server's disk is full",
        "53200": "the server is out of memory",
        "53300": "the server takes no more connections",
        "57014": "deadline passed",
        "57P01": "the server is shutting down",
        "57P02": "the server crashed",
        "57P03": "the server is starting up or shutting down",
        "58030": "the server's disk failed",
        "28P01": "the password is refused",
        "3D000": "there is no such database",
    }
)

FOREIGN_SOCKET = "is used by transport"
"""What the loop says to a driver that waits for a socket which was closed, and its number given to a new one."""

OUTRUN = (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected)
"""Another transaction was first and this one was undone: it may succeed when done again."""


def means(error: psycopg.Error) -> str:
    """What an error says, without anything of a row."""
    sqlstate = error.sqlstate or "no SQLSTATE"
    return f"{_MEANS.get(sqlstate, 'an error')} ({type(error).__name__}, {sqlstate})"


def as_unavailable(error: psycopg.Error, backend: str = BACKEND) -> BackendUnavailable:
    """The domain error for an error of the driver or the server."""
    if error.sqlstate is None and isinstance(error, psycopg.OperationalError):
        return BackendUnavailable(backend, f"the connection failed ({type(error).__name__})")
    return BackendUnavailable(backend, means(error))


@contextmanager
def translated(backend: str = BACKEND) -> Iterator[None]:
    """Turns errors of the driver, the server and time limits into BackendUnavailable.

    A task that was cancelled ends as such, also where the driver told of a broken connection instead.
    """
    try:
        yield
    except psycopg.Error as error:
        if _is_cancelled():
            raise asyncio.CancelledError from error
        raise as_unavailable(error, backend) from error
    except TimeoutError:
        raise BackendUnavailable(backend, "deadline passed") from None
    except OSError as error:
        raise BackendUnavailable(backend, error.strerror or type(error).__name__) from error
    except RuntimeError as error:
        if FOREIGN_SOCKET not in str(error):
            raise
        raise BackendUnavailable(backend, "the connection was closed") from error


def _is_cancelled() -> bool:
    try:
        task = asyncio.current_task()
    except RuntimeError:  # no event loop: a migration
        return False
    return task is not None and task.cancelling() > 0


def remaining_s(deadline_s: float, backend: str = BACKEND) -> float:
    """Seconds left; raises BackendUnavailable when there are none."""
    left_s = deadline_s - asyncio.get_running_loop().time()
    if left_s <= 0:
        raise BackendUnavailable(backend, "deadline passed")
    return left_s


def lost(connection: psycopg.AsyncConnection[tuple[object, ...]], error: psycopg.Error) -> bool:
    """True when the connection is gone, so that another one may do."""
    return isinstance(error, psycopg.OperationalError) and connection.closed
