"""The contract of `ports.Cache`, held by every adapter."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from dataplane.adapters.inprocess_cache import InProcessCache
from dataplane.adapters.redis.cache import RedisCache
from dataplane.adapters.redis.options import RedisCacheOptions, RedisMode, RedisOptions
from dataplane.model import SYSTEM_SCOPE, Scope
from dataplane.ports import Cache
from memplane.process import SystemClock
from tests.deadline import eventually_async
from tests.servers.redis import RedisServer

SALES = Scope(("acme.sales",))
SALES_AND_SHARED = Scope(("acme.sales",), ("acme.hr",))
LIMIT_BYTES = 100_000


@pytest.fixture(params=["inprocess", "redis", "redis_cluster", "redis_sentinel"])
async def cache(request: pytest.FixtureRequest) -> AsyncIterator[Cache]:
    """An empty cache that takes values below 100 KB."""
    if request.param == "inprocess":
        yield InProcessCache(LIMIT_BYTES, asyncio.get_running_loop().time)
        return
    made = await RedisCache.open(
        redis_options(request.param, request),
        RedisCacheOptions(timeout_s=5, max_value_bytes=LIMIT_BYTES),
        SystemClock(),
        asyncio.get_running_loop().time() + 20,
    )
    yield made
    await made.close()


def redis_options(form: str, request: pytest.FixtureRequest) -> RedisOptions:
    server = request.getfixturevalue("redis_server" if form == "redis" else form)
    if form == "redis":
        assert isinstance(server, RedisServer)
        server.call("FLUSHALL")
        return RedisOptions(addresses=(server.address,))
    server.flush()
    if form == "redis_cluster":
        return RedisOptions(mode=RedisMode.CLUSTER, addresses=(server.nodes[1].address,))
    return RedisOptions(mode=RedisMode.SENTINEL, addresses=tuple(server.addresses), master_name=server.master_name)


@pytest.fixture
async def deadline_s() -> float:
    return asyncio.get_running_loop().time() + 30


async def test_values_read_back_in_the_order_asked_for(cache: Cache, deadline_s: float) -> None:
    assert await cache.get(SALES, ["k"], deadline_s) == [None]
    await cache.put(SALES, {"k": b"one", "l": b"\x00\xff"}, 60, deadline_s)
    await cache.put(SALES, {"k": b"two"}, 60, deadline_s)
    assert await cache.get(SALES, ["l", "m", "k", "l"], deadline_s) == [b"\x00\xff", None, b"two", b"\x00\xff"]


async def test_nothing_asked_and_nothing_kept_is_fine(cache: Cache, deadline_s: float) -> None:
    await cache.put(SALES, {}, 60, deadline_s)
    await cache.drop([], deadline_s)
    await cache.bury([], deadline_s)
    await cache.unbury([], deadline_s)
    assert await cache.get(SALES, [], deadline_s) == []
    assert await cache.buried([], deadline_s) == set()
    assert await cache.stamp(Scope(()), deadline_s) == await cache.stamp(Scope(()), deadline_s)


async def test_an_empty_value_is_a_value(cache: Cache, deadline_s: float) -> None:
    await cache.put(SALES, {"": b""}, 60, deadline_s)
    assert await cache.get(SALES, [""], deadline_s) == [b""]


async def test_a_value_expires(cache: Cache, deadline_s: float) -> None:
    await cache.put(SALES, {"k": b"v", "l": b"v"}, 0.05, deadline_s)
    await cache.put(SALES, {"l": b"v"}, 60, deadline_s)

    await eventually_async(lambda: cache.get(SALES, ["k", "l"], deadline_s), lambda seen: seen == [None, b"v"])


async def test_a_time_to_live_of_0_keeps_nothing(cache: Cache, deadline_s: float) -> None:
    await cache.put(SALES, {"k": b"v"}, 60, deadline_s)
    await cache.put(SALES, {"k": b"w"}, 0, deadline_s)
    assert await cache.get(SALES, ["k"], deadline_s) == [None]


@pytest.mark.parametrize(
    "other",
    [
        SYSTEM_SCOPE,
        SALES_AND_SHARED,
        Scope((), ("acme.sales",)),
        Scope(("acme.salesforce",)),
        Scope(("acme.sales", "acme.hr")),
        Scope(("acme.sales,acme.hr",)),
    ],
)
async def test_keys_of_different_scopes_never_meet(cache: Cache, deadline_s: float, other: Scope) -> None:
    await cache.put(SALES, {"k": b"v"}, 60, deadline_s)
    assert await cache.get(other, ["k"], deadline_s) == [None]


async def test_a_value_too_large_is_not_kept_nor_what_it_replaces(cache: Cache, deadline_s: float) -> None:
    await cache.put(SALES, {"small": b"v", "large": b"old"}, 60, deadline_s)
    await cache.put(SALES, {"large": b"x" * (LIMIT_BYTES + 1)}, 60, deadline_s)
    assert await cache.get(SALES, ["large", "small"], deadline_s) == [None, b"v"]


async def test_a_stamp_stands_until_a_namespace_of_its_scope_is_dropped(cache: Cache, deadline_s: float) -> None:
    others = [Scope(("acme.salesforce",)), Scope((), ("acme.hr",)), Scope(("acme",))]
    touched = [SALES, SALES_AND_SHARED, Scope((), ("acme.sales", "acme.hr")), SYSTEM_SCOPE]
    before = [await cache.stamp(scope, deadline_s) for scope in (*others, *touched)]
    assert [await cache.stamp(scope, deadline_s) for scope in (*others, *touched)] == before
    await cache.drop(["acme.sales"], deadline_s)
    assert [await cache.stamp(scope, deadline_s) for scope in others] == before[:3]
    after = [await cache.stamp(scope, deadline_s) for scope in touched]
    assert all(one != other for one, other in zip(before[3:], after, strict=True))


async def test_no_stamp_comes_again(cache: Cache, deadline_s: float) -> None:
    seen = set()
    for _ in range(20):
        seen.add(await cache.stamp(SALES, deadline_s))
        await cache.drop(["acme.sales", "acme.sales"], deadline_s)
    assert len(seen) == 20


async def test_the_stamp_of_two_namespaces_changes_with_either(cache: Cache, deadline_s: float) -> None:
    scope = Scope(("acme.hr", "acme.sales"))
    stamps = [await cache.stamp(scope, deadline_s)]
    for namespace in scope.namespaces:
        await cache.drop([namespace], deadline_s)
        stamps.append(await cache.stamp(scope, deadline_s))
    assert len(set(stamps)) == 3


async def test_the_buried_are_known_until_they_are_unburied(cache: Cache, deadline_s: float) -> None:
    await cache.bury(["mem_1", "mem_2", "mem_1"], deadline_s)
    await cache.bury(["mem_3"], deadline_s)
    await cache.unbury(["mem_2", "mem_9"], deadline_s)
    assert await cache.buried(["mem_1", "mem_2", "mem_3", "mem_4", "mem_1"], deadline_s) == {"mem_1", "mem_3"}


async def test_nobody_vouched_for_a_new_cache(cache: Cache, deadline_s: float) -> None:
    assert not await cache.is_vouched(deadline_s)
    await cache.vouch("", deadline_s)
    await cache.vouch("what was never told", deadline_s)
    assert not await cache.is_vouched(deadline_s)


async def test_who_vouches_while_the_continuity_holds_is_believed_from_then_on(cache: Cache, deadline_s: float) -> None:
    continuity = await cache.continuity(deadline_s)
    assert continuity
    await cache.bury(["mem_1"], deadline_s)
    await cache.unbury(["mem_1"], deadline_s)
    assert await cache.continuity(deadline_s) == continuity
    assert not await cache.is_vouched(deadline_s)
    await cache.vouch(continuity, deadline_s)
    await cache.bury(["mem_2"], deadline_s)
    assert await cache.is_vouched(deadline_s)
    assert await cache.continuity(deadline_s) == continuity
    assert await cache.buried(["mem_1", "mem_2"], deadline_s) == {"mem_2"}


async def test_those_who_begin_at_once_agree_in_the_end(cache: Cache, deadline_s: float) -> None:
    seen = await asyncio.gather(*(cache.continuity(deadline_s) for _ in range(8)))
    for continuity in seen:
        await cache.vouch(continuity, deadline_s)
    assert await cache.is_vouched(deadline_s)
    assert await cache.continuity(deadline_s) in seen


async def test_it_names_what_answers(cache: Cache, deadline_s: float) -> None:
    examination = await cache.examine(deadline_s)
    assert examination.server
    assert not examination.problems


async def test_closing_twice_is_fine(cache: Cache) -> None:
    await cache.close()
    await cache.close()
