"""What an error of the driver means: for people, and whether the options are the cause.

Nothing of a command may show: drivers put keys and values into their messages.
"""

import ssl
from collections.abc import Iterator, Mapping
from typing import Any

from redis.asyncio.sentinel import MasterNotFoundError
from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    BusyLoadingError,
    ClusterDownError,
    MovedError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisClusterException,
    RedisError,
)
from redis.exceptions import ConnectionError as NotConnected
from redis.exceptions import TimeoutError as NotInTime

from dataplane.adapters.redis.options import RedisMode, RedisOptions
from dataplane.errors import Misconfigured

DRIVER_ERRORS = (RedisError, RedisClusterException, OSError, RuntimeError)
"""All that redis-py raises when a call does not succeed; a RuntimeError is uvloop's word for a closed transport."""

OLDEST_VERSION = (6, 2)
"""The oldest Redis that has every command used here (XAUTOCLAIM came last); Valkey has them in each version."""

_WORDS: tuple[tuple[type[Exception], str], ...] = (
    (AuthenticationError, "refuses the user name or password"),
    (AuthorizationError, "refuses the user"),
    (NoPermissionError, "its user may not run a command that is needed"),
    (OutOfMemoryError, "is full (maxmemory)"),
    (ReadOnlyError, "is read-only, so it is a replica"),
    (BusyLoadingError, "is loading its data"),
    (ClusterDownError, "the cluster is down"),
    (MasterNotFoundError, "the Sentinels know of no master, or do not answer"),
    (NotInTime, "does not answer in time"),
    (NotConnected, "cannot be reached"),
    (RuntimeError, "the connection was closed"),
    (RedisClusterException, "no node of the cluster can be reached"),
)

_TOLD = (
    (("NOAUTH", "WRONGPASS", "invalid username-password", "without any password configured"), "access"),
    (("unknown command 'SENTINEL'",), "no sentinel"),
    (("Cluster mode is not enabled", "cluster support disabled"), "no cluster"),
    (("No master found",), "no master"),
    (("DB index is out of range", "invalid DB index"), "database"),
)

_ADVICE = {
    "access": "it refuses the user name or password; check username and password",
    "certificate": "the server's certificate is not signed for its name by an authority given; check tls and ca_file",
    "no tls": "the server does not speak TLS on this port; leave tls out, or take its TLS port",
    "no sentinel": "the server is not a Sentinel; set mode to standalone, or give the addresses of Sentinels",
    "no cluster": "the server is not a node of a cluster; set mode to standalone",
    "database": "the server has no database of this number; set database to 0",
    "cluster": "the server is a node of a cluster; set mode to cluster",
    "sentinel": "the address is a Sentinel's; set mode to sentinel and name the master",
}


def words_of(error: Exception) -> str:
    """What happened."""
    return next((words for kind, words in _WORDS if isinstance(error, kind)), type(error).__name__)


def misconfiguration(error: Exception, options: RedisOptions) -> str:
    """What is wrong with the options and what to do, if that is why a call failed; else ""."""
    kind = next((kind for cause in _chain(error) if (kind := _kind_of(cause))), "")
    if kind == "no master":
        return f"the Sentinels know of no master {options.master_name!r}; check master_name"
    return _ADVICE.get(kind, "")


def check_server(options: RedisOptions, backend: str, server: Mapping[str, Any]) -> None:
    """Raises Misconfigured for a server (its INFO) that is too old or of another form. What it hides passes."""
    if options.mode is RedisMode.CLUSTER and options.database != 0:
        raise Misconfigured(backend, "a cluster has database 0 alone; set database to 0")
    version = str(server.get("redis_version", ""))
    if version and "valkey_version" not in server and version_of(version) < OLDEST_VERSION:
        raise Misconfigured(backend, f"Redis {version} is too old; take 6.2 or newer")
    form = str(server.get("redis_mode", ""))
    if form == "sentinel" or (form == "cluster" and options.mode is not RedisMode.CLUSTER):
        raise Misconfigured(backend, _ADVICE[form])


def version_of(text: str) -> tuple[int, ...]:
    """The first two numbers of a version."""
    return tuple(int(part) for part in text.split(".")[:2] if part.isdigit())


def _kind_of(error: BaseException) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return "certificate"
    if isinstance(error, ssl.SSLError):
        return "no tls"
    if isinstance(error, AuthenticationError | AuthorizationError):
        return "access"
    if isinstance(error, MovedError):
        return "cluster"
    told = str(error)
    return next((kind for words, kind in _TOLD if any(word in told for word in words)), "")


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    """The error and what caused it; at most ten."""
    for _ in range(10):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__
