"""Critical sections by key."""

import asyncio

from dataplane.pipelines.locks import KeyedLocks


async def test_one_key_is_held_by_one_at_a_time_and_leaves_nothing_behind() -> None:
    locks, inside, most = KeyedLocks(), 0, 0

    async def visit(key: str) -> None:
        nonlocal inside, most
        async with locks.hold(key):
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    await asyncio.gather(*(visit("a") for _ in range(20)))
    assert most == 1
    assert not locks._locks


async def test_another_key_does_not_wait() -> None:
    locks = KeyedLocks()
    async with locks.hold("a"), asyncio.timeout(1), locks.hold("b"):
        pass
