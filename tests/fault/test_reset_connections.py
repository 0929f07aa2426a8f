"""A store whose network resets connections under load: calls are answered or unavailable, nothing else, and the next
ones are answered; on uvloop, as in production, whose transports raise what asyncio's do not. Takes about 20 s.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest
import uvloop
from psycopg import conninfo

from dataplane.adapters.elasticsearch.options import ElasticsearchOptions
from dataplane.adapters.elasticsearch.text import ElasticsearchTextIndex
from dataplane.adapters.embedder.endpoint import EndpointEmbedder
from dataplane.adapters.embedder.endpoint_options import EndpointOptions
from dataplane.adapters.postgres.queue import PostgresQueueOptions, PostgresWriteQueue
from dataplane.adapters.qdrant.options import QdrantOptions
from dataplane.adapters.qdrant.vector import QdrantVectorIndex
from dataplane.adapters.redis.cache import RedisCache
from dataplane.adapters.redis.connection import RedisConnection
from dataplane.adapters.redis.counters import RedisAccessCounters
from dataplane.adapters.redis.options import RedisCacheOptions, RedisOptions
from dataplane.adapters.redis.queue import RedisQueueOptions, RedisWriteQueue
from dataplane.changes import AccessRecord, QueuedWrite, QueueEntry
from dataplane.errors import BackendUnavailable
from dataplane.model import EVERYTHING, Scope
from dataplane.ports import WriteQueue
from memplane.process import SystemClock
from memplane.settings import Secret
from tests.chaos.proxy import HOST, Proxy, proxy_to
from tests.contract.builders import vector_of
from tests.contract.embedding_server import MODEL, serving
from tests.deadline import eventually_async

CALLERS = 20
LOAD_S = 1.0
QUEUED = 100
PAUSE_S = 0.01
CLAIM_AFTER_S = 30.0
"""A drain that waits for what was lost to come free takes longer than it may."""
RESET_EVERY_S = 0.02
SALES = Scope(("acme.sales",))
WRITE = QueuedWrite("operations/1", "agent", "acme.sales", b"x" * 50_000, 1, "k")

Call = Callable[[float], Awaitable[object]]
"""Asks the store something, by a deadline."""


def in_s(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


async def ends_of(call: Call, proxy: Proxy) -> Counter[str]:
    """How calls end while connections are reset again and again."""
    until_s, ends = in_s(LOAD_S), Counter[str]()

    async def ask() -> None:
        while in_s(0) < until_s:
            try:
                await call(in_s(1))
            except BackendUnavailable:
                ends["unavailable"] += 1
            except Exception as error:  # noqa: BLE001 - what this test is about
                ends[f"{type(error).__name__}: {error}"[:160]] += 1
            else:
                ends["answered"] += 1
            await asyncio.sleep(0)

    async def reset() -> None:
        while in_s(0) < until_s:
            await asyncio.sleep(RESET_EVERY_S)
            proxy.reset()

    await asyncio.gather(reset(), *(ask() for _ in range(CALLERS)))
    return ends


async def assert_survives(call: Call, proxy: Proxy) -> None:
    ends = await ends_of(call, proxy)
    assert set(ends) <= {"answered", "unavailable"}, ends

    async def all_at_once() -> bool:
        told = await asyncio.gather(*(call(in_s(1)) for _ in range(CALLERS)), return_exceptions=True)
        return not any(isinstance(each, BaseException) for each in told)

    await eventually_async(all_at_once, bool, 5)


@asynccontextmanager
async def closed_after(opened: Any) -> AsyncIterator[Any]:
    try:
        yield opened
    finally:
        await opened.close()


def redis_options(proxy: Proxy) -> RedisOptions:
    return RedisOptions(addresses=((HOST, proxy.port),))


async def redis_cache(request: pytest.FixtureRequest) -> None:
    async with proxy_to(request.getfixturevalue("redis_server").port) as proxy:
        opened = await RedisCache.open(redis_options(proxy), RedisCacheOptions(), SystemClock(), in_s(10))
        async with closed_after(opened) as cache:
            await assert_survives(lambda until_s: cache.put(SALES, {"k": b"x" * 20_000}, 5, until_s), proxy)


async def redis_queue(request: pytest.FixtureRequest) -> None:
    async with proxy_to(request.getfixturevalue("redis_server").port) as proxy:
        opened = await RedisWriteQueue.open(redis_options(proxy), RedisQueueOptions(), in_s(10))
        async with closed_after(opened) as queue:
            await assert_survives(lambda until_s: queue.put(WRITE, until_s), proxy)


async def redis_counters(request: pytest.FixtureRequest) -> None:
    accesses = [AccessRecord(f"mem_{number}", "acme.sales", 1, 0.1, 1.0, 0.5) for number in range(300)]
    async with proxy_to(request.getfixturevalue("redis_server").port) as proxy:
        connection = RedisConnection(redis_options(proxy), "cache")
        async with closed_after(RedisAccessCounters(connection)) as counters:
            await assert_survives(lambda _: counters.add(accesses), proxy)


async def elasticsearch(request: pytest.FixtureRequest) -> None:
    async with proxy_to(request.getfixturevalue("elasticsearch_server").port) as proxy:
        options = ElasticsearchOptions(hosts=(f"http://{proxy.address}",), shards=1, replicas=0, prefix="reset")
        async with closed_after(await ElasticsearchTextIndex.open(options, "rule-1")) as texts:
            await assert_survives(lambda until_s: texts.search(SALES, ["pump"], EVERYTHING, 5, until_s), proxy)


async def qdrant(request: pytest.FixtureRequest) -> None:
    async with proxy_to(request.getfixturevalue("qdrant_peer").port) as proxy:
        opened = await QdrantVectorIndex.open(QdrantOptions(f"http://{proxy.address}", prefix="reset"), "m", 8)
        async with closed_after(opened) as vectors:
            query = vector_of(1)
            await assert_survives(lambda until_s: vectors.search(SALES, query, EVERYTHING, 5, 64, until_s), proxy)


async def postgres(request: pytest.FixtureRequest) -> None:
    options = request.getfixturevalue("postgres_options")
    async with proxy_to(request.getfixturevalue("postgres_server").port) as proxy:
        dsn = Secret(conninfo.make_conninfo(options.dsn, host=HOST, port=proxy.port))
        opened = await PostgresWriteQueue.open(replace(options, dsn=dsn), PostgresQueueOptions(), in_s(10))
        async with closed_after(opened) as queue:
            await assert_survives(lambda until_s: queue.put(WRITE, until_s), proxy)


async def endpoint(_request: pytest.FixtureRequest) -> None:
    texts = [f"word {number} " * 50 for number in range(4)]
    async with serving() as server:
        port = int(server.url.split(":")[2].split("/")[0])
        async with proxy_to(port) as proxy:
            url = server.url.replace(str(port), str(proxy.port))
            options = EndpointOptions(url, MODEL, dimension=384, concurrency=CALLERS)
            async with closed_after(EndpointEmbedder.open(options)) as embedder:
                await assert_survives(lambda until_s: embedder.embed_passages(texts, until_s), proxy)


@pytest.mark.parametrize("store", [redis_cache, redis_queue, redis_counters, elasticsearch, qdrant, postgres, endpoint])
def test_calls_over_connections_that_are_reset_are_answered_or_unavailable(
    store: Callable[[pytest.FixtureRequest], Coroutine[Any, Any, None]], request: pytest.FixtureRequest
) -> None:
    uvloop.run(store(request))


async def assert_drained_in_order(queue: WriteQueue, proxy: Proxy) -> None:
    """All writes of a key, taken and done while connections are reset: each comes, none before an older one."""
    for number in range(QUEUED):
        await queue.put(replace(WRITE, operation=f"operations/{number:03}"), in_s(5))
    seen: list[str] = []

    async def drain() -> None:
        while len(set(seen)) < QUEUED:
            with suppress(BackendUnavailable):
                page = await queue.take("one", 3, 0.0, in_s(1))
                seen.extend(entry.write.operation for entry in page)
                await until_done(page)
            await asyncio.sleep(PAUSE_S)

    async def until_done(page: Sequence[QueueEntry]) -> None:
        while True:
            with suppress(BackendUnavailable):
                return await queue.done(page, in_s(1))
            await asyncio.sleep(PAUSE_S)

    async def reset() -> None:
        while True:
            await asyncio.sleep(10 * RESET_EVERY_S)
            proxy.reset()

    resetting = asyncio.create_task(reset())
    async with asyncio.timeout(CLAIM_AFTER_S / 2):
        await drain()
    resetting.cancel()
    assert list(dict.fromkeys(seen)) == [f"operations/{number:03}" for number in range(QUEUED)]


async def drained_redis(request: pytest.FixtureRequest) -> None:
    assert request.getfixturevalue("redis_url")
    async with proxy_to(request.getfixturevalue("redis_server").port) as proxy:
        opened = await RedisWriteQueue.open(
            redis_options(proxy), RedisQueueOptions(claim_after_s=CLAIM_AFTER_S), in_s(10)
        )
        async with closed_after(opened) as queue:
            await assert_drained_in_order(queue, proxy)


async def drained_postgres(request: pytest.FixtureRequest) -> None:
    options = request.getfixturevalue("postgres_options")
    async with proxy_to(request.getfixturevalue("postgres_server").port) as proxy:
        dsn = Secret(conninfo.make_conninfo(options.dsn, host=HOST, port=proxy.port))
        limits = PostgresQueueOptions(claim_after_s=CLAIM_AFTER_S)
        async with closed_after(await PostgresWriteQueue.open(replace(options, dsn=dsn), limits, in_s(10))) as queue:
            await assert_drained_in_order(queue, proxy)


@pytest.mark.parametrize("store", [drained_redis, drained_postgres])
def test_a_queue_is_drained_in_order_over_connections_that_are_reset(
    store: Callable[[pytest.FixtureRequest], Coroutine[Any, Any, None]], request: pytest.FixtureRequest
) -> None:
    uvloop.run(store(request))
