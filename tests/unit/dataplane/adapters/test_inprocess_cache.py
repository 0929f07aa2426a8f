import asyncio

import pytest

from dataplane.adapters import inprocess_cache
from dataplane.adapters.inprocess_cache import InProcessCache
from dataplane.model import Scope

SCOPE = Scope(("acme.sales",))


async def _kept(cache: InProcessCache, keys: list[str]) -> list[bool]:
    return [value is not None for value in await cache.get(SCOPE, keys, 0.0)]


async def test_what_was_read_lately_stays_longest() -> None:
    cache = InProcessCache(100, lambda: 0.0)
    await cache.put(SCOPE, dict.fromkeys("abc", b"x" * 30), 60, 0.0)
    await cache.get(SCOPE, ["a"], 0.0)
    await cache.put(SCOPE, {"d": b"x" * 30}, 60, 0.0)
    assert await _kept(cache, list("abcd")) == [True, False, True, True]


async def test_replacing_a_value_frees_its_space() -> None:
    cache = InProcessCache(100, lambda: 0.0)
    await cache.put(SCOPE, {"o": b"x" * 9}, 60, 0.0)
    for _ in range(50):
        await cache.put(SCOPE, {"k": b"x" * 89}, 60, 0.0)
    assert await _kept(cache, ["o"]) == [True]


async def test_keys_count_against_the_size() -> None:
    cache = InProcessCache(100, lambda: 0.0)
    keys = [f"{number:010}" for number in range(1_000)]
    await cache.put(SCOPE, dict.fromkeys(keys, b""), 60, 0.0)
    assert sum(await _kept(cache, keys)) == 10


async def test_an_epoch_let_go_never_gives_an_old_stamp_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inprocess_cache, "MAX_EPOCHS", 3)
    cache = InProcessCache(100, lambda: 0.0)
    seen = set()
    for number in range(20):
        seen.add(await cache.stamp(SCOPE, 0.0))
        await cache.drop(["acme.sales"], 0.0)
        for other in range(number):
            await cache.drop([f"acme.other_{other}"], 0.0)
    assert len(seen) == 20


async def test_tombstones_go_after_30_days_and_the_oldest_when_there_are_too_many(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inprocess_cache, "MAX_TOMBSTONES", 3)
    now_s = 0.0
    cache = InProcessCache(100, lambda: now_s)
    await cache.bury(["a", "b", "c", "d"], 0.0)
    assert await cache.buried(["a", "b", "c", "d"], 0.0) == {"b", "c", "d"}
    now_s = 31 * 86_400.0
    await cache.bury(["e"], 0.0)
    assert await cache.buried(["b", "c", "d", "e"], 0.0) == {"e"}


async def test_it_never_waits() -> None:
    cache = InProcessCache(100, lambda: 0.0)
    passed_s = asyncio.get_running_loop().time() - 1
    assert await cache.stamp(SCOPE, passed_s) == await cache.stamp(SCOPE, passed_s)


async def test_tombstones_let_go_for_room_end_their_continuity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inprocess_cache, "MAX_TOMBSTONES", 2)
    cache = InProcessCache(100, lambda: 0.0)
    continuity = await cache.continuity(0.0)
    await cache.vouch(continuity, 0.0)
    await cache.bury(["mem_1", "mem_2"], 0.0)
    assert await cache.is_vouched(0.0)
    await cache.bury(["mem_3"], 0.0)
    assert not await cache.is_vouched(0.0)
    await cache.vouch(continuity, 0.0)
    assert not await cache.is_vouched(0.0)


async def test_tombstones_whose_time_is_over_go_and_nothing_ends() -> None:
    now_s = [0.0]
    cache = InProcessCache(100, lambda: now_s[0])
    await cache.vouch(await cache.continuity(0.0), 0.0)
    await cache.bury(["mem_1"], 0.0)
    now_s[0] = inprocess_cache.TOMBSTONE_TTL_S
    await cache.bury(["mem_2"], 0.0)
    assert await cache.buried(["mem_1", "mem_2"], 0.0) == {"mem_2"}
    assert await cache.is_vouched(0.0)
