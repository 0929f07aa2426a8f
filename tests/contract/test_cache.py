"""The contract of `ports.Cache`, held by every adapter."""

import asyncio
from dataclasses import dataclass

import pytest

from dataplane.adapters.inprocess_cache import InProcessCache
from dataplane.model import SYSTEM_SCOPE, Scope
from dataplane.ports import Cache

SALES = Scope(("acme.sales",))
SALES_AND_SHARED = Scope(("acme.sales",), ("acme.hr",))


@dataclass
class FakeMonotonic:
    now_s: float = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> FakeMonotonic:
    return FakeMonotonic()


@pytest.fixture(params=["inprocess"])
def cache(request: pytest.FixtureRequest, clock: FakeMonotonic) -> Cache:
    """A cache that holds about 100 bytes of values."""
    assert request.param == "inprocess"
    return InProcessCache(100, clock)


@pytest.fixture
async def deadline_s() -> float:
    return asyncio.get_running_loop().time() + 30


async def test_a_value_reads_back(cache: Cache, deadline_s: float) -> None:
    assert await cache.get(SALES, "k", deadline_s) is None
    await cache.put(SALES, "k", b"one", 60, deadline_s)
    await cache.put(SALES, "k", b"two", 60, deadline_s)
    assert await cache.get(SALES, "k", deadline_s) == b"two"


async def test_an_empty_value_is_a_value(cache: Cache, deadline_s: float) -> None:
    await cache.put(SALES, "k", b"", 60, deadline_s)
    assert await cache.get(SALES, "k", deadline_s) == b""


async def test_a_value_expires(cache: Cache, clock: FakeMonotonic, deadline_s: float) -> None:
    await cache.put(SALES, "k", b"v", 60, deadline_s)
    clock.now_s += 59.9
    assert await cache.get(SALES, "k", deadline_s) == b"v"
    clock.now_s += 0.1
    assert await cache.get(SALES, "k", deadline_s) is None


async def test_a_time_to_live_of_0_keeps_nothing(cache: Cache, deadline_s: float) -> None:
    await cache.put(SALES, "k", b"v", 60, deadline_s)
    await cache.put(SALES, "k", b"w", 0, deadline_s)
    assert await cache.get(SALES, "k", deadline_s) is None


@pytest.mark.parametrize(
    "other",
    [
        SYSTEM_SCOPE,
        SALES_AND_SHARED,
        Scope((), ("acme.sales",)),
        Scope(("acme.salesforce",)),
        Scope(("acme.sales", "acme.hr")),
    ],
)
async def test_keys_of_different_scopes_never_meet(cache: Cache, deadline_s: float, other: Scope) -> None:
    await cache.put(SALES, "k", b"v", 60, deadline_s)
    assert await cache.get(other, "k", deadline_s) is None


async def test_the_oldest_go_when_it_is_full(cache: Cache, deadline_s: float) -> None:
    for number in range(10):
        await cache.put(SALES, f"k{number}", b"x" * 30, 60, deadline_s)
    kept = [number for number in range(10) if await cache.get(SALES, f"k{number}", deadline_s)]
    assert kept == [7, 8, 9]


async def test_a_value_larger_than_the_cache_is_not_kept(cache: Cache, deadline_s: float) -> None:
    await cache.put(SALES, "small", b"v", 60, deadline_s)
    await cache.put(SALES, "large", b"x" * 1_000, 60, deadline_s)
    assert await cache.get(SALES, "large", deadline_s) is None
    assert await cache.get(SALES, "small", deadline_s) == b"v"


async def test_dropping_a_namespace_takes_every_scope_that_touches_it(cache: Cache, deadline_s: float) -> None:
    others = [Scope(("acme.salesforce",)), Scope((), ("acme.hr",))]
    touching = [SALES, SALES_AND_SHARED, Scope((), ("acme.sales", "acme.hr")), SYSTEM_SCOPE]
    for scope in (*others, *touching):
        await cache.put(scope, "k", b"v", 60, deadline_s)
    await cache.drop_namespace("acme.sales", deadline_s)
    await cache.drop_namespace("acme.sales", deadline_s)
    assert [await cache.get(scope, "k", deadline_s) for scope in touching] == [None] * 4
    assert [await cache.get(scope, "k", deadline_s) for scope in others] == [b"v"] * 2


async def test_a_dropped_namespace_may_be_filled_again(cache: Cache, deadline_s: float) -> None:
    await cache.put(SALES, "k", b"v", 60, deadline_s)
    await cache.drop_namespace("acme.sales", deadline_s)
    await cache.put(SALES, "k", b"w", 60, deadline_s)
    assert await cache.get(SALES, "k", deadline_s) == b"w"
