"""The stages of a search, timed for those who run the service: embed, pending, vector, text, fetch, rank.

A search that is answered from the cache has one stage: cached.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

T = TypeVar("T")

SHARE = 0.8
"""How much of the time that is left a stage may take when others follow it. Unmeasured."""

ObserveStage = Callable[[str, float], None]
"""Hears that a stage took so many seconds."""


def cut(deadline_s: float) -> float:
    """The deadline of a stage after which another one must still find time before `deadline_s`."""
    now_s = asyncio.get_running_loop().time()
    return now_s + SHARE * max(0.0, deadline_s - now_s)


async def timed(observe: ObserveStage, stage: str, work: Callable[[], Awaitable[T]]) -> T:
    """Does the work of a stage."""
    with timing(observe, stage):
        return await work()


@contextmanager
def timing(observe: ObserveStage, stage: str) -> Iterator[None]:
    """Times the block as a stage, also when it fails."""
    now_s = asyncio.get_running_loop().time
    started_s = now_s()
    try:
        yield
    finally:
        observe(stage, now_s() - started_s)
