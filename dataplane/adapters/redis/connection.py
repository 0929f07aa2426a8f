"""A connection to Redis in any of its forms, whose failures are ours."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from redis.asyncio import Redis, RedisCluster
from redis.asyncio.client import Pipeline
from redis.asyncio.cluster import ClusterNode, ClusterPipeline
from redis.asyncio.connection import Connection
from redis.asyncio.retry import Retry
from redis.asyncio.sentinel import MasterNotFoundError, Sentinel
from redis.backoff import ExponentialBackoff
from redis.exceptions import ConnectionError as NotConnected
from redis.exceptions import NoPermissionError, ResponseError
from redis.exceptions import TimeoutError as NotInTime

from dataplane.adapters.redis.diagnosis import DRIVER_ERRORS, check_server, misconfiguration, words_of
from dataplane.adapters.redis.options import RedisMode, RedisOptions
from dataplane.errors import BackendUnavailable, Misconfigured

RETRIES = 2
"""How often a call is sent again, on a new connection, after one that broke. Unmeasured."""
BROKEN: tuple[type[Exception], ...] = (NotConnected, NotInTime, RuntimeError)
"""How a connection breaks; a RuntimeError is uvloop's word for a transport that is closed."""


class RedisConnection:
    """A client of a Redis and its key prefix; errors become BackendUnavailable of `backend`.

    Answers are bytes, by RESP2. Many calls may be in flight at once.
    """

    def __init__(self, options: RedisOptions, backend: str):
        self.options = options
        self.backend = backend
        self.runs = Runs()
        self._slots = asyncio.Semaphore(options.connections)
        self._sentinel: Sentinel | None = None
        self.client: Redis | RedisCluster = self._client()

    @classmethod
    async def open(cls, options: RedisOptions, backend: str, deadline_s: float) -> "RedisConnection":
        """Connects and looks whether it can be used.

        Raises Misconfigured when it answers but cannot be used as configured, BackendUnavailable when it does not.
        """
        connection = cls(options, backend)
        try:
            check_server(options, backend, await connection._first_look(deadline_s))
        except BaseException:
            await connection.close()
            raise
        return connection

    def key(self, *parts: str) -> str:
        """The name of a key: the prefix and the parts, with colons between. Parts hold nothing of content."""
        return ":".join((self.options.prefix, *parts))

    def pipeline(self) -> Pipeline | ClusterPipeline:
        """Commands sent together, not as a transaction; use it as a context manager, inside `calling`."""
        if isinstance(self.client, RedisCluster):
            return self.client.pipeline()
        return self.client.pipeline(transaction=False)

    @asynccontextmanager
    async def calling(self, deadline_s: float) -> AsyncIterator[None]:
        """Bounds what is called inside by the deadline, and turns what the driver raises into BackendUnavailable."""
        try:
            async with asyncio.timeout_at(deadline_s), self._slots:
                yield
        except TimeoutError:
            raise BackendUnavailable(self.backend, "does not answer in time") from None
        except DRIVER_ERRORS as error:
            raise BackendUnavailable(self.backend, words_of(error)) from None

    async def info(self, section: str) -> Mapping[str, Any]:
        """A section of INFO, of one node of a cluster; empty when it may not be asked. Raises as the driver does."""
        target = {}
        if isinstance(self.client, RedisCluster):
            await self.client.initialize()
            target = {"target_nodes": self.client.get_default_node()}
        try:
            return dict(await self.client.info(section, **target))
        except ResponseError as error:
            if is_forbidden(error):
                return {}
            raise

    async def close(self) -> None:
        """Closes every connection. Idempotent."""
        await self.client.aclose()
        for sentinel in self._sentinel.sentinels if self._sentinel is not None else ():
            await sentinel.aclose()

    async def _first_look(self, deadline_s: float) -> Mapping[str, Any]:
        hint = "; does it speak TLS on this port?" if self.options.tls is not None else ""
        try:
            async with asyncio.timeout_at(deadline_s):
                await self.client.ping()
                return await self.info("server")
        except (TimeoutError, NotInTime):
            raise BackendUnavailable(self.backend, f"does not answer in time{hint}") from None
        except DRIVER_ERRORS as error:
            problem = misconfiguration(error, self.options)
            if problem and not (isinstance(error, MasterNotFoundError) and not await self._has_sentinel(deadline_s)):
                raise Misconfigured(self.backend, problem) from None
            raise BackendUnavailable(self.backend, words_of(error)) from None

    async def _has_sentinel(self, deadline_s: float) -> bool:
        """Whether any Sentinel answers."""
        for sentinel in self._sentinel.sentinels if self._sentinel is not None else ():
            try:
                async with asyncio.timeout_at(deadline_s):
                    await sentinel.ping()
            except (TimeoutError, *DRIVER_ERRORS):
                continue
            return True
        return False

    def _client(self) -> Redis | RedisCluster:
        options = self.options
        access = {"username": options.username or None, "password": options.password or None}
        direct: dict[str, Any] = {**_common(options), **access}
        if options.mode is RedisMode.CLUSTER:
            return _cluster(options, direct, self.runs.note)
        direct["db"] = options.database
        if options.mode is RedisMode.SENTINEL:
            access = {"username": options.sentinel_username or None, "password": options.sentinel_password or None}
            self._sentinel = Sentinel(  # type: ignore[no-untyped-call]  # redis-py types it not
                options.addresses, sentinel_kwargs={**_common(options), **access}, **direct
            )
            found: Redis = self._sentinel.master_for(options.master_name, redis_connect_func=self.runs.note)
            return found
        host, port = options.addresses[0]
        client = Redis(host=host, port=port, **direct)
        client.connection_pool.connection_kwargs["redis_connect_func"] = self.runs.note
        return client


class Runs:
    """Which run of which server answers, learned whenever a connection is made.

    A server that was started again may hold an older state (from a snapshot), and so may a replica that was promoted:
    who relies on what was read in one run compares runs.
    """

    def __init__(self) -> None:
        self._runs: dict[tuple[str, int], str] = {}
        self._last = ""

    def of(self, host: str, port: int) -> str:
        """The run of a server; "" when it is not known."""
        return self._runs.get((host, port), "")

    @property
    def last(self) -> str:
        """The run of the server connected to last; "" when it is not known."""
        return self._last

    async def note(self, connection: Connection) -> None:
        """Does what a connection does when made, then asks the server for its run."""
        await connection.on_connect()
        await connection.send_command("INFO", "server")
        try:
            told = await connection.read_response()
        except ResponseError:  # it may be forbidden
            told = b""
        text = told.decode() if isinstance(told, bytes) else str(told)
        run = next((line[7:].strip() for line in text.splitlines() if line.startswith("run_id:")), "")
        self._runs[(connection.host, int(connection.port))] = self._last = run


def is_forbidden(error: ResponseError) -> bool:
    """Whether a server lets this user not run a command, or has it renamed away, as managed ones do."""
    told = str(error).lower()
    return isinstance(error, NoPermissionError) or "unknown command" in told or "not allowed" in told


def _cluster(options: RedisOptions, direct: Mapping[str, Any], on_connect: Callable[[Connection], Any]) -> RedisCluster:
    nodes = [ClusterNode(host, port) for host, port in options.addresses]
    cluster = RedisCluster(startup_nodes=nodes, max_connections=options.connections, **direct)
    cluster.connection_kwargs["redis_connect_func"] = on_connect
    for node in cluster.nodes_manager.startup_nodes.values():
        node.connection_kwargs["redis_connect_func"] = on_connect
    return cluster


def _common(options: RedisOptions) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "socket_timeout": None,  # every call has a deadline of its own
        "socket_connect_timeout": options.connect_timeout_s,
        "retry": Retry(ExponentialBackoff(cap=0.1, base=0.01), RETRIES, BROKEN),  # type: ignore[arg-type]  # any is kept
        "protocol": 2,
    }
    if options.tls is not None:
        files = {
            "ssl_ca_certs": options.tls.ca_file,
            "ssl_certfile": options.tls.cert_file,
            "ssl_keyfile": options.tls.key_file,
        }
        settings |= {name: str(path) for name, path in files.items() if path is not None}
        settings |= {"ssl": True, "ssl_check_hostname": options.tls.check_hostname}
    return settings
