"""What a Redis that dies, forgets, fills up, hangs or comes back with an older state does to the cache."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable

import pytest

from dataplane.adapters.inmemory.record_store import InMemoryRecordStore
from dataplane.adapters.redis.cache import RedisCache
from dataplane.adapters.redis.connection import RedisConnection
from dataplane.adapters.redis.counters import RedisAccessCounters
from dataplane.adapters.redis.options import RedisCacheOptions, RedisMode, RedisOptions
from dataplane.adapters.wrappers.owing_cache import OwingCache
from dataplane.changes import AccessRecord
from dataplane.errors import BackendUnavailable
from dataplane.model import Scope
from memplane.process import SystemClock
from tests.contract.builders import fields_of
from tests.deadline import eventually, eventually_async
from tests.servers.redis import RedisSentinel, RedisServer

SALES = Scope(("acme.sales",))
KEY = "secret-key-of-the-test"


@contextlib.asynccontextmanager
async def opened(options: RedisOptions, timeout_s: float = 0.25) -> AsyncIterator[RedisCache]:
    cache_options = RedisCacheOptions(timeout_s=timeout_s)
    cache = await RedisCache.open(options, cache_options, SystemClock(), _in_s(10))
    try:
        yield cache
    finally:
        await cache.close()


def _in_s(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


async def _known(cache: RedisCache | OwingCache) -> bytes | None:
    """What a search by the rules finds."""
    stamp = await cache.stamp(SALES, _in_s(1))
    return (await cache.get(SALES, [stamp + KEY], _in_s(1)))[0]


async def _know(cache: RedisCache | OwingCache, value: bytes) -> None:
    stamp = await cache.stamp(SALES, _in_s(1))
    await cache.put(SALES, {stamp + KEY: value}, 300, _in_s(1))


async def _known_or_error(cache: RedisCache | OwingCache) -> bytes | str | None:
    try:
        return await _known(cache)
    except BackendUnavailable as error:
        return str(error)


async def test_a_flushed_redis_finds_nothing_old_and_works_on(make_server: Callable[..., RedisServer]) -> None:
    server = make_server()
    async with opened(RedisOptions(addresses=(server.address,))) as cache:
        await _know(cache, b"old")
        before = await cache.stamp(SALES, _in_s(1))
        server.call("FLUSHALL")
        assert await _known(cache) is None
        assert await cache.stamp(SALES, _in_s(1)) != before
        await _know(cache, b"new")
        assert await _known(cache) == b"new"


async def test_an_epoch_evicted_alone_takes_its_values_along(make_server: Callable[..., RedisServer]) -> None:
    server = make_server()
    async with opened(RedisOptions(addresses=(server.address,))) as cache:
        await _know(cache, b"old")
        for key in server.call("KEYS", "memplane:e:*"):
            server.call("DEL", key)
        assert await _known(cache) is None


async def test_key_names_tell_nothing(make_server: Callable[..., RedisServer]) -> None:
    server = make_server()
    async with opened(RedisOptions(addresses=(server.address,), prefix="mine")) as cache:
        await _know(cache, b"value")
        await cache.drop(["acme.sales"], _in_s(1))
        keys = server.call("KEYS", "*")
        assert keys
        assert all(key.startswith("mine:") for key in keys)
        assert not [key for key in keys if "sales" in key or KEY in key]


async def test_a_killed_redis_is_unavailable_at_once_and_comes_back(make_server: Callable[..., RedisServer]) -> None:
    server = make_server()
    async with opened(RedisOptions(addresses=(server.address,))) as cache:
        await _know(cache, b"old")
        await cache.bury(["mem_1"], _in_s(1))
        server.kill()
        started_s = _in_s(0)
        for call in (
            cache.stamp(SALES, _in_s(5)),
            cache.get(SALES, [KEY], _in_s(5)),
            cache.put(SALES, {KEY: b"v"}, 60, _in_s(5)),
            cache.drop(["acme.sales"], _in_s(5)),
            cache.buried(["mem_1"], _in_s(5)),
            cache.examine(_in_s(0.5)),
        ):
            with pytest.raises(BackendUnavailable) as refused:
                await call
            assert refused.value.backend == "cache"
        assert _in_s(0) - started_s < 5
        server.start()
        assert await eventually_async(lambda: _known_or_error(cache), lambda seen: not isinstance(seen, str)) is None
        assert await cache.buried(["mem_1", "mem_2"], _in_s(1)) == {"mem_1"}


async def test_a_redis_that_restarts_from_an_older_state_finds_nothing_old(
    make_server: Callable[..., RedisServer],
) -> None:
    server = make_server(appendonly="no")
    async with (
        opened(RedisOptions(addresses=(server.address,))) as cache,
        opened(RedisOptions(addresses=(server.address,))) as other,
    ):
        await _know(cache, b"old")
        server.call("SAVE")
        await cache.drop(["acme.sales"], _in_s(1))
        server.kill()
        server.start()
        assert await eventually_async(lambda: _known_or_error(cache), lambda seen: not isinstance(seen, str)) is None
        assert await eventually_async(lambda: _known_or_error(other), lambda seen: not isinstance(seen, str)) is None
        await _know(cache, b"new")
        assert await _known(other) == b"new"


async def test_a_promoted_replica_finds_nothing_old(redis_sentinel: RedisSentinel) -> None:
    watched = redis_sentinel
    options = RedisOptions(mode=RedisMode.SENTINEL, addresses=tuple(watched.addresses), master_name=watched.master_name)
    async with opened(options, timeout_s=2.0) as cache:
        await _know(cache, b"old")
        replica = next(server for server in watched.servers if server is not watched.master())
        await eventually(lambda: replica.call("DBSIZE"), lambda count: count >= 2)
        killed = watched.master()
        watched.fail_over()
        try:
            found = await eventually_async(
                lambda: _known_or_error(cache), lambda seen: not isinstance(seen, str), within_s=20
            )
            assert found is None
            await _know(cache, b"new")
            assert await _known(cache) == b"new"
        finally:
            watched.restore(killed)


async def _vouch(cache: RedisCache) -> str:
    continuity = await cache.continuity(_in_s(5))
    await cache.bury(["mem_1"], _in_s(5))
    await cache.vouch(continuity, _in_s(5))
    assert await cache.is_vouched(_in_s(5))
    return continuity


async def _vouched_or_error(cache: RedisCache) -> bool | str:
    try:
        return await cache.is_vouched(_in_s(1))
    except BackendUnavailable as error:
        return str(error)


@pytest.mark.parametrize("loss", [("FLUSHALL",), ("DEL", "memplane:t")])
async def test_whoever_vouched_for_tombstones_that_are_lost_is_not_believed_any_more(
    make_server: Callable[..., RedisServer], loss: tuple[str, ...]
) -> None:
    server = make_server()
    async with opened(RedisOptions(addresses=(server.address,))) as cache:
        before = await _vouch(cache)
        server.call(*loss)
        await cache.bury(["mem_2"], _in_s(1))
        await cache.vouch(before, _in_s(1))
        assert not await cache.is_vouched(_in_s(1))
        assert await _vouch(cache) != before


@pytest.mark.parametrize("appendonly", ["yes", "no"])
async def test_tombstones_of_an_earlier_run_are_not_believed(
    make_server: Callable[..., RedisServer], appendonly: str
) -> None:
    server = make_server(appendonly=appendonly)
    async with opened(RedisOptions(addresses=(server.address,))) as cache:
        before = await _vouch(cache)
        server.call("SAVE")
        await cache.bury(["mem_2"], _in_s(1))
        server.kill()
        server.start()
        seen = await eventually_async(lambda: _vouched_or_error(cache), lambda seen: not isinstance(seen, str))
        assert seen is False
        await cache.vouch(before, _in_s(1))
        assert not await cache.is_vouched(_in_s(1))
        assert await _vouch(cache) != before
        assert len(server.call("ZRANGEBYSCORE", "memplane:t", "1e17", "+inf")) == 1


async def test_tombstones_of_a_promoted_replica_are_not_believed(redis_sentinel: RedisSentinel) -> None:
    watched = redis_sentinel
    options = RedisOptions(mode=RedisMode.SENTINEL, addresses=tuple(watched.addresses), master_name=watched.master_name)
    async with opened(options, timeout_s=2.0) as cache:
        before = await _vouch(cache)
        replica = next(server for server in watched.servers if server is not watched.master())
        await eventually(lambda: replica.call("ZCARD", "memplane:t"), lambda count: count >= 2)
        killed = watched.master()
        watched.fail_over()
        try:
            seen = await eventually_async(
                lambda: _vouched_or_error(cache), lambda seen: not isinstance(seen, str), within_s=20
            )
            assert seen is False
            assert await _vouch(cache) != before
        finally:
            watched.restore(killed)


async def test_where_the_run_may_not_be_asked_nobody_is_believed(make_server: Callable[..., RedisServer]) -> None:
    server = make_server()
    server.call("ACL", "SETUSER", "app", "on", "nopass", "~memplane:*", "+@all", "-info")
    async with opened(RedisOptions(addresses=(server.address,), username="app")) as cache:
        continuity = await cache.continuity(_in_s(5))
        await cache.vouch(continuity, _in_s(5))
        assert not await cache.is_vouched(_in_s(5))


async def test_a_full_redis_refuses_values_and_still_reads_and_drops(make_server: Callable[..., RedisServer]) -> None:
    server = make_server()
    async with opened(RedisOptions(addresses=(server.address,)), timeout_s=5) as cache:
        await _know(cache, b"kept")
        server.call("CONFIG", "SET", "maxmemory", "1")
        with pytest.raises(BackendUnavailable, match="full") as refused:
            await cache.put(SALES, {KEY: b"x" * 10_000}, 60, _in_s(5))
        assert KEY not in repr(refused.value)
        assert refused.value.__cause__ is None
        assert await _known(cache) == b"kept"
        problems = {problem.code for problem in (await cache.examine(_in_s(5))).problems}
        assert problems == {"MEMORY_NEARLY_FULL"}
        owing = OwingCache(cache)
        await owing.drop(["acme.sales"], _in_s(1))
        await owing.bury(["mem_1"], _in_s(1))
        with pytest.raises(BackendUnavailable, match="full"):
            await _known(owing)
        server.call("CONFIG", "SET", "maxmemory", "0")
        assert await _known(owing) is None
        await owing.pay()
        assert await cache.buried(["mem_1"], _in_s(1)) == {"mem_1"}


async def test_large_values_pass_up_to_the_limit(make_server: Callable[..., RedisServer]) -> None:
    server = make_server()
    async with opened(RedisOptions(addresses=(server.address,)), timeout_s=5) as cache:
        large = bytes(1024 * 1024)
        await cache.put(SALES, {"a": large, "b": large + b"x"}, 60, _in_s(5))
        assert await cache.get(SALES, ["a", "b"], _in_s(5)) == [large, None]


async def test_a_slow_redis_is_given_up_within_its_time_and_no_answer_is_mixed_up(
    make_server: Callable[..., RedisServer],
) -> None:
    server = make_server()
    async with opened(RedisOptions(addresses=(server.address,)), timeout_s=0.1) as cache:
        values = {f"k{number}": str(number).encode() for number in range(50)}
        await cache.put(SALES, values, 60, _in_s(5))
        server.call("CLIENT", "PAUSE", "2000", "ALL")
        started_s = _in_s(0)
        asked = [cache.get(SALES, [key], _in_s(5)) for key in values]
        answers = await asyncio.gather(*asked, return_exceptions=True)
        assert _in_s(0) - started_s < 1.5
        assert all(isinstance(answer, BackendUnavailable) for answer in answers)
        await eventually_async(lambda: _known_or_error(cache), lambda seen: not isinstance(seen, str))
        for key, value in values.items():
            assert await cache.get(SALES, [key], _in_s(5)) == [value]


async def test_calls_cancelled_at_any_time_mix_no_answers_up(make_server: Callable[..., RedisServer]) -> None:
    server = make_server()
    async with opened(RedisOptions(addresses=(server.address,)), timeout_s=5) as cache:
        values = {f"k{number}": str(number).encode() for number in range(40)}
        await cache.put(SALES, values, 60, _in_s(5))
        for steps in range(30):
            calls = [asyncio.create_task(cache.get(SALES, [key], _in_s(5))) for key in values]
            for _ in range(steps):
                await asyncio.sleep(0)
            for call in calls[::2]:
                call.cancel()
            answers = await asyncio.gather(*calls, return_exceptions=True)
            for answer, value in zip(answers, values.values(), strict=True):
                assert isinstance(answer, asyncio.CancelledError) or answer == [value]


async def test_what_is_wrong_with_a_redis_is_told(make_server: Callable[..., RedisServer]) -> None:
    server = make_server(maxmemory_policy="allkeys-lru", maxmemory="100mb", appendonly="no")
    async with opened(RedisOptions(addresses=(server.address,))) as cache:
        found = await cache.examine(_in_s(5))
        assert found.server.startswith("Redis ")
        assert {problem.code for problem in found.problems} == {"EVICTION_ON", "NO_PERSISTENCE"}
        server.call("CONFIG", "SET", "maxmemory-policy", "volatile-lru")
        server.call("CONFIG", "SET", "save", "900 1")
        assert (await cache.examine(_in_s(5))).problems == ()
        server.call("REPLICAOF", "127.0.0.1", "1")
        assert {problem.code for problem in (await cache.examine(_in_s(5))).problems} == {"READ_ONLY"}
        with pytest.raises(BackendUnavailable, match="replica"):
            await cache.drop(["acme.sales"], _in_s(5))


async def test_a_user_without_rights_to_look_finds_the_cache_working(make_server: Callable[..., RedisServer]) -> None:
    server = make_server()
    server.call("ACL", "SETUSER", "app", "on", "nopass", "~memplane:*", "+@all", "-info", "-config", "-cluster")
    async with opened(RedisOptions(addresses=(server.address,), username="app")) as cache:
        await _know(cache, b"value")
        assert await _known(cache) == b"value"
        found = await cache.examine(_in_s(5))
        assert "cannot be checked" in found.server
        assert found.problems == ()


async def test_the_rights_that_the_documentation_gives_suffice(make_server: Callable[..., RedisServer]) -> None:
    server = make_server()
    rights = ("~memplane:*", "+@all", "-@dangerous", "+info")
    server.call("ACL", "SETUSER", "app", "on", "nopass", *rights)
    async with opened(RedisOptions(addresses=(server.address,), username="app"), timeout_s=5) as cache:
        await _know(cache, b"value")
        await cache.bury(["mem_1", "mem_2"], _in_s(5))
        await cache.unbury(["mem_2"], _in_s(5))
        assert await cache.buried(["mem_1", "mem_2"], _in_s(5)) == {"mem_1"}
        await cache.drop(["acme.sales"], _in_s(5))
        assert (await cache.examine(_in_s(5))).server.startswith("Redis ")
        counters = RedisAccessCounters(
            RedisConnection(RedisOptions(addresses=(server.address,), username="app"), "cache")
        )
        await counters.add([AccessRecord("mem_1", "acme.sales", 1_760_000_000_000_000, 0.1, 2.0, 0.1)])
        assert await counters.flush(InMemoryRecordStore(fields_of)) == 1
        await counters.close()


async def test_a_user_without_rights_to_its_keys_is_told_so_without_their_names(
    make_server: Callable[..., RedisServer],
) -> None:
    server = make_server()
    server.call("ACL", "SETUSER", "app", "on", "nopass", "~other:*", "+@all")
    async with opened(RedisOptions(addresses=(server.address,), username="app")) as cache:
        with pytest.raises(BackendUnavailable, match="may not"):
            await cache.drop(["acme.sales"], _in_s(5))
