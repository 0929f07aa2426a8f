"""Critical sections by key."""

import asyncio

import pytest

from dataplane.errors import BackendUnavailable
from dataplane.pipelines.locks import KeyedLocks

FAR_S = 1e12


async def test_one_key_is_held_by_one_at_a_time_and_leaves_nothing_behind() -> None:
    locks, inside, most = KeyedLocks(), 0, 0

    async def visit(key: str) -> None:
        nonlocal inside, most
        async with locks.hold(key, FAR_S):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(visit("a") for _ in range(20)))
    assert most == 1
    assert not locks._locks


async def test_another_key_does_not_wait() -> None:
    locks = KeyedLocks()
    async with locks.hold("a", FAR_S), asyncio.timeout(1), locks.hold("b", FAR_S):
        pass


async def test_those_who_want_several_keys_do_not_wait_for_each_other_for_ever() -> None:
    locks, inside = KeyedLocks(), set[str]()

    async def visit(*keys: str) -> None:
        async with locks.hold_all(((key,) for key in keys), FAR_S):
            assert inside.isdisjoint(keys)
            inside.update(keys)
            await asyncio.sleep(0)
            inside.difference_update(keys)

    async with asyncio.timeout(5):
        await asyncio.gather(*(visit(*keys) for keys in ("ab", "ba", "cab", "bc", "aa", "") for _ in range(10)))
    assert not locks._locks


async def test_who_waits_for_a_key_beyond_its_deadline_is_told_and_leaves_nothing_behind() -> None:
    locks = KeyedLocks()
    async with locks.hold("a", FAR_S):
        with pytest.raises(BackendUnavailable, match="behind other writes"):
            async with locks.hold("a", asyncio.get_running_loop().time()):
                pass
    assert not locks._locks
