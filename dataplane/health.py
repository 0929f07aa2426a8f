"""Tells health what holds: alive always; reads and writes with a policy and a record store that does them.

Services: "" (the process lives), READS and WRITES. A record store that reads and takes no writes, as on a full disk,
leaves READS serving. One small write may still find a place in SQLite's log when larger ones fail: so free space is
looked at, too.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress

from grpc_health.v1 import health

from dataplane.errors import BackendUnavailable
from dataplane.policy_holder import PolicyHolder
from dataplane.ports import RecordStore, WriteQueue
from dataplane.report import Reporter
from memplane.rpc.server import set_health

log = logging.getLogger("memplane.dataplane.health")

READS = "memplane.v1.MemoryService"
WRITES = "memplane.v1.MemoryService.Write"
CHECK_INTERVAL_S = 2.0
WRITE_CHECK_S = 5.0
"""How long the check's own write may wait behind others. Unmeasured."""
LEAST_FREE_BYTES = 16 * 1024 * 1024
"""With less free space on the disk, writes are called off: SQLite's log grows to so much before it is moved."""
BACKEND = "record_store"
PROBE = "health"
"""The marker that the check writes."""


class HealthChecks:
    """Looks every CHECK_INTERVAL_S, and tells `servicer` and `reporter`.

    `free_bytes` tells how much the record store's disk has left; it may block, and raise OSError.
    """

    def __init__(
        self,
        records: RecordStore,
        queue: WriteQueue | None,
        free_bytes: Callable[[], int],
        holder: PolicyHolder,
        reporter: Reporter,
        servicer: health.aio.HealthServicer,
    ):
        self._records = records
        self._queue = queue
        self._free_bytes = free_bytes
        self._holder = holder
        self._reporter = reporter
        self._servicer = servicer

    async def run(self) -> None:
        """Looks until cancelled; `look` once before, so that every service is known when calls come in."""
        while True:
            await self._until_next()
            try:
                await self.look()
            except Exception:  # the loop must live on: what holds is told again at the next look
                log.exception("a health check failed")

    async def look(self) -> None:
        """Looks once."""
        no_reads = await _problem_of(self._read())
        await set_health(self._servicer, "", serving=True)
        await set_health(self._servicer, READS, serving=self._holder.current is not None and not no_reads)
        no_writes = no_reads or await _problem_of(self._write())
        await set_health(self._servicer, WRITES, serving=self._holder.current is not None and not no_writes)
        self._note(no_reads or (f"takes no writes: {no_writes}" if no_writes else ""))

    async def _read(self) -> None:
        deadline_s = asyncio.get_running_loop().time() + CHECK_INTERVAL_S
        self._reporter.note_progress(await self._records.progress(deadline_s))
        self._reporter.memory_count = await self._records.count(deadline_s)
        if self._queue is not None:
            with suppress(BackendUnavailable):  # its examination tells
                self._reporter.queue_depth = await self._queue.depth(deadline_s)

    async def _write(self) -> None:
        deadline_s = asyncio.get_running_loop().time() + WRITE_CHECK_S
        await self._records.save_marker(PROBE, 0, deadline_s)
        free_bytes = await asyncio.to_thread(self._free_bytes)
        if free_bytes < LEAST_FREE_BYTES:
            needed = f"{free_bytes // 1024} KiB left on the disk; it needs {LEAST_FREE_BYTES // 1024} KiB"
            raise BackendUnavailable(BACKEND, needed)

    def _note(self, problem: str) -> None:
        if problem != self._reporter.record_store_problem:
            log.log(logging.ERROR if problem else logging.INFO, "record store: %s", problem or "well again")
        self._reporter.record_store_problem = problem

    async def _until_next(self) -> None:
        """Waits for the next look; less when there was no policy and one comes."""
        if self._holder.current is not None:
            await asyncio.sleep(CHECK_INTERVAL_S)
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(CHECK_INTERVAL_S):
                await self._holder.wait_loaded()


async def _problem_of(work: Awaitable[None]) -> str:
    try:
        await work
    except BackendUnavailable as error:
        return error.words
    except OSError as error:
        return error.strerror or type(error).__name__
    return ""
