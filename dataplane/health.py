"""Tells health what holds: alive always; reads and writes with a policy and one way to do them.

Services: "" (the process lives), READS and WRITES. No store's failure ends the first: a process that is started again
because its database is away helps nobody. READS needs the record store, or indexes and tombstones that can stand in for
it (`pipelines.without_records`). WRITES needs a record store that takes them, or a durable queue. A record store that
reads and takes no writes, as on a full disk, leaves READS serving. One small write may still find a place in SQLite's
log when larger ones fail: so free space is looked at, too. A stale policy ends READS and WRITES, or WRITES alone, where
`degradation_policy.stale_action` says so, and POLICY in any case.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass

from grpc_health.v1 import health

from dataplane.errors import BackendUnavailable
from dataplane.policy_holder import PolicyHolder
from dataplane.ports import RecordStore, WriteQueue
from dataplane.report import Reporter
from memplane.policy.degradation import StaleAction
from memplane.rpc.server import set_health

log = logging.getLogger("memplane.dataplane.health")

READS = "memplane.v1.MemoryService"
WRITES = "memplane.v1.MemoryService.Write"
POLICY = "memplane.v1.Policy"
"""SERVING while there is a policy that is not stale."""
CHECK_INTERVAL_S = 2.0
WRITE_CHECK_S = 5.0
"""How long the check's own write may wait behind others. Unmeasured."""
LEAST_FREE_BYTES = 16 * 1024 * 1024
"""With less free space on the disk, writes are called off: SQLite's log grows to so much before it is moved."""
BACKEND = "record_store"
PROBE = "health"
"""The marker that the check writes."""


@dataclass(frozen=True, slots=True)
class HealthParts:
    """What is looked at.

    `without_records` raises BackendUnavailable when no search could be answered without the record store; its argument
    is a deadline. `free_bytes` tells how much the disk of this process's folder has left; it may block, and raise
    OSError. `own_queue`: the queue lies on that disk.
    """

    records: RecordStore
    queue: WriteQueue | None
    without_records: Callable[[float], Awaitable[None]]
    free_bytes: Callable[[], int]
    own_queue: bool = True


class HealthChecks:
    """Looks every CHECK_INTERVAL_S, and tells `servicer` and `reporter`."""

    def __init__(
        self, parts: HealthParts, holder: PolicyHolder, reporter: Reporter, servicer: health.aio.HealthServicer
    ):
        self._parts = parts
        self._holder = holder
        self._reporter = reporter
        self._servicer = servicer
        self._stale: StaleAction | None = None

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
        self._note_stale(self._holder.stale_action)
        await set_health(self._servicer, POLICY, serving=self._holder.current is not None and self._stale is None)
        no_reads = await _problem_of(self._read())
        await set_health(self._servicer, "", serving=True)
        await self._set(READS, no_reads and await _problem_of(self._parts.without_records(_in_s(CHECK_INTERVAL_S))))
        no_writes = no_reads or await _problem_of(self._write())
        await self._set(WRITES, no_writes and await _problem_of(self._enqueue()))
        self._note(no_reads or (f"takes no writes: {no_writes}" if no_writes else ""))

    async def _set(self, service: str, problem: str) -> None:
        left = self._holder.current is not None and self._stale != "deny"
        left = left and not (service == WRITES and self._stale == "read_only")
        await set_health(self._servicer, service, serving=left and not problem)

    async def _read(self) -> None:
        deadline_s = _in_s(CHECK_INTERVAL_S)
        self._reporter.note_progress(await self._parts.records.progress(deadline_s))
        self._reporter.memory_count = await self._parts.records.count(deadline_s)
        with suppress(BackendUnavailable):  # its examination tells
            await self._read_queue()

    async def _write(self) -> None:
        await self._parts.records.save_marker(PROBE, 0, _in_s(WRITE_CHECK_S))
        await self._room()

    async def _enqueue(self) -> None:
        if self._parts.queue is None:
            raise BackendUnavailable("queue", "there is none")
        await self._read_queue()
        if self._parts.own_queue:
            await self._room()

    async def _read_queue(self) -> None:
        if self._parts.queue is not None:
            self._reporter.queue_depth = await self._parts.queue.depth(_in_s(CHECK_INTERVAL_S))

    async def _room(self) -> None:
        free_bytes = await asyncio.to_thread(self._parts.free_bytes)
        if free_bytes < LEAST_FREE_BYTES:
            needed = f"{free_bytes // 1024} KiB left on the disk; it needs {LEAST_FREE_BYTES // 1024} KiB"
            raise BackendUnavailable(BACKEND, needed)

    def _note_stale(self, action: StaleAction | None) -> None:
        if action != self._stale and action is not None:
            log.error("the policy is stale: nobody has confirmed it for %.0f s (%s)", self._holder.age_s, action)
        elif action != self._stale:
            log.info("the policy is confirmed again")
        self._stale = action

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


def _in_s(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


async def _problem_of(work: Awaitable[None]) -> str:
    try:
        await work
    except BackendUnavailable as error:
        return error.words
    except OSError as error:
        return error.strerror or type(error).__name__
    return ""
