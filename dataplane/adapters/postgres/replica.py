"""A streaming replica for reads, used while it is known to be near enough to the primary."""

import asyncio
from collections.abc import Sequence
from typing import Final

from dataplane.adapters.postgres.options import BACKEND, PostgresOptions
from dataplane.adapters.postgres.pool import Pool, Row
from dataplane.adapters.postgres.reach import check
from dataplane.adapters.postgres.reads import PostgresReads
from dataplane.ending import end
from dataplane.errors import BackendUnavailable
from dataplane.model import Scope
from dataplane.ports import Problem
from memplane.settings import Secret

# The lag is 0 when everything received is replayed and the primary still sends; else the age of what was replayed
# last, which is too much on a quiet primary; NULL when nobody can tell.
_STATE = """
SELECT position, CASE WHEN NOT pg_is_in_recovery() THEN 0
    WHEN EXISTS (SELECT 1 FROM pg_stat_wal_receiver) AND pg_last_wal_receive_lsn() = pg_last_wal_replay_lsn() THEN 0
    ELSE extract(epoch FROM clock_timestamp() - pg_last_xact_replay_timestamp()) END::double precision
FROM memplane.last_position"""
_ASKING_S: Final = 0.25
"""Longest wait for a replica's state: beyond that the primary is the better choice. Unmeasured."""
_EXAMINING_S: Final = 1.0
"""Longest wait of an examination, which tells of the primary, too. Unmeasured."""


class Replica:
    """What one replica said of itself, and reads from it. Made by `open`."""

    def __init__(self, pool: Pool, options: PostgresOptions) -> None:
        self._pool = pool
        self._options = options
        self._reads = PostgresReads(pool)
        self._position = 0
        self._is_near = False
        self._asked_s = float("-inf")
        self._asking = asyncio.Lock()
        self._question: asyncio.Task[list[Row]] | None = None

    @classmethod
    async def open(cls, dsn: Secret, options: PostgresOptions) -> "Replica":
        """Makes the pool; a replica that does not answer is not used, and `problems` tells. Raises Misconfigured."""
        check(dsn, "replica_dsn")
        return cls(await Pool.open(dsn, options), options)

    async def close(self) -> None:
        """Idempotent."""
        if self._question is not None:
            self._question.add_done_callback(_forget)
            await end(self._question)
        await self._pool.close()

    async def reads(self, at_least: int, deadline_s: float) -> PostgresReads | None:
        """Reads that have everything up to a position; None: take the primary."""
        if not self._is_known(at_least):
            async with self._asking:
                if not self._is_known(at_least):
                    await self._ask(deadline_s)
        return self._reads if self._is_near and self._position >= at_least else None

    def _is_known(self, at_least: int) -> bool:
        """Whether the last answer will do: it is young, and said near and far enough, or not near at all."""
        now_s = asyncio.get_running_loop().time()
        is_young = now_s < self._asked_s + self._options.replica_memory_ms / 1_000
        return is_young and (not self._is_near or self._position >= at_least)

    async def _ask(self, deadline_s: float) -> None:
        loop = asyncio.get_running_loop()
        try:
            self._position, lag_s = await self._state(min(deadline_s, loop.time() + _ASKING_S))
            self._is_near = lag_s is not None and lag_s <= self._options.replica_max_lag_s
        except BackendUnavailable:
            self._is_near = False
        self._asked_s = loop.time()

    async def _state(self, deadline_s: float) -> tuple[int, float | None]:
        """The newest position there, and the lag in seconds, None when it is unknown. Raises BackendUnavailable."""
        if self._pool.is_sought:
            raise BackendUnavailable(BACKEND, f"{self._pool.address} did not answer and is looked for")
        loop = asyncio.get_running_loop()
        if self._question is None or self._question.done():
            asking = self._pool.read(Scope(()), _STATE, {}, loop.time() + _EXAMINING_S)
            self._question = loop.create_task(asking, name="record-store-replica")
        # Not cancelled: the driver, told to give up, waits for a server that is gone for 10 s (2026-11).
        await asyncio.wait({self._question}, timeout=deadline_s - loop.time())
        if not self._question.done():
            self._question.add_done_callback(_forget)
            self._pool.suspect()
            raise BackendUnavailable(BACKEND, f"{self._pool.address} did not answer in time")
        [(position, lag_s)] = self._question.result()
        return position, lag_s

    async def problems(self, deadline_s: float) -> Sequence[Problem]:
        """What keeps it from being used; asks for a second at most."""
        most_s = self._options.replica_max_lag_s
        try:
            _, lag_s = await self._state(min(deadline_s, asyncio.get_running_loop().time() + _EXAMINING_S))
        except BackendUnavailable as error:
            advice = f"start it or correct {BACKEND}.replica_dsn"
            text = f"the replica at {self._pool.address} is not read from ({error.words}); {advice}"
            return [Problem("REPLICA_UNAVAILABLE", text)]
        if lag_s is None:
            text = "the replica cannot tell its lag and is not read from; see pg_stat_wal_receiver there"
            return [Problem("REPLICA_LAG_UNKNOWN", text)]
        if lag_s > most_s:
            advice = "see what holds up its replay (long queries, disk, network) or raise replica_max_lag_s"
            text = f"the replica is {lag_s:.0f} s behind, more than {most_s:g} s, and is not read from; {advice}"
            return [Problem("REPLICA_LAGS", text)]
        return []


def _forget(question: "asyncio.Task[list[Row]]") -> None:
    """Takes the error of a question that nobody waits for."""
    if not question.cancelled():
        question.exception()
