"""Keeps one index at what the record store says: outbox rows leased, applied in batches, settled; repeatable.

Rows of an index in this process's folder are settled as soon as they are applied: `position` tells how far searches may
rely on it, and what a lost flush took away is found by levelling at the next start. Rows of an index on a server are
held until it was flushed, for only then do searches see them and is nothing lost; until then they are scored from the
record store.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from zlib import crc32

from dataplane.changes import OutboxRow
from dataplane.ending import end
from dataplane.errors import BackendUnavailable
from dataplane.pipelines.filling import Filling, Levelling
from dataplane.pipelines.hand import Hand, HandOptions
from dataplane.pipelines.projection import Applier, Projection
from dataplane.pipelines.purge import Purge, PurgeOptions
from dataplane.ports import RecordStore

log = logging.getLogger("memplane.project")

MAX_DELIVERED = 20_000
"""How many deliveries are remembered for writers that wait for theirs; for older ones the store is asked."""

ASK_INTERVAL_S, LONGEST_ASK_INTERVAL_S = 0.025, 0.2
"""When the store is asked whether another process delivered what a writer waits for; then twice that, and so on. Asked
every 25 ms, the questions of those who forget took 8 to 13 % of a busy data plane on servers (sampled, 2026-11)."""

HANG_S = 2.0
"""How long a step may have taken when its index is back before it counts as hanging. Unmeasured."""

FILL_LOOK_S = 5.0
"""How often a process looks whether another one still fills an index. Unmeasured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectorOptions:
    """How projectors work; times in seconds. Unmeasured but for the batch.

    `owner` is unlike that of any other process, now or before, and begins with the data plane's name and a slash. A
    lease is renewed while a batch is under way: after `lease_s` others go on with what a killed process held.
    `doubt_s`: see `pipelines.hand`. `poll_s`: how long an idle projector trusts that nobody else has committed. Between
    tries the back-off doubles from `backoff_s` to `max_backoff_s`; a row that fails waits `retry_s`, twice that the
    next time, and is given up after `attempts`. `heartbeat_s`: between registrations; an index that nobody registered
    for `unseen_s` is retired. `level_wait_s`: how long a start waits for indexes to be level. `purge_turn`: projectors
    with the same options purge one at a time.
    """

    owner: str
    batch_size: int = 128
    step_timeout_s: float = 30.0
    lease_s: float = 15.0
    doubt_s: float = 30.0
    poll_s: float = 0.5
    backoff_s: float = 0.25
    max_backoff_s: float = 5.0
    retry_s: float = 1.0
    attempts: int = 5
    heartbeat_s: float = 60.0
    unseen_s: float = 7 * 86_400.0
    level_wait_s: float = 20.0
    purge: PurgeOptions = field(default_factory=PurgeOptions)
    purge_turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    def hand(self, target: str) -> HandOptions:
        """How the projector of an index holds rows."""
        return HandOptions(
            owner=f"{self.owner}/{target}",
            batch_size=self.batch_size,
            lease_s=self.lease_s,
            doubt_s=self.doubt_s,
            retry_s=self.retry_s,
            attempts=self.attempts,
            step_timeout_s=self.step_timeout_s,
        )


class Projector:
    """Projects the outbox into one index until stopped.

    `position`: all changes at or below it are in the index, but for those that failed before. It stays 0 for an index
    on a server, of which no process alone can tell.
    """

    def __init__(self, store: RecordStore, projection: Projection, options: ProjectorOptions):
        self.name = projection.name
        self.target = projection.target
        self.own = projection.own
        self.position = 0
        self.last_error = ""
        self._store = store
        self._projection = projection
        self._options = options
        self._hand = Hand(store, projection.target, options.hand(projection.target), own=projection.own)
        self._applier = Applier(store, projection, self._hand.deadline)
        self._levelling = Levelling(store, projection, options.batch_size, self._deadline)
        self._filling = Filling(store, projection.target, options.batch_size, self._deadline)
        self._filler: asyncio.Task[None] | None = None
        self._purge = Purge(store, projection.target, projection.index, options.purge, options.purge_turn)
        self._wake = asyncio.Event()
        self._moved = asyncio.Condition()
        self._running = asyncio.Event()
        self._running.set()
        self._levelled = asyncio.Event()
        self._doubted = self._owes_redo = False
        self._again = asyncio.Event()
        self._attempt: asyncio.Timeout | None = None
        self._attempted_at_s = 0.0
        self._tasks: list[asyncio.Task[None]] = []
        self._held: list[OutboxRow] = []
        self._delivered: dict[str, int] = {}
        self._unflushed_since_s: float | None = None
        self._seen_at_s: float | None = None
        self._failures = 0
        self._owes_release = False
        # Processes that lost the same server do not come back at the same moment.
        self._pace = 0.75 + crc32(f"{options.owner}/{self.target}".encode()) % 1_000 / 2_000

    @property
    def counts(self) -> bool:
        """Whether searches use the index at the moment."""
        return self._projection.counts()

    @property
    def is_level(self) -> bool:
        """False while the index is compared, filled or repaired: until then it may lack old memories."""
        return self._levelled.is_set() and not self._doubted

    @property
    def purge_due(self) -> bool:
        """Whether files of the index still hold something that was erased for good."""
        return self._purge.is_due

    async def start(self) -> None:
        """Begins to bring the index level with the record store and to follow the outbox."""
        self._tasks = [
            asyncio.create_task(self._run(), name=f"projector-{self.target}"),
            asyncio.create_task(self._hand.keep(), name=f"leases-{self.target}"),
        ]

    async def wait_level(self, timeout_s: float) -> bool:
        """Waits until the index holds what the record store held at start, at most `timeout_s`; whether it does."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._levelled.wait()
        return self.is_level

    async def stop(self) -> None:
        """Stops following; flushes and settles what was applied and gives the rest back."""
        began, self._tasks = self._tasks, []
        await end(*began, *([self._filler] if self._filler else []))
        flush = [self._flush] if self._unflushed_since_s is not None else []
        for step in (*flush, self._hand.release) if began else ():
            try:
                await step()
            except BackendUnavailable as error:
                log.warning("%s did not end well, what is not settled comes again: %s", self.name, error)

    def pause(self) -> None:
        """Stops projecting; writes go on and are found from the record store."""
        self._running.clear()

    def wake(self) -> None:
        """Tells that there may be new rows."""
        self._wake.set()

    def retry_now(self) -> None:
        """Tells that the index, or the record store, is back: gives up a call that hangs, waits out no back-off."""
        self._failures = 0
        self._again.set()
        if self._attempt is not None and _now_s() >= self._attempted_at_s + HANG_S:
            self._attempt.reschedule(_now_s())

    def doubt(self) -> None:
        """Until `trust` the index may lack old memories; what it took and was not settled is applied again."""
        self._doubted = self._owes_redo = True
        self._wake.set()

    def trust(self) -> None:
        """What was doubted is repaired."""
        self._doubted = False

    def forget_past(self) -> None:
        """Forgets what was delivered: the record store has another past now, in which positions mean other changes."""
        self.position = 0
        self._delivered.clear()

    def has_delivered(self, memory_id: str, position: int) -> bool:
        """Whether this projector knows that it brought a change into the index."""
        return self._delivered.get(memory_id, 0) >= position

    async def wait_for(self, changes: Mapping[str, int], timeout_s: float) -> bool:
        """Waits until changes (memory id to outbox position) are in the index, at most `timeout_s`; whether they are.

        Other processes may bring them into an index on a server: the store tells. Where the next flush is further off
        than that, nobody is kept waiting for it.
        """
        is_hopeless = not self.own and self._projection.flush_interval_s >= timeout_s
        until_s = _now_s() + (0.0 if is_hopeless else timeout_s)
        left, ask_s = dict(changes), ASK_INTERVAL_S
        while True:
            patience_s = max(0.0, until_s - _now_s())
            if await self._reach(left, patience_s if self.own else min(ask_s, patience_s)):
                return True
            ask_s = min(2 * ask_s, LONGEST_ASK_INTERVAL_S)
            if not self.own:
                left = await self._not_settled(left)
            if not left or _now_s() >= until_s:
                return not left

    async def _reach(self, changes: Mapping[str, int], timeout_s: float) -> bool:
        def reached() -> bool:
            return all(
                (self.own and self.position >= position) or self.has_delivered(memory_id, position)
                for memory_id, position in changes.items()
            )

        if reached():
            return True
        try:
            async with asyncio.timeout(timeout_s), self._moved:
                await self._moved.wait_for(reached)
        except TimeoutError:
            return False
        return True

    async def _not_settled(self, changes: Mapping[str, int]) -> dict[str, int]:
        """The changes from the first one on that the store still keeps for this index."""
        left = dict(changes)
        for memory_id, position in changes.items():
            known = self.has_delivered(memory_id, position)
            if not known and self.target in await self._store.undelivered(memory_id, self._deadline()):
                break
            del left[memory_id]
        return left

    def _deadline(self) -> float:
        return _now_s() + self._options.step_timeout_s

    async def _run(self) -> None:
        while True:
            try:
                await self._release_owed()
                await self._look_after()
                await self._running.wait()
                await self._hand.recall()
                drained = await self._attempted()
                await self._purge.run_when_due(drained=drained)
            except BackendUnavailable as error:
                await self._back_off(f"{error.backend}: {error.words}")
            except Exception as error:  # noqa: BLE001 - the loop must live on: told in last_error, logged, tried again
                await self._back_off(f"a defect ({type(error).__name__}); the log says more", error)
            else:
                self.last_error, self._failures = "", 0
                if drained:
                    await self._rest()

    async def _attempted(self) -> bool:
        """A step, and the flush if it is due; `retry_now` ends it with BackendUnavailable."""
        self._attempted_at_s = _now_s()
        try:
            async with asyncio.timeout(None) as self._attempt:
                drained = await self._step()
                await self._flush_when_due()
        except TimeoutError as error:
            raise BackendUnavailable(self.name, "a call hung while it was away") from error
        finally:
            self._attempt = None
        return drained

    async def _look_after(self) -> None:
        """At the start and every heartbeat: registers, and sees to it that the index gets what it lacks."""
        interval_s = self._options.heartbeat_s if self.is_level else FILL_LOOK_S
        if self._seen_at_s is not None and _now_s() < self._seen_at_s + interval_s:
            return
        if not self.own:
            await self._filling.prepare()
        is_new = await self._store.register_index(self.target, self._deadline())
        await self._purge.load(self._deadline())
        if not self.own:
            await self._fill(is_new=is_new)
        elif is_new or not self.is_level:
            await self._level()
        self._seen_at_s = _now_s()

    async def _level(self) -> None:
        """Every change up to what is the newest now is in the index afterwards, for the store is compared as it is."""
        newest = await self._store.last_position(self._deadline())
        if await self._levelling.run():
            self._unflushed_since_s = _now_s()
        self._levelled.set()
        await self._advance(newest, [])

    async def _fill(self, *, is_new: bool) -> None:
        is_mine = await self._filling.is_mine(is_new=is_new)
        if is_mine and (self._filler is None or self._filler.done()):
            self._filler = asyncio.create_task(self._filling.run(), name=f"filling-{self.target}")
            self._filler.add_done_callback(self._filled)
        elif self._filling.is_done:
            self._levelled.set()

    def _filled(self, filler: "asyncio.Task[None]") -> None:
        if filler.cancelled():
            return
        if error := filler.exception():
            log.warning("filling %s stopped, it goes on at the next heartbeat: %s", self.name, error)
            return
        self._levelled.set()
        self._wake.set()

    async def _step(self) -> bool:
        """Projects one batch; whether there was no more than that."""
        self._wake.clear()
        newest = await self._store.last_position(self._deadline()) if self.own else 0
        if newest < self.position:
            self.forget_past()
        rows = await self._hand.lease(self._projection.model)
        drained = len(rows) < self._options.batch_size
        failed = await self._applier.apply(rows) if rows else {}
        await self._purge.note(rows, self._deadline())
        if failed:
            await self._hand.postpone([row for row in rows if row.memory_id in failed], failed)
        done = [row for row in rows if row.memory_id not in failed]
        if done and self._unflushed_since_s is None:
            self._unflushed_since_s = _now_s()
        if not self.own:
            self._held += done
            return drained
        reached = max((row.position for row in rows), default=0)
        await self._advance(max(newest, reached) if drained else reached, done)
        await self._hand.settle(done)
        return drained

    async def _advance(self, position: int, delivered: Sequence[OutboxRow]) -> None:
        for row in delivered:
            self._delivered.pop(row.memory_id, None)
            self._delivered[row.memory_id] = max(row.position, row.covers)
        while len(self._delivered) > MAX_DELIVERED:
            del self._delivered[next(iter(self._delivered))]
        async with self._moved:
            self.position = max(self.position, position)
            self._moved.notify_all()

    async def _flush_when_due(self) -> None:
        if self._unflushed_since_s is not None and self._flush_wait_s() <= 0:
            await self._flush()

    def _flush_wait_s(self) -> float:
        return (self._unflushed_since_s or 0.0) + self._projection.flush_interval_s - _now_s()

    async def _flush(self) -> None:
        await self._projection.index.flush(self._deadline())
        self._unflushed_since_s = None
        if self._held and not self._owes_redo:
            held, self._held = self._held, []
            await self._hand.settle(held)
            await self._advance(0, held)

    async def _back_off(self, problem: str, defect: Exception | None = None) -> None:
        """Gives back what is held, so that others can go on with it, and waits longer each time."""
        if problem != self.last_error:
            log.warning("projection into %s waits: %s", self.name, problem, exc_info=defect)
        self.last_error = problem
        self._held, self._owes_release = [], True
        wait_s = min(self._options.max_backoff_s, self._options.backoff_s * 2**self._failures)
        self._failures = min(self._failures + 1, 16)
        with suppress(BackendUnavailable):
            await self._release_owed()
        with suppress(TimeoutError):
            async with asyncio.timeout(wait_s * self._pace):
                await self._again.wait()
        self._again.clear()

    async def _release_owed(self) -> None:
        """Before anything is leased again: `position` must not pass rows that this process holds and did not apply."""
        if self._owes_redo:
            self._held, self._owes_release, self._owes_redo = [], True, False
        if self._owes_release:
            await self._hand.release()
            self._owes_release = False

    async def _rest(self) -> None:
        waits_s = [self._options.poll_s]
        if self._unflushed_since_s is not None:
            waits_s.append(self._flush_wait_s())
        if self._purge.wait_s is not None:
            waits_s.append(self._purge.wait_s)
        with suppress(TimeoutError):
            async with asyncio.timeout(max(0.0, min(waits_s))):
                await self._wake.wait()


def _now_s() -> float:
    return asyncio.get_running_loop().time()
