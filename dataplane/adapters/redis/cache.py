"""The cache in Redis, shared by every data plane.

Keys, each behind the prefix:

* `v:{scope}:key` holds a value. Both parts are digests: key names tell nothing about namespaces or content. The braces
  lay the values of one scope into one slot of a cluster, so one MGET reads them.
* `e:namespace` holds the epoch of a namespace (a digest; an empty one for all): a random text, new at each drop.
* `t` is the sorted set of tombstones: memory ids by the time when each may go. It has no time to live, so a Redis that
  evicts what has one (`volatile-*`) keeps it. One more member, above all times, is its life: a random text behind the
  run of the server that it was begun in. It lies in the set so that whatever loses the set loses the life, too: a
  flush, an eviction. A restart and a promotion, which may bring back an older set, are another run. That nothing is
  missing is noted as the score of the life, by one command that changes nothing once the life is gone.

A stamp is made of the epochs of a scope and of the run of the server that told them. Epochs are random, so one that is
evicted, expired or flushed is replaced by one that never was, and what was cached under it is never found again. A
server that starts from an older snapshot, or a replica promoted before it heard of a drop, tells old epochs, but in a
run of its own. What remains is a split: while a former master that is cut off still answers some data planes, these may
be answered from it until its values expire (`min-replicas-to-write` ends that; docs/stores/redis.md).
"""

import asyncio
import hashlib
import json
import secrets
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager

from redis.asyncio import RedisCluster
from redis.exceptions import OutOfMemoryError

from dataplane.adapters.redis.connection import RedisConnection
from dataplane.adapters.redis.health import examine
from dataplane.adapters.redis.options import RedisCacheOptions, RedisOptions
from dataplane.model import Scope
from dataplane.ports import Clock, Examination

BACKEND = "cache"

EPOCH_TTL_MS = 7 * 86_400_000
"""How long the epoch of a namespace that nobody drops is kept; a week, above any value's (a day at most)."""

TOMBSTONE_TTL_MS = 30 * 86_400_000
"""How long a tombstone is kept at least."""

LIFE, UNVOUCHED, VOUCHED = "life", 1e17, 2e17
"""What the life begins with, and its score: above all times in milliseconds."""


class RedisCache:
    """A `ports.Cache` in Redis; the server says what goes when it is full."""

    def __init__(self, connection: RedisConnection, options: RedisCacheOptions, clock: Clock):
        self._connection = connection
        self._options = options
        self._clock = clock

    @classmethod
    async def open(
        cls, redis: RedisOptions, options: RedisCacheOptions, clock: Clock, deadline_s: float
    ) -> "RedisCache":
        """Connects. Raises Misconfigured or BackendUnavailable."""
        return cls(await RedisConnection.open(redis, BACKEND, deadline_s), options, clock)

    async def get(self, scope: Scope, keys: Sequence[str], deadline_s: float) -> list[bytes | None]:
        """See the port."""
        if not keys:
            return []
        async with self._calling(deadline_s):
            return _bytes(await self._connection.client.mget(self._value_keys(scope, keys)))

    async def put(self, scope: Scope, values: Mapping[str, bytes], ttl_s: float, deadline_s: float) -> None:
        """See the port. A value above the limit is not kept, nor what stood under its key."""
        if not values:
            return
        ttl_ms = int(ttl_s * 1_000)
        async with self._calling(deadline_s), self._connection.pipeline() as pipe:
            for key, value in zip(self._value_keys(scope, list(values)), values.values(), strict=True):
                if ttl_ms > 0 and len(value) <= self._options.max_value_bytes:
                    pipe.set(key, value, px=ttl_ms)
                else:
                    pipe.execute_command("UNLINK", key)  # a cluster's own `unlink` does not go into a pipeline
            await pipe.execute()

    async def stamp(self, scope: Scope, deadline_s: float) -> str:
        """See the port."""
        keys = self._epoch_keys([""] if scope.system else sorted({*scope.namespaces, *scope.shared}))
        async with self._calling(deadline_s):
            epochs = await self._epochs(keys)
            if None in epochs:
                await self._begin([key for key, epoch in zip(keys, epochs, strict=True) if epoch is None], anew=False)
                epochs = await self._epochs(keys)
        told = [(epoch or b"").decode() for epoch in epochs]
        if "" in told:  # gone again: nothing cached under this stamp is found again
            told.append(secrets.token_urlsafe(12))
        return _digest([told, [self._run_of(key) for key in keys]])

    async def drop(self, namespaces: Sequence[str], deadline_s: float) -> None:
        """See the port."""
        if not namespaces:
            return
        keys = self._epoch_keys(sorted({"", *namespaces}))
        async with self._calling(deadline_s):
            try:
                await self._begin(keys, anew=True)
            except OutOfMemoryError:
                await self._end(keys)

    async def bury(self, memory_ids: Sequence[str], deadline_s: float) -> None:
        """See the port. Those whose time is over go."""
        if not memory_ids:
            return
        now_ms = self._clock.now_us() // 1_000
        async with self._calling(deadline_s), self._connection.pipeline() as pipe:
            pipe.zremrangebyscore(self._tombstones, "-inf", now_ms)
            pipe.zadd(self._tombstones, dict.fromkeys(memory_ids, now_ms + TOMBSTONE_TTL_MS))
            await pipe.execute()

    async def unbury(self, memory_ids: Sequence[str], deadline_s: float) -> None:
        """See the port."""
        if memory_ids:
            async with self._calling(deadline_s):
                await self._connection.client.zrem(self._tombstones, *memory_ids)

    async def buried(self, memory_ids: Sequence[str], deadline_s: float) -> set[str]:
        """See the port."""
        if not memory_ids:
            return set()
        async with self._calling(deadline_s):
            scores = await self._connection.client.zmscore(self._tombstones, list(memory_ids))
        return {memory_id for memory_id, score in zip(memory_ids, scores, strict=True) if score is not None}

    async def continuity(self, deadline_s: float) -> str:
        """See the port. Empty, and never vouched for, where the server does not tell its run."""
        async with self._calling(deadline_s):
            lives = await self._lives(UNVOUCHED)
            run = self._run_of(self._tombstones)
            if not run:
                return ""
            here = [life for life in lives if _run_in(life) == run]
            return here[-1] if here else await self._begin_life(run, lives)

    async def vouch(self, continuity: str, deadline_s: float) -> None:
        """See the port."""
        async with self._calling(deadline_s):
            if continuity and _run_in(continuity) == self._run_of(self._tombstones):
                await self._connection.client.zadd(self._tombstones, {continuity: VOUCHED}, xx=True)

    async def is_vouched(self, deadline_s: float) -> bool:
        """See the port."""
        async with self._calling(deadline_s):
            lives = await self._lives(VOUCHED)
            run = self._run_of(self._tombstones)
        return bool(run) and any(_run_in(life) == run for life in lives)

    async def examine(self, deadline_s: float) -> Examination:
        """See the port."""
        async with self._connection.calling(deadline_s):
            return await examine(self._connection)

    async def close(self) -> None:
        """See the port."""
        await self._connection.close()

    @property
    def _tombstones(self) -> str:
        return self._connection.key("t")

    def _calling(self, deadline_s: float) -> AbstractAsyncContextManager[None]:
        latest_s = asyncio.get_running_loop().time() + self._options.timeout_s
        return self._connection.calling(min(deadline_s, latest_s))

    def _value_keys(self, scope: Scope, keys: Sequence[str]) -> list[str]:
        place = _digest([scope.namespaces, scope.shared, scope.system])
        return [self._connection.key("v", f"{{{place}}}", _digest(key)) for key in keys]

    def _epoch_keys(self, namespaces: Sequence[str]) -> list[str]:
        return [self._connection.key("e", _digest(namespace)) for namespace in namespaces]

    async def _lives(self, least: float) -> list[str]:
        """The lives in the set from that score on, a vouched one last; several when data planes began one at once."""
        found = await self._connection.client.execute_command("ZRANGEBYSCORE", self._tombstones, least, "+inf")
        return [life.decode() for life in found]

    async def _begin_life(self, run: str, former: Sequence[str]) -> str:
        life = f"{LIFE}:{run}:{secrets.token_urlsafe(12)}"
        async with self._connection.pipeline() as pipe:
            if former:
                pipe.zrem(self._tombstones, *former)
            pipe.zadd(self._tombstones, {life: UNVOUCHED})
            await pipe.execute()
        return life

    async def _epochs(self, keys: Sequence[str]) -> list[bytes | None]:
        client = self._connection.client
        if isinstance(client, RedisCluster):
            return _bytes(await client.mget_nonatomic(keys))
        return _bytes(await client.mget(keys))

    async def _begin(self, keys: Sequence[str], *, anew: bool) -> None:
        """Gives each a new epoch; unless `anew`, only those that have none by now."""
        async with self._connection.pipeline() as pipe:
            for key in keys:
                pipe.set(key, secrets.token_urlsafe(12), px=EPOCH_TTL_MS, nx=not anew)
            await pipe.execute()

    async def _end(self, keys: Sequence[str]) -> None:
        """Takes the epochs away, which a full Redis does, too; who needs them begins new ones."""
        async with self._connection.pipeline() as pipe:
            for key in keys:
                pipe.execute_command("UNLINK", key)
            await pipe.execute()

    def _run_of(self, key: str) -> str:
        """The run of the server that holds a key."""
        client, runs = self._connection.client, self._connection.runs
        if not isinstance(client, RedisCluster):
            return runs.last
        node = client.get_node_from_key(key)
        return runs.of(node.host, int(node.port)) if node is not None else ""


def _run_in(life: str) -> str:
    """The run of the server that a life was begun in."""
    return life.split(":")[1] if life.startswith(LIFE) else ""


def _bytes(answers: Iterable[bytes | str | None]) -> list[bytes | None]:
    """The answers of a client that decodes nothing, typed so."""
    return [answer.encode() if isinstance(answer, str) else answer for answer in answers]


def _digest(value: object) -> str:
    """160 bits of a value in hex; different for different values of JSON."""
    return hashlib.blake2b(json.dumps(value).encode(), digest_size=20).hexdigest()
