"""Ends tasks of the background."""

import asyncio
from typing import Any

PATIENCE_S = 0.5
"""After which a task is told again to end. Unmeasured."""


async def end(*tasks: asyncio.Task[Any]) -> None:
    """Cancels tasks until they are done, whatever they came to.

    Once is not enough: on Python 3.11 a driver that waits with a time limit may swallow a cancellation that comes as
    its answer does, and the task goes on for ever.
    """
    waiting = set(tasks)
    while waiting:
        for task in waiting:
            task.cancel()
        _, waiting = await asyncio.wait(waiting, timeout=PATIENCE_S)
    await asyncio.gather(*tasks, return_exceptions=True)
