"""Ends tasks of the background."""

import asyncio
import logging
from typing import Any

log = logging.getLogger("memplane.ending")

PATIENCE_S = 0.5
"""After which a task is told again to end. Unmeasured."""


async def end(*tasks: asyncio.Task[Any]) -> None:
    """Cancels tasks until they are done; logs what one has failed with, now or before, and raises nothing of it.

    Once is not enough: on Python 3.11 a driver that waits with a time limit may swallow a cancellation that comes as
    its answer does, and the task goes on for ever.
    """
    waiting = set(tasks)
    while waiting:
        for task in waiting:
            task.cancel()
        _, waiting = await asyncio.wait(waiting, timeout=PATIENCE_S)
    for task in tasks:
        if not task.cancelled() and (error := task.exception()):
            log.error("%s had failed", task.get_name(), exc_info=error)
