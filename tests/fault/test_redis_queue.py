"""What a Redis that dies, forgets, fills up or holds garbage does to the write queue. Takes about 15 s."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import pytest

from dataplane.adapters.redis.options import RedisMode, RedisOptions
from dataplane.adapters.redis.queue import RedisQueueOptions, RedisWriteQueue
from dataplane.changes import QueuedWrite, QueueEntry
from dataplane.errors import BackendUnavailable, Misconfigured, QueueFull
from tests.deadline import eventually_async
from tests.servers.redis import RedisSentinel, RedisServer

QUICK = RedisQueueOptions(claim_after_s=0.2)
LANES = [f"memplane:{{queue}}:lane:{lane}" for lane in range(8)]


@pytest.fixture
def options(redis_server: RedisServer, redis_url: str) -> RedisOptions:
    assert redis_url
    return options_of(redis_server)


def options_of(server: RedisServer, prefix: str = "memplane") -> RedisOptions:
    return RedisOptions(addresses=(server.address,), prefix=prefix)


@contextlib.asynccontextmanager
async def opened(options: RedisOptions, queue: RedisQueueOptions = QUICK) -> AsyncIterator[RedisWriteQueue]:
    made = await RedisWriteQueue.open(options, queue, in_time())
    try:
        yield made
    finally:
        await made.close()


def in_time() -> float:
    return asyncio.get_running_loop().time() + 10


def write(number: int, request: bytes = b"request", key: str = "k") -> QueuedWrite:
    return QueuedWrite(f"operations/{number}", "agent", "dept.sales", request, 1, key)


async def take(queue: RedisWriteQueue, owner: str = "one") -> list[QueueEntry]:
    return await queue.take(owner, 50, 0, in_time())


async def take_some(queue: RedisWriteQueue) -> list[QueueEntry]:
    return await eventually_async(lambda: take(queue), bool)


def operations(entries: list[QueueEntry]) -> list[str]:
    return sorted(entry.write.operation for entry in entries)


async def test_garbage_in_a_lane_is_set_aside_and_counted(options: RedisOptions, redis_server: RedisServer) -> None:
    async with opened(options) as queue:
        await queue.put(write(1), in_time())
        for lane in LANES:
            redis_server.call("XADD", lane, "*", "what", "ever")
        await queue.put(write(2), in_time())
        assert operations(await take(queue)) == ["operations/1", "operations/2"]
        depth = await queue.depth(in_time())
        assert (depth.waiting, depth.taken, depth.set_aside) == (0, 2, 8)
        assert {each.write for each in await queue.set_aside_writes("", 50, in_time())} == {None}
        assert await queue.replay_set_aside([], in_time()) == 0


async def test_a_consumer_group_that_was_lost_is_made_again(options: RedisOptions, redis_server: RedisServer) -> None:
    async with opened(options) as queue:
        await queue.put(write(1), in_time())
        [entry] = await take(queue)
        for lane in LANES:
            if redis_server.call("EXISTS", lane):
                redis_server.call("XGROUP", "DESTROY", lane, "memplane")
        await queue.renew("one", [entry], in_time())
        assert (await queue.depth(in_time())).waiting == 1
        [again] = await take_some(queue)
        await queue.done([again], in_time())
        assert (await queue.depth(in_time())).waiting == 0


async def test_a_redis_that_forgot_everything_is_an_empty_queue(
    options: RedisOptions, redis_server: RedisServer
) -> None:
    async with opened(options) as queue:
        await queue.put(write(1), in_time())
        held = await take(queue)
        redis_server.call("FLUSHALL")
        redis_server.call("SCRIPT", "FLUSH")
        await queue.renew("one", held, in_time())
        await queue.done(held, in_time())
        assert await take(queue) == []
        await queue.put(write(1), in_time())
        assert operations(await take(queue)) == ["operations/1"]


async def test_a_hold_that_was_evicted_does_not_give_the_lane_away(
    options: RedisOptions, redis_server: RedisServer
) -> None:
    async with opened(options, RedisQueueOptions(claim_after_s=30)) as queue:
        await queue.put(write(1), in_time())
        held = await take(queue)
        await queue.put(write(2), in_time())
        redis_server.call("DEL", *(lane.replace("lane", "hold") for lane in LANES))
        assert await take(queue, "two") == []
        await queue.done(held, in_time())
        assert operations(await take(queue, "two")) == ["operations/2"]


async def test_two_installations_share_a_server(options: RedisOptions, redis_server: RedisServer) -> None:
    async with opened(options) as queue, opened(options_of(redis_server, "another")) as another:
        await queue.put(write(1), in_time())
        assert await take(another) == []
        assert len(await take(queue)) == 1


async def test_accepted_writes_survive_kill_9_of_redis(make_server: Callable[..., RedisServer]) -> None:
    server = make_server()
    accepted: list[str] = []
    async with opened(options_of(server)) as queue:

        async def put_until_it_dies(first: int) -> None:
            for number in range(first, first + 10_000):
                try:
                    await queue.put(write(number, key=str(number)), in_time())
                except BackendUnavailable:
                    return
                accepted.append(f"operations/{number}")

        putting = [asyncio.create_task(put_until_it_dies(first)) for first in (0, 100_000, 200_000)]
        await eventually_async(lambda: queue.depth(in_time()), lambda depth: depth.waiting > 100)
        await queue.take("dead", 10, 0, in_time())
        await asyncio.to_thread(server.kill)
        await asyncio.gather(*putting)
        await asyncio.to_thread(server.start)

        taken: set[str] = set()

        async def drain() -> set[str]:
            page = await take(queue)
            await queue.done(page, in_time())
            taken.update(entry.write.operation for entry in page)
            return taken

        await eventually_async(drain, lambda found: found >= set(accepted))
    assert len(accepted) > 100


async def test_a_full_redis_refuses_more_and_is_drained(make_server: Callable[..., RedisServer]) -> None:
    server = make_server(maxmemory="8mb")
    async with opened(options_of(server)) as queue:
        accepted = await put_until_full(queue)
        page = await take(queue)
        assert len(page) == accepted > 5
        await queue.renew("one", page, in_time())
        await queue.set_aside(page[:1], in_time())
        await queue.done(page, in_time())
        await queue.put(write(1_000), in_time())
        assert operations(await take(queue)) == ["operations/1000"]


async def put_until_full(queue: RedisWriteQueue) -> int:
    for number in range(100):
        try:
            await queue.put(write(number, bytes(200_000), str(number)), in_time())
        except QueueFull:
            return number
    raise AssertionError("it is never full")


@pytest.mark.parametrize(
    ("settings", "told"),
    [({"appendonly": "no"}, "appendonly yes"), ({"maxmemory_policy": "allkeys-lru"}, "noeviction")],
    ids=["no log", "eviction"],
)
async def test_a_redis_that_would_lose_writes_is_refused(
    make_server: Callable[..., RedisServer], settings: dict[str, str], told: str
) -> None:
    server = make_server(**settings)
    with pytest.raises(Misconfigured, match=told):
        await RedisWriteQueue.open(options_of(server), QUICK, in_time())
    async with opened(options_of(server), RedisQueueOptions(must_persist=False)) as queue:
        found = await queue.examine(in_time())
        assert any(told in problem.message for problem in found.problems)


async def test_the_queue_goes_on_with_a_promoted_replica(redis_sentinel: RedisSentinel) -> None:
    redis_sentinel.flush()
    options = RedisOptions(
        mode=RedisMode.SENTINEL, addresses=tuple(redis_sentinel.addresses), master_name=redis_sentinel.master_name
    )
    async with opened(options) as queue:
        await queue.put(write(1), in_time())
        await take(queue)
        await asyncio.to_thread(redis_sentinel.wait_until_whole)
        killed = redis_sentinel.master()
        await asyncio.to_thread(redis_sentinel.fail_over)

        async def take_somehow() -> list[QueueEntry]:
            try:
                return await take(queue)
            except BackendUnavailable:
                return []

        [entry] = await eventually_async(take_somehow, bool)
        assert entry.deliveries == 2
        await queue.put(write(2), in_time())
        await asyncio.to_thread(redis_sentinel.restore, killed)
