import asyncio

from dataplane.adapters.inprocess_cache import InProcessCache
from dataplane.model import Scope

SCOPE = Scope(("acme.sales",))


async def test_what_was_read_lately_stays_longest() -> None:
    cache = InProcessCache(100, lambda: 0.0)
    deadline_s = asyncio.get_running_loop().time()
    for key in ("a", "b", "c"):
        await cache.put(SCOPE, key, b"x" * 30, 60, deadline_s)
    await cache.get(SCOPE, "a", deadline_s)
    await cache.put(SCOPE, "d", b"x" * 30, 60, deadline_s)
    assert [await cache.get(SCOPE, key, deadline_s) is not None for key in "abcd"] == [True, False, True, True]


async def test_replacing_a_value_frees_its_space() -> None:
    cache = InProcessCache(100, lambda: 0.0)
    deadline_s = asyncio.get_running_loop().time()
    await cache.put(SCOPE, "o", b"x" * 9, 60, deadline_s)
    for _ in range(50):
        await cache.put(SCOPE, "k", b"x" * 89, 60, deadline_s)
    assert await cache.get(SCOPE, "o", deadline_s) is not None


async def test_keys_count_against_the_size() -> None:
    cache = InProcessCache(100, lambda: 0.0)
    deadline_s = asyncio.get_running_loop().time()
    for number in range(1_000):
        await cache.put(SCOPE, f"{number:010}", b"", 60, deadline_s)
    kept = [await cache.get(SCOPE, f"{number:010}", deadline_s) for number in range(1_000)]
    assert len([value for value in kept if value is not None]) == 10
