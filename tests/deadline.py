"""Waiting in tests that run real processes and real folders: poll with a deadline, fail with what was seen last."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

_T = TypeVar("_T")


async def eventually(read: Callable[[], _T], accept: Callable[[_T], bool], within_s: float = 10.0) -> _T:
    """Reads until the value is accepted; AssertionError with the last value otherwise."""

    async def read_async() -> _T:
        return read()

    return await eventually_async(read_async, accept, within_s)


async def eventually_async(
    read: Callable[[], Awaitable[_T]], accept: Callable[[_T], bool], within_s: float = 10.0
) -> _T:
    """As `eventually`, for a reading that is awaited."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + within_s
    while True:
        seen = await read()
        if accept(seen):
            return seen
        assert loop.time() < deadline, f"after {within_s} s still {seen!r}"
        await asyncio.sleep(0.02)
