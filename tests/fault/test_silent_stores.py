"""A store whose network goes silent: nobody waits beyond the time limit, later calls do not wait at all, and it is used
again shortly after its return; on real servers behind a proxy that holds everything back."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

import pytest
from psycopg import conninfo

from dataplane.adapters.elasticsearch.options import ElasticsearchOptions
from dataplane.adapters.elasticsearch.text import ElasticsearchTextIndex
from dataplane.adapters.postgres.options import PostgresOptions
from dataplane.adapters.qdrant.options import QdrantOptions
from dataplane.adapters.qdrant.vector import QdrantVectorIndex
from dataplane.adapters.redis.cache import RedisCache
from dataplane.adapters.redis.options import RedisCacheOptions, RedisOptions
from dataplane.adapters.wrappers.guarded import Guard, Probes, guarded, guarded_records
from dataplane.errors import BackendUnavailable
from dataplane.logic.breaker import BreakerState
from dataplane.model import EVERYTHING, Scope
from dataplane.ports import Cache, TextIndex, VectorIndex
from memplane.policy.degradation import BackendLimits
from memplane.process import SystemClock
from memplane.settings import Secret
from tests.chaos.proxy import HOST, Proxy
from tests.contract.builders import fields_of, vector_of
from tests.deadline import eventually_async
from tests.postgres import open_store
from tests.servers.elasticsearch import ElasticsearchServer
from tests.servers.postgres import PostgresServer
from tests.servers.redis import RedisServer

BUDGET_S = 1.0
LIMITS = BackendLimits(timeout_s=BUDGET_S, write_timeout_s=2.0, concurrency=16)
LONG_S = 30.0
"""What callers would wait by themselves."""
BACK_S = 2.0
"""Within this a store is in use again after its return."""
CALLERS = 8
SALES = Scope(("acme.sales",))


@dataclass(frozen=True)
class Rig:
    """A guarded store behind a proxy, and a read of it."""

    proxy: Proxy
    guard: Guard
    read: Callable[[float], Awaitable[object]]

    @property
    def state(self) -> BreakerState:
        return self.guard.lanes[0].breaker.state

    async def took(self) -> tuple[float, bool]:
        """How long one read took, and whether it was answered."""
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        try:
            await self.read(begun_s + LONG_S)
        except BackendUnavailable:
            return loop.time() - begun_s, False
        return loop.time() - begun_s, True

    async def together(self) -> list[tuple[float, bool]]:
        return list(await asyncio.gather(*(self.took() for _ in range(CALLERS))))


def in_s(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


@asynccontextmanager
async def proxied(port: int) -> AsyncIterator[Proxy]:
    proxy = Proxy(port)
    await proxy.start()
    try:
        yield proxy
    finally:
        await proxy.close()


@asynccontextmanager
async def rig_of(proxy: Proxy, opened: Any, made: tuple[Any, Guard], read: str, *arguments: Any) -> AsyncIterator[Rig]:
    port, guard = made
    method = getattr(port, read)
    try:
        yield Rig(proxy, guard, lambda deadline_s: method(*arguments, deadline_s))
    finally:
        await guard.close()
        await proxy.heal()
        await opened.close()


@asynccontextmanager
async def redis_rig(server: RedisServer) -> AsyncIterator[Rig]:
    async with proxied(server.port) as proxy:
        options = RedisOptions(addresses=((HOST, proxy.port),))
        cache = await RedisCache.open(options, RedisCacheOptions(timeout_s=5.0), SystemClock(), in_s(10))
        probes = Probes(lambda deadline_s: cache.get(SALES, ["k"], deadline_s), cache.continuity)
        made = guarded(cache, Cache, "cache", lambda: LIMITS, probes)
        async with rig_of(proxy, cache, made, "stamp", SALES) as rig:
            yield rig


@asynccontextmanager
async def elasticsearch_rig(server: ElasticsearchServer) -> AsyncIterator[Rig]:
    async with proxied(server.port) as proxy:
        options = ElasticsearchOptions(hosts=(f"http://{proxy.address}",), shards=1, replicas=0, prefix="silent")
        texts = await ElasticsearchTextIndex.open(options, "rule-1")
        made = guarded(texts, TextIndex, "text_index", lambda: LIMITS, Probes(texts.count, texts.count))
        async with rig_of(proxy, texts, made, "search", SALES, ["pump"], EVERYTHING, 5) as rig:
            yield rig


@asynccontextmanager
async def qdrant_rig(port: int) -> AsyncIterator[Rig]:
    async with proxied(port) as proxy:
        vectors = await QdrantVectorIndex.open(QdrantOptions(f"http://{proxy.address}", prefix="silent"), "m", 8)
        made = guarded(vectors, VectorIndex, "vector_index", lambda: LIMITS, Probes(vectors.count, vectors.count))
        async with rig_of(proxy, vectors, made, "search", SALES, vector_of(1), EVERYTHING, 5, 64) as rig:
            yield rig


@asynccontextmanager
async def postgres_rig(server: PostgresServer, options: PostgresOptions) -> AsyncIterator[Rig]:
    async with proxied(server.port) as proxy:
        dsn = conninfo.make_conninfo(options.dsn, host=HOST, port=proxy.port)
        records = await open_store(replace(options, dsn=Secret(dsn)), fields_of)
        probes = Probes(records.last_position, records.last_position)
        made = guarded_records(records, "record_store", lambda: LIMITS, probes)
        async with rig_of(proxy, records, made, "get", SALES, "mem_1") as rig:
            yield rig


@pytest.fixture(params=["redis", "elasticsearch", "qdrant", "postgres"])
async def rig(request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
    opened = {
        "redis": lambda: redis_rig(request.getfixturevalue("redis_server")),
        "elasticsearch": lambda: elasticsearch_rig(request.getfixturevalue("elasticsearch_server")),
        "qdrant": lambda: qdrant_rig(request.getfixturevalue("qdrant_peer").port),
        "postgres": lambda: postgres_rig(
            request.getfixturevalue("postgres_server"), request.getfixturevalue("postgres_options")
        ),
    }
    async with opened[request.param]() as made:
        await eventually_async(made.together, all_answered, 30)
        yield made


def all_answered(taken: list[tuple[float, bool]]) -> bool:
    return all(answered for _, answered in taken)


async def until_open(rig: Rig) -> list[float]:
    """How long the reads took until the breaker opened; none was answered."""
    seconds: list[float] = []
    for _ in range(4):
        taken = await rig.together()
        assert not all_answered(taken)
        seconds += [took_s for took_s, _ in taken]
        if rig.state is BreakerState.OPEN:
            return seconds
    raise AssertionError("the breaker did not open")


async def until_back(rig: Rig) -> float:
    """After how many seconds reads are answered again."""
    begun_s = asyncio.get_running_loop().time()
    await eventually_async(rig.took, lambda taken: taken[1], 10)
    return asyncio.get_running_loop().time() - begun_s


@pytest.mark.alone
@pytest.mark.parametrize("weather", ["blackhole", "cut"])
async def test_a_silent_store_keeps_nobody_and_is_used_again_at_its_return(rig: Rig, weather: str) -> None:
    await getattr(rig.proxy, weather)()
    assert max(await until_open(rig)) <= BUDGET_S * 1.2
    await asyncio.sleep(0.7)
    assert max(took_s for took_s, _ in await rig.together()) < 0.05
    await rig.proxy.heal()
    assert await until_back(rig) <= BACK_S


async def test_connections_that_died_in_silence_do_not_keep_a_store_away(rig: Rig) -> None:
    await rig.proxy.blackhole()
    await until_open(rig)
    await asyncio.sleep(2.0)
    rig.proxy.reset()
    await rig.proxy.heal()
    assert await until_back(rig) <= BACK_S
