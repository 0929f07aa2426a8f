"""Access counts gathered in Redis from all data planes: a hot memory is one change of its row every few seconds.

Counts are fields of the hash `{a}:counts`, each an access record but for its count. To flush, one data plane at a time
(`{a}:flusher`, a lease) renames the hash to `{a}:taken`, writes it to the record store, and deletes it, if it holds the
lease still. Who dies in between leaves `{a}:taken` to the next. So an access is counted at least once: again when a
data plane dies, or loses its lease, between the store's commit and the deletion, or when Redis took a count and did not
say so in time. The braces lay the three keys into one slot of a cluster.
"""

import asyncio
import json
import secrets
from collections.abc import Sequence
from typing import Any, cast

from redis.exceptions import ResponseError

from dataplane.adapters.redis.connection import RedisConnection
from dataplane.changes import AccessRecord
from dataplane.errors import BackendUnavailable
from dataplane.logic.accesses import merged
from dataplane.ports import RecordStore

SECOND_US = 1_000_000

LEASE_MS = 60_000
"""How long a flush may take before another data plane begins anew. Unmeasured."""

MAX_FIELDS = 100_000
"""Counts that wait in Redis at most; beyond it they go to the record store at once. Unmeasured."""

PAGE = 500
"""Rows changed at once. Unmeasured."""

_DELETE_IF_HELD = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
return redis.call('UNLINK', KEYS[1], KEYS[2])
"""


class RedisAccessCounters:
    """Counts that wait in Redis; errors are BackendUnavailable of the connection's backend.

    The connection may be one that was not opened: it connects when it is needed.
    """

    def __init__(self, connection: RedisConnection, timeout_s: float = 0.5):
        self._connection = connection
        self._timeout_s = timeout_s
        self._owner = secrets.token_urlsafe(12)
        self._is_full = False
        self._counts, self._taken, self._flusher = (
            connection.key("{a}", name) for name in ("counts", "taken", "flusher")
        )

    async def add(self, accesses: Sequence[AccessRecord]) -> None:
        """Adds counts; raises BackendUnavailable also when there are too many."""
        if self._is_full:
            self._is_full = await self._waiting() >= MAX_FIELDS
        if self._is_full:
            raise BackendUnavailable(self._connection.backend, "holds too many access counts")
        async with self._connection.calling(self._in_s(self._timeout_s)), self._connection.pipeline() as pipe:
            for access in accesses:
                pipe.hincrby(self._counts, _field(access), access.count)
            pipe.hlen(self._counts)
            self._is_full = (await pipe.execute())[-1] >= MAX_FIELDS

    async def flush(self, store: RecordStore, timeout_s: float = 30.0) -> int:
        """Writes what waits to the store, unless another does; how many rows that changed. Raises BackendUnavailable.

        What an earlier flush left comes first, and alone.
        """
        if not await self._lease():
            return 0
        taken = merged(await self._take())
        for start in range(0, len(taken), PAGE):
            await store.record_accesses(taken[start : start + PAGE], self._in_s(timeout_s))
        async with self._connection.calling(self._in_s(self._timeout_s)):
            await cast(Any, self._connection.client.eval(_DELETE_IF_HELD, 2, self._flusher, self._taken, self._owner))
        return len(taken)

    async def close(self) -> None:
        """Closes the connection. Idempotent."""
        await self._connection.close()

    async def _lease(self) -> bool:
        async with self._connection.calling(self._in_s(self._timeout_s)):
            leased = await self._connection.client.set(self._flusher, self._owner, px=LEASE_MS, nx=True)
            if leased:
                return True
            holder = await self._connection.client.get(self._flusher)
        return holder == self._owner.encode()  # a flush of ours that failed

    async def _take(self) -> list[AccessRecord]:
        client = self._connection.client
        async with self._connection.calling(self._in_s(self._timeout_s)):
            if not await client.exists(self._taken):
                try:
                    await client.rename(self._counts, self._taken)
                except ResponseError as error:
                    if "no such key" not in str(error).lower():
                        raise
                    return []
            found = await cast(Any, client.hgetall(self._taken))
        return [_access(field, count) for field, count in found.items()]

    async def _waiting(self) -> int:
        async with self._connection.calling(self._in_s(self._timeout_s)):
            return int(await cast(Any, self._connection.client.hlen(self._counts)))

    def _in_s(self, seconds: float) -> float:
        return asyncio.get_running_loop().time() + seconds


def _field(access: AccessRecord) -> str:
    """The record without its count, its time to the second."""
    return json.dumps(
        [
            access.memory_id,
            access.namespace,
            access.time_us // SECOND_US * SECOND_US,
            access.hit_increment,
            access.max_strength,
            access.monthly_decay,
        ]
    )


def _access(field: bytes, count: bytes) -> AccessRecord:
    memory_id, namespace, time_us, hit_increment, max_strength, monthly_decay = json.loads(field)
    return AccessRecord(memory_id, namespace, time_us, hit_increment, max_strength, monthly_decay, int(count))
