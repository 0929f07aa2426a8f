"""The write queue in the record store's database, for any number of data planes; see `queue_statements` for its rules.

What was accepted is as safe as any other transaction of the server. Nobody tells other processes of a write, since a
NOTIFY would make all that commit wait for each other: a waiting taker looks.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from dataplane.adapters.postgres import index_opening
from dataplane.adapters.postgres import queue_statements as statements
from dataplane.adapters.postgres.options import PostgresOptions
from dataplane.adapters.postgres.pool import Parameters, Pool
from dataplane.adapters.queue_limits import QUEUE_RANGES
from dataplane.adapters.queue_numbers import number_of
from dataplane.changes import QueueDepth, QueuedWrite, QueueEntry, SetAsideWrite
from dataplane.errors import QueueFull
from dataplane.model import SYSTEM_SCOPE, Scope
from dataplane.ports import Examination
from memplane.options import check_ranges

BACKEND: Final = "queue"
LOOK_AGAIN_S: Final = 0.1
"""How often a waiting taker looks for what other processes put. Unmeasured."""
REST_SHARE: Final = 10
"""For how many times as long as it looked in vain a taker keeps still: behind 100,000 writes of a key that somebody
holds a look takes 120 ms (2026-11), in which nobody else can take."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PostgresQueueOptions:
    """How much the queue holds, and for how long a taker. Raises BadConfig, naming the field.

    Attributes:
        max_entries: More are refused; those who put at the same moment may exceed it by their number.
        retry_after_s: When those who were refused are told to try again.
        claim_after_s: What is taken and neither done nor renewed for so long is handed out again.
    """

    max_entries: int = 100_000
    retry_after_s: float = 1.0
    claim_after_s: float = 10.0

    def __post_init__(self) -> None:
        check_ranges(self, QUEUE_RANGES)


@dataclass(frozen=True, slots=True)
class _LostTurn:
    """A turn of which nobody knows whether the server made it, at the latest by the deadline."""

    owner: str
    turn: int
    deadline_s: float


class PostgresWriteQueue:
    """A `ports.WriteQueue`. Made by `open`."""

    def __init__(self, pool: Pool, options: PostgresQueueOptions) -> None:
        self._pool = pool
        self._options = options
        self._turns = count(1)
        self._lost: list[_LostTurn] = []
        self._arrived = asyncio.Event()

    @classmethod
    async def open(
        cls, options: PostgresOptions, queue: PostgresQueueOptions, deadline_s: float
    ) -> "PostgresWriteQueue":
        """Connects and checks the schema. Raises Misconfigured or BackendUnavailable."""
        await index_opening.check(options, BACKEND, deadline_s)
        return cls(await Pool.open(options.dsn, options, BACKEND), queue)

    async def close(self) -> None:
        """See the port."""
        await self._pool.close()

    async def examine(self, deadline_s: float) -> Examination:
        """See the port; how safe commits are, the record store tells."""
        async with self._pool.connection(deadline_s) as connection:
            return await index_opening.examine(connection)

    async def put(self, write: QueuedWrite, deadline_s: float) -> None:
        """See the port."""
        given = {
            "operation": write.operation,
            "principal_id": write.principal_id,
            "namespace": write.namespace,
            "request": write.request,
            "time_us": write.time_us,
            "order_key": write.order_key.encode(),
            "max_entries": self._options.max_entries,
        }
        [(is_in,)] = await self._pool.read(Scope((write.namespace,)), statements.PUT, given, deadline_s)
        if not is_in:
            raise QueueFull(self._options.retry_after_s)
        self._arrived.set()

    async def take(self, owner: str, page_size: int, wait_s: float, deadline_s: float) -> list[QueueEntry]:
        """See the port."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + wait_s
        while True:
            self._arrived.clear()
            started_s = loop.time()
            entries = await self._take(owner, page_size, deadline_s)
            looked_s = loop.time()
            if entries or looked_s >= until_s:
                return entries
            await asyncio.sleep(min(REST_SHARE * (looked_s - started_s), until_s - looked_s))
            with suppress(TimeoutError):
                async with asyncio.timeout_at(min(looked_s + LOOK_AGAIN_S, until_s)):
                    await self._arrived.wait()

    async def _take(self, owner: str, page_size: int, deadline_s: float) -> list[QueueEntry]:
        mine = _LostTurn(owner, next(self._turns), deadline_s)
        # It gives back its own turn, too, for it may be made twice.
        turns = [mine.turn, *(each.turn for each in self._lost if each.owner == owner)]
        taking = {"owner": owner, "turn": mine.turn, "page_size": page_size, "claim_us": self._claim_us}
        queries: list[tuple[str, Parameters]] = [
            (statements.TAKE_TURN, {}),
            (statements.GIVE_BACK, {"owner": owner, "turns": turns}),
            (statements.TAKE, taking),
        ]
        try:
            rows = await self._pool.transact(SYSTEM_SCOPE, queries, deadline_s)
        except BaseException:
            self._lost.append(mine)
            raise
        now_s = asyncio.get_running_loop().time()
        self._lost = [each for each in self._lost if each.deadline_s > now_s]
        return [QueueEntry(str(entry_id), _write_of(write), tries) for entry_id, tries, *write in sorted(rows)]

    async def renew(self, owner: str, entries: Sequence[QueueEntry], deadline_s: float) -> None:
        """See the port."""
        given = {"owner": owner, "claim_us": self._claim_us, **_ids(entries)}
        await self._pool.transact(SYSTEM_SCOPE, [(statements.TAKE_TURN, {}), (statements.RENEW, given)], deadline_s)

    async def done(self, entries: Sequence[QueueEntry], deadline_s: float) -> None:
        """See the port."""
        await self._pool.read(SYSTEM_SCOPE, statements.REMOVE, _ids(entries), deadline_s)
        self._arrived.set()  # what waited behind them is free for other takers

    async def set_aside(self, entries: Sequence[QueueEntry], deadline_s: float) -> None:
        """See the port."""
        kept = {"kept": statements.SET_ASIDE_KEPT}
        await self._pool.transact(
            SYSTEM_SCOPE, [(statements.SET_ASIDE, _ids(entries)), (statements.FORGET_SET_ASIDE, kept)], deadline_s
        )
        self._arrived.set()

    async def set_aside_writes(self, after_id: str, page_size: int, deadline_s: float) -> list[SetAsideWrite]:
        """See the port."""
        given = {"after_id": number_of(after_id), "page_size": page_size}
        rows = await self._pool.read(SYSTEM_SCOPE, statements.LIST_SET_ASIDE, given, deadline_s)
        return [SetAsideWrite(str(entry_id), _write_of(write)) for entry_id, *write in rows]

    async def replay_set_aside(self, entry_ids: Sequence[str], deadline_s: float) -> int:
        """See the port."""
        given = {"is_all": not entry_ids, "entry_ids": [number_of(entry_id) for entry_id in entry_ids]}
        [(replayed,)] = await self._pool.read(SYSTEM_SCOPE, statements.REPLAY_SET_ASIDE, given, deadline_s)
        self._arrived.set()
        return int(replayed)

    async def find(self, operation: str, deadline_s: float) -> QueuedWrite | None:
        """See the port."""
        rows = await self._pool.read(SYSTEM_SCOPE, statements.FIND, {"operation": operation}, deadline_s)
        return _write_of(rows[0]) if rows else None

    async def depth(self, deadline_s: float) -> QueueDepth:
        """See the port."""
        [(entries, taken, oldest_us, aside)] = await self._pool.read(SYSTEM_SCOPE, statements.DEPTH, {}, deadline_s)
        return QueueDepth(max(0, entries - taken), taken, oldest_us, aside)

    @property
    def _claim_us(self) -> int:
        return max(1, round(self._options.claim_after_s * 1_000_000))


def _ids(entries: Sequence[QueueEntry]) -> dict[str, list[int]]:
    return {"entry_ids": [int(entry.entry_id) for entry in entries]}


def _write_of(row: Sequence[Any]) -> QueuedWrite:
    operation, principal_id, namespace, request, time_us, order_key = row
    return QueuedWrite(operation, principal_id, namespace, request, time_us, order_key.decode())
