"""Applies queued writes in batches, each once in effect, those of one subject in order.

Rules:
1. A batch is taken when there is a policy and the record store answers. It stays in these hands, renewed, until every
   write in it is decided: what cannot be decided for now is tried again with growing pauses.
2. The first answer to a request_id commits with the memory, so a write that is handed out again gets that answer.
3. The result is stored before the write leaves the queue.
4. A write that keeps failing by a defect (`decide_queued`) is set aside, and its operation ends with DEFECT. Writes
   that were handed out often are applied one at a time, for one of them may end the process; the first of them that was
   handed out MOST_DELIVERIES times is set aside untried.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass

from dataplane.changes import OperationRecord, QueueEntry
from dataplane.ending import end
from dataplane.errors import BackendUnavailable
from dataplane.pipelines import operations
from dataplane.pipelines.decide_queued import QueuedDecisions, given_up, is_final
from dataplane.pipelines.enqueue import QueuedForm
from dataplane.pipelines.write import Outcome, WritePipeline
from dataplane.ports import Clock, RecordStore, WriteQueue
from memplane.errors import Defect, MemPlaneError
from memplane.policy.snapshot import PolicySnapshot

log = logging.getLogger("memplane.queue")

SUSPECT_DELIVERIES = 3
MOST_DELIVERIES = 10
"""Unmeasured, as the pauses below."""


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    """How the consumer goes about it.

    `owner` names it in the queue, unlike every other one. `wait_s`: how long it waits for writes before it looks
    whether to stop. `renew_interval_s` must be well below the queue's own limit. `stop_grace_s`: what a batch may take
    once it is to stop; an unfinished one is left to others.
    """

    owner: str
    wait_s: float = 1.0
    call_timeout_s: float = 30.0
    renew_interval_s: float = 2.5
    first_pause_s: float = 0.1
    longest_pause_s: float = 1.0
    stop_grace_s: float = 5.0


@dataclass(frozen=True, slots=True)
class ApplyParts:
    """What applying needs of the world. `policy` gives the snapshot in force, None before there is one."""

    queue: WriteQueue
    store: RecordStore
    write: WritePipeline
    form: QueuedForm
    policy: Callable[[], PolicySnapshot | None]
    clock: Clock


class QueueConsumer:
    """Takes and applies until it is stopped; counts the writes applied and the turns that failed."""

    def __init__(self, parts: ApplyParts, options: ApplyOptions):
        self._parts = parts
        self._options = options
        self._held: list[QueueEntry] = []
        self._decisions = QueuedDecisions(parts.write, parts.form)
        self._stopping = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._problem = ""
        self.applied_count = 0
        self.failed_turns = 0

    def start(self) -> None:
        """Begins."""
        self._tasks = [
            asyncio.create_task(self._run(), name="queue-consumer"),
            asyncio.create_task(self._renew(), name="queue-renewal"),
        ]

    async def stop(self) -> None:
        """Finishes the batch in hand, if that does not take long, and takes no other."""
        self._stopping.set()
        if not self._tasks:
            return
        await asyncio.wait(self._tasks[:1], timeout=self._options.wait_s + self._options.stop_grace_s)
        await end(*self._tasks)

    async def _run(self) -> None:
        pause_s = self._options.first_pause_s
        while not self._stopping.is_set():
            if await self._turn_went_well():
                pause_s = self._options.first_pause_s
                continue
            self.failed_turns += 1
            await self._pause(pause_s)
            pause_s = min(2 * pause_s, self._options.longest_pause_s)

    async def _turn_went_well(self) -> bool:
        try:
            went_well = await self._turn()
        except BackendUnavailable as error:
            self._note(str(error))
        except Exception:  # the loop must live on: what it holds is tried again
            log.exception("a batch of queued writes failed")
        else:
            self._note("")
            return went_well
        return False

    def _note(self, problem: str) -> None:
        """Says once what keeps the writes waiting, not at every try."""
        if problem and problem != self._problem:
            log.warning("queued writes wait: %s", problem)
        self._problem = problem

    async def _turn(self) -> bool:
        """Applies what is held, or what comes next; False when there is more to try later."""
        snapshot = self._parts.policy()
        if snapshot is None:
            return False
        if not self._held:
            await self._parts.store.last_position(self._deadline())
            await self._collect(snapshot)
        if self._held and self._held[0].deliveries >= MOST_DELIVERIES:
            await self._settle(self._held[:1], [given_up(self._held[0], None)])
        waiting: set[str] = set()
        for part in _parts_of(self._held):
            if part[0].write.order_key not in waiting:
                waiting |= await self._settle(part, await self._decisions.outcomes(part, snapshot))
        return not self._held

    async def _collect(self, snapshot: PolicySnapshot) -> None:
        """Holds the next batch: what waits, up to the policy's size, or what comes within its interval."""
        loop, policies = asyncio.get_running_loop(), snapshot.policies
        size, until_s = policies.for_namespace("").write.batch_size, loop.time() + self._options.wait_s
        while len(self._held) < size and (remaining_s := until_s - loop.time()) > 0:
            first = not self._held
            room = size - len(self._held)
            taken = await self._parts.queue.take(self._options.owner, room, remaining_s, self._deadline(remaining_s))
            self._held += taken
            if not taken:
                return
            if first:
                rules = [policies.for_namespace(entry.write.namespace).write for entry in taken]
                size = min(rule.batch_size for rule in rules)
                until_s = loop.time() + min(rule.batch_interval_s for rule in rules)

    async def _settle(self, entries: Sequence[QueueEntry], outcomes: Sequence[Outcome]) -> set[str]:
        """Stores what became of entries, and lets those go that were decided; returns the order keys that wait."""
        paired = list(zip(entries, outcomes, strict=True))
        decided = [(entry, outcome) for entry, outcome in paired if is_final(outcome)]
        if decided:
            await self._finish(decided)
        return {entry.write.order_key for entry, outcome in paired if not is_final(outcome)}

    async def _finish(self, decided: Sequence[tuple[QueueEntry, Outcome]]) -> None:
        records = [self._record(entry, outcome) for entry, outcome in decided]
        await self._parts.store.save_operations(records, self._deadline())
        aside = [entry for entry, outcome in decided if isinstance(outcome, Defect)]
        if aside:
            await self._parts.queue.set_aside(aside, self._deadline())
        await self._parts.queue.done([entry for entry, _ in decided], self._deadline())
        self._let_go([entry for entry, _ in decided])

    def _let_go(self, entries: Sequence[QueueEntry]) -> None:
        ids = {entry.entry_id for entry in entries}
        self._held = [entry for entry in self._held if entry.entry_id not in ids]
        self.applied_count += len(ids)
        for entry_id in ids:
            self._decisions.let_go(entry_id)

    def _record(self, entry: QueueEntry, outcome: Outcome) -> OperationRecord:
        begun, now_us = operations.queued(entry.write), self._parts.clock.now_us()
        if isinstance(outcome, MemPlaneError):
            return operations.failed(begun, outcome, now_us)
        return operations.finished(begun, self._parts.form.result(outcome), now_us)

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(self._options.renew_interval_s)
            if self._held:
                await self._renew_once()

    async def _renew_once(self) -> None:
        """What is not renewed is handed out again, which does no harm."""
        try:
            await self._parts.queue.renew(self._options.owner, self._held, self._deadline())
        except BackendUnavailable as error:
            log.debug("queued writes in hand were not renewed: %s", error)
        except Exception:  # the loop must live on: what is in hand later is renewed, too
            log.exception("queued writes in hand were not renewed")

    async def _pause(self, seconds: float) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopping.wait()

    def _deadline(self, more_s: float = 0.0) -> float:
        return asyncio.get_running_loop().time() + self._options.call_timeout_s + more_s


def _parts_of(held: Sequence[QueueEntry]) -> list[list[QueueEntry]]:
    """All at once, or one at a time when something in it may end the process."""
    if any(entry.deliveries >= SUSPECT_DELIVERIES for entry in held):
        return [[entry] for entry in held]
    return [list(held)] if held else []
