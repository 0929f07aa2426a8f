"""Connections, each lent for one transaction that knows whose memories it may touch.

Every transaction begins by setting, for itself alone: the role, the caller's namespaces (read by the policies of
row-level security) and a time limit. So nothing is left on a connection, and a pooler in transaction mode may stand
between. Nothing set means that no row is seen.

While nothing answers, calls fail at once and one task looks for the server: a pool of connections would let each caller
wait in vain. The connections from before are dropped, and new ones are made once it answers.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import psycopg
from psycopg import AsyncConnection
from psycopg.abc import RV, PQGen
from psycopg.errors import QueryCanceled
from psycopg.pq import TransactionStatus
from psycopg.waiting import wait_async
from psycopg_pool import AsyncConnectionPool, PoolClosed, PoolTimeout

from dataplane.adapters.postgres.arrays import adapters
from dataplane.adapters.postgres.faults import OUTRUN, lost, remaining_s, translated
from dataplane.adapters.postgres.options import BACKEND, PostgresOptions
from dataplane.adapters.postgres.reach import LOOK_AGAIN_S, address, answers
from dataplane.ending import end
from dataplane.errors import BackendUnavailable
from dataplane.model import Scope
from memplane.settings import Secret

log = logging.getLogger("memplane.postgres")

Connection = AsyncConnection[tuple[Any, ...]]
Parameters = Mapping[str, Any]
Row = tuple[Any, ...]

_SETTINGS: Final = (
    "SELECT set_config('statement_timeout', %(timeout_ms)s, true), set_config('role', %(role)s, true),"
    " set_config('memplane.own', %(own)s::text[]::text, true),"
    " set_config('memplane.shared', %(shared)s::text[]::text, true)"
)
_CLOSING_S: Final = 0.1
"""How long connections that are being made to a server that does not answer are waited for. Unmeasured."""
_GIVING_UP_S: Final = 0.1
"""How long a server has to break off the statement of a caller that gave up, before its connection is. Unmeasured."""


class PromptConnection(AsyncConnection[Row]):
    """A connection whose caller, told to give up, does so at once.

    The driver's own asks the server to break off, and waits up to 10 s for one that is silent (psycopg 3.3). What goes
    on in a server that did not hear of it ends by the statement's own time limit.
    """

    async def wait(self, gen: PQGen[RV], interval: float = 0.1, timeout: float | None = None) -> RV:
        """See the driver."""
        try:
            return await wait_async(gen, self.pgconn.socket, interval=interval, timeout=timeout)
        except asyncio.CancelledError:
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                await self._break_off(gen)
            raise

    async def _break_off(self, gen: PQGen[RV]) -> None:
        try:
            async with asyncio.timeout(_GIVING_UP_S):
                await self.cancel_safe(timeout=_GIVING_UP_S)
                await wait_async(gen, self.pgconn.socket, interval=_GIVING_UP_S)
        except QueryCanceled:
            return  # as asked
        except (psycopg.Error, TimeoutError, OSError):
            self.pgconn.finish()
        except asyncio.CancelledError:
            self.pgconn.finish()
            raise


class Pool:
    """Connections to one server, at most `options.pool_size`. Made by `open`; `backend` is named in its errors."""

    def __init__(self, dsn: Secret, options: PostgresOptions, backend: str) -> None:
        self._dsn = dsn
        self._options = options
        self._backend = backend
        self._closed = False
        self._is_down = False
        self._looking: asyncio.Task[None] | None = None
        self._connections = self._new_connections()

    @classmethod
    async def open(cls, dsn: Secret, options: PostgresOptions, backend: str = BACKEND) -> "Pool":
        """Makes the pool; connections are made as they are needed, so this does not fail when nothing answers."""
        pool = cls(dsn, options, backend)
        await pool._connections.open()
        return pool

    def _new_connections(self) -> AsyncConnectionPool[PromptConnection]:
        return AsyncConnectionPool(
            self._dsn,
            connection_class=PromptConnection,
            min_size=0,
            max_size=self._options.pool_size,
            kwargs=connection_arguments(self._options),
            open=False,
            num_workers=2,
            max_idle=300,
            reconnect_timeout=0,  # it tells of a failure at once, and `_look` does what is needed
            reconnect_failed=lambda _: self.suspect(),
        )

    async def close(self) -> None:
        """Closes the connections; calls under way fail. Idempotent."""
        self._closed = True
        if self._looking is not None:
            await end(self._looking)
        await self._connections.close()

    def check(self, deadline_s: float) -> float:
        """Seconds left; raises BackendUnavailable past the deadline, while nothing answers and after `close`."""
        if self._closed or self._is_down:
            raise self._refusal()
        return remaining_s(deadline_s, self._backend)

    def _refusal(self) -> BackendUnavailable:
        return BackendUnavailable(self._backend, "closed" if self._closed else f"nothing answers at {self.address}")

    @property
    def address(self) -> str:
        """HOST:PORT."""
        return address(self._dsn)

    @asynccontextmanager
    async def connection(self, deadline_s: float) -> AsyncIterator[Connection]:
        """Lends a connection in autocommit; errors of the driver leave as BackendUnavailable."""
        with translated(self._backend):
            async with self.lend(deadline_s) as connection:
                yield connection

    @asynccontextmanager
    async def lend(self, deadline_s: float) -> AsyncIterator[Connection]:
        """Lends a connection in autocommit; errors of the driver leave as they are, passed time as TimeoutError.

        Raises BackendUnavailable when there is none to lend for `acquire_timeout_s`, or nothing answers.
        """
        wait_s = min(self.check(deadline_s), self._options.acquire_timeout_s)
        try:
            async with self._connections.connection(timeout=wait_s) as connection, asyncio.timeout_at(deadline_s):
                yield connection
        except PoolTimeout:
            self.suspect()
            text = f"no connection to {self.address} was free or could be made within {wait_s:.2g} s"
            raise BackendUnavailable(self._backend, text) from None
        except PoolClosed:
            raise self._refusal() from None

    @property
    def is_sought(self) -> bool:
        """True while it is not known whether the server answers, or known that it does not."""
        return self._looking is not None and not self._looking.done()

    def suspect(self) -> None:
        """Sees whether the server is there, after a failure that it would explain if it is not."""
        if not self._closed and not self.is_sought:
            self._looking = asyncio.create_task(self._look(), name=f"looking-for-{self._backend}")

    async def _look(self) -> None:
        if await answers(self._dsn):
            return
        self._is_down = True
        log.warning("%s: nothing answers at %s; calls fail until something does", self._backend, self.address)
        await self._connections.close(timeout=_CLOSING_S)  # ends the waiting of those who wait for one
        while not await answers(self._dsn):  # noqa: ASYNC110 - there is no event of a server's return
            await asyncio.sleep(LOOK_AGAIN_S)
        self._connections = self._new_connections()
        await self._connections.open()
        self._is_down = False
        log.warning("%s: the server at %s answers again", self._backend, self.address)

    @asynccontextmanager
    async def transaction(self, scope: Scope, deadline_s: float) -> AsyncIterator[Connection]:
        """Lends a connection within a transaction in a scope; committed at the end, undone when an error leaves it.

        Errors of the driver leave as they are.
        """
        async with self.lend(deadline_s) as connection, connection.transaction():
            await self.enter(connection, scope, deadline_s)
            yield connection

    async def enter(self, connection: Connection, scope: Scope, deadline_s: float) -> None:
        """Sets the scope of the transaction under way from now on; in a pipeline this costs no round trip."""
        left_s = min(remaining_s(deadline_s, self._backend), self._options.statement_timeout_s)
        settings = {
            "timeout_ms": str(max(1, int(left_s * 1_000))),
            "role": self._options.system_role if scope.system else "none",
            "own": list(scope.namespaces),
            "shared": list(scope.shared),
        }
        await connection.execute(_SETTINGS, settings)

    async def read(self, scope: Scope, statement: str, parameters: Parameters, deadline_s: float) -> list[Row]:
        """The rows of one statement in a scope; see `transact`."""
        return await self.transact(scope, [(statement, parameters)], deadline_s)

    async def transact(
        self,
        scope: Scope,
        queries: Sequence[tuple[str, Parameters]],
        deadline_s: float,
        *,
        is_repeatable: bool = True,
    ) -> list[Row]:
        """Runs statements in a scope as one transaction, in one round trip; the rows of the last one, if it has any.

        What lost against another transaction is done again, and what met a dead connection, too, if it is repeatable:
        that it may be done twice. Raises BackendUnavailable.
        """
        with translated(self._backend):
            while True:
                async with self.lend(deadline_s) as connection:
                    try:
                        return await self._transact(connection, scope, queries, deadline_s)
                    except OUTRUN:
                        continue
                    except psycopg.Error as error:
                        if not lost(connection, error):
                            raise
                        failure = error
                await self.forget_dead(deadline_s)
                if not is_repeatable:
                    raise failure

    async def _transact(
        self, connection: Connection, scope: Scope, queries: Sequence[tuple[str, Parameters]], deadline_s: float
    ) -> list[Row]:
        # A pipeline in autocommit is one transaction, up to its end.
        async with connection.cursor(binary=True) as last:
            async with connection.pipeline():
                await self.enter(connection, scope, deadline_s)
                for statement, parameters in queries[:-1]:
                    await connection.execute(statement, parameters)
                await last.execute(*queries[-1])
            return await last.fetchall() if last.description else []

    async def forget_dead(self, deadline_s: float) -> None:
        """Drops idle connections that the server has closed, so that not every caller meets one."""
        async with asyncio.timeout_at(deadline_s):
            await self._connections.check()


def connection_arguments(options: PostgresOptions) -> dict[str, Any]:
    """What every connection is made with."""
    return {
        "autocommit": True,
        "context": adapters(),
        "prepare_threshold": options.prepare_threshold or None,
        "connect_timeout": round(options.connect_timeout_s),
        "application_name": "memplane",
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
    }
