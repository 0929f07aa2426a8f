"""Keeps one index at what the record store says: outbox rows in order, batched, repeatable.

`position` is how far searches may rely on the index; rows above it are scored from the record store. It runs ahead of
the stored watermark, which moves only after the index was flushed, so that a killed process projects again rather than
too little.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from dataplane.changes import OutboxRow
from dataplane.codec import parse_body
from dataplane.errors import BackendUnavailable
from dataplane.model import IndexEntry, State, Vector
from dataplane.pipelines.purge import Purge, PurgeOptions
from dataplane.pipelines.rescore import Rescoring
from dataplane.ports import Embedder, Index, RecordStore

log = logging.getLogger("memplane.project")

EntryOf = Callable[[OutboxRow], IndexEntry]


@dataclass(frozen=True, slots=True)
class ProjectorOptions:
    """Rows a batch; seconds between flushes, that a step may take, of back-off, between trims, and to wait at start."""

    batch_size: int = 128
    flush_interval_s: float = 2.0
    step_timeout_s: float = 30.0
    backoff_s: float = 0.5
    trim_interval_s: float = 10.0
    level_wait_s: float = 20.0
    purge: PurgeOptions = field(default_factory=PurgeOptions)


@dataclass(frozen=True, slots=True)
class Projection:
    """An index, its name, and how a row becomes its entry.

    `needs_embedding`: rows without one get it now, and `rescoring` (None: none) looks at them again.
    """

    name: str
    index: Index
    entry_of: EntryOf
    needs_embedding: bool
    rescoring: Rescoring | None = None


class Projector:
    """Projects the outbox into one index until stopped."""

    def __init__(self, store: RecordStore, embedder: Embedder, projection: Projection, options: ProjectorOptions):
        self.name = projection.name
        self.position = 0
        self.last_error = ""
        self._store = store
        self._embedder = embedder
        self._projection = projection
        self._options = options
        self._wake = asyncio.Event()
        self._moved = asyncio.Condition()
        self._running = asyncio.Event()
        self._running.set()
        self._task: asyncio.Task[None] | None = None
        self._unflushed = False
        self._flushed_at_s = 0.0
        self._levelled = asyncio.Event()
        self._purge = Purge(store, projection.name, projection.index, options.purge)

    async def start(self) -> None:
        """Begins to bring the index level with the record store and to follow the outbox."""
        self._task = asyncio.create_task(self._run(), name=f"projector-{self.name}")

    async def wait_level(self, timeout_s: float) -> bool:
        """Waits until the index holds what the record store held at start, at most `timeout_s`; whether it does."""
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._levelled.wait()
        return self.is_level

    @property
    def is_level(self) -> bool:
        """False while the index is compared and filled after a start: until then it may lack old memories."""
        return self._levelled.is_set()

    @property
    def purge_due(self) -> bool:
        """Whether files of the index still hold something that was erased for good, up to `position`."""
        return self._purge.is_due

    async def stop(self) -> None:
        """Stops following and flushes what was projected."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
            if self.is_level:
                await self._flush()

    def pause(self) -> None:
        """Stops projecting; writes go on and are found from the record store."""
        self._running.clear()

    def resume(self) -> None:
        """Goes on projecting."""
        self._running.set()

    def wake(self) -> None:
        """Tells that there may be new rows."""
        self._wake.set()

    async def wait_for(self, position: int, timeout_s: float) -> bool:
        """Waits until the index has reached a position, at most `timeout_s`; whether it has."""
        if self.position >= position:
            return True
        try:
            async with asyncio.timeout(timeout_s), self._moved:
                await self._moved.wait_for(lambda: self.position >= position)
        except TimeoutError:
            return False
        return True

    def _deadline(self) -> float:
        return asyncio.get_running_loop().time() + self._options.step_timeout_s

    async def _run(self) -> None:
        while True:
            try:
                if not self.is_level:
                    await self._start_level()
                await self._running.wait()
                moved = await self._step()
                await self._flush_when_due()
                await self._purge.run_when_due(drained=not moved)
            except BackendUnavailable as error:
                await self._back_off(f"{error.backend}: {error.detail}")
            except Exception as error:  # noqa: BLE001 - the loop must live on: told in last_error, logged, tried again
                await self._back_off(f"{type(error).__name__}: {error}", error)
            else:
                self.last_error = ""
                if not moved:
                    await self._rest()

    async def _start_level(self) -> None:
        watermark = await self._store.watermark(self.name, self._deadline())
        await self._purge.load(self._deadline())
        await self._level()
        self.position = watermark
        self._levelled.set()

    async def _back_off(self, problem: str, defect: Exception | None = None) -> None:
        if problem != self.last_error:
            log.warning("projection into %s waits: %s", self.name, problem, exc_info=defect)
        self.last_error = problem
        await asyncio.sleep(self._options.backoff_s)

    async def _flush_when_due(self) -> None:
        now_s = asyncio.get_running_loop().time()
        if self._unflushed and now_s - self._flushed_at_s >= self._options.flush_interval_s:
            await self._flush()
            self._flushed_at_s = now_s

    async def _rest(self) -> None:
        waits_s = [self._options.flush_interval_s] if self._unflushed else []
        if self._purge.wait_s is not None:
            waits_s.append(self._purge.wait_s)
        try:
            async with asyncio.timeout(min(waits_s, default=None)):
                await self._wake.wait()
        except TimeoutError:
            return
        self._wake.clear()

    async def _step(self) -> bool:
        """Projects one batch; whether there was one."""
        self._wake.clear()
        rows = await self._store.read_outbox(
            self.position, self._options.batch_size, self._deadline(), self._embedder.model
        )
        if not rows:
            return False
        await self._apply(rows)
        await self._purge.note(rows, self._deadline())
        self._unflushed = True
        async with self._moved:
            self.position = rows[-1].position
            self._moved.notify_all()
        return True

    async def _apply(self, rows: Sequence[OutboxRow]) -> None:
        latest = list({row.memory_id: row for row in rows}.values())
        gone = [row.memory_id for row in latest if not _indexed(row)]
        if gone:
            await self._projection.index.delete(gone, self._deadline())
        kept = [row for row in latest if _indexed(row)]
        if self._projection.needs_embedding:
            kept = await self._embedded(kept)
        if kept:
            entries = [self._projection.entry_of(row) for row in kept]
            await self._projection.index.upsert(entries, self._deadline())

    async def _embedded(self, rows: Sequence[OutboxRow]) -> list[OutboxRow]:
        """The rows with embeddings; missing ones are made now and stored."""
        missing = [row for row in rows if row.embedding is None]
        if not missing:
            return list(rows)
        texts = [parse_body(row.memory).content for row in missing if row.memory is not None]
        vectors = await self._embedder.embed_passages(texts, self._deadline())
        found = {row.memory_id: vector for row, vector in zip(missing, vectors, strict=True)}
        for row in missing:
            await self._keep_embedding(row, found[row.memory_id])
        return [replace(row, embedding=found.get(row.memory_id, row.embedding)) for row in rows]

    async def _keep_embedding(self, row: OutboxRow, embedding: Vector) -> None:
        memory, model = row.memory, self._embedder.model
        assert memory is not None
        await self._store.save_embedding(memory.memory_id, memory.version, model, embedding, self._deadline())
        if self._projection.rescoring is not None:
            await self._projection.rescoring.rescore(memory, embedding, model, self._deadline())

    async def _flush(self) -> None:
        position = self.position
        await self._projection.index.flush(self._deadline())
        await self._store.save_watermark(self.name, position, self._deadline())
        self._unflushed = False

    async def _level(self) -> None:
        """Brings the index to the record store: adds and renews what is missing or old, removes what is not there."""
        known = await self._projection.index.versions(self._deadline())
        after_id, repaired = "", 0
        while rows := await self._store.scan(
            after_id, self._options.batch_size, self._deadline(), self._embedder.model
        ):
            after_id = rows[-1].memory_id
            due = [row for row in rows if row.memory is None or known.pop(row.memory_id, 0) != row.memory.version]
            await self._apply(due)
            repaired += len(due)
        if known:
            await self._projection.index.delete(list(known), self._deadline())
        if repaired or known:
            self._unflushed = True
            log.info("index %s levelled: %d entries renewed, %d removed", self.name, repaired, len(known))


def _indexed(row: OutboxRow) -> bool:
    return row.memory is not None and row.memory.state is State.ACTIVE


class Projectors:
    """The projectors of all indexes together; trims the outbox behind the slowest."""

    def __init__(self, store: RecordStore, projectors: Sequence[Projector], options: ProjectorOptions):
        self._store = store
        self._projectors = tuple(projectors)
        self._options = options
        self._trimmer: asyncio.Task[None] | None = None

    @property
    def position(self) -> int:
        """How far every index may be relied on."""
        return min(projector.position for projector in self._projectors)

    def __iter__(self) -> Iterator[Projector]:
        return iter(self._projectors)

    @property
    def unlevel(self) -> list[str]:
        """Names of the indexes that may lack old memories because they are still compared after a start."""
        return [projector.name for projector in self._projectors if not projector.is_level]

    async def start(self, *, paused: bool = False) -> None:
        """Levels every index and begins to follow; `paused`: levels, then waits for `resume`.

        Returns once all are level, or after `level_wait_s`: then they go on in the background.
        """
        for projector in self._projectors:
            if paused:
                projector.pause()
            await projector.start()
        await asyncio.gather(*(item.wait_level(self._options.level_wait_s) for item in self._projectors))
        self._trimmer = asyncio.create_task(self._trim(), name="outbox-trimmer")

    async def stop(self) -> None:
        """Stops them all."""
        if self._trimmer is not None:
            self._trimmer.cancel()
            await asyncio.gather(self._trimmer, return_exceptions=True)
        for projector in self._projectors:
            await projector.stop()

    def wake(self) -> None:
        """Tells all that there may be new rows."""
        for projector in self._projectors:
            projector.wake()

    async def wait_for(self, position: int, timeout_s: float) -> bool:
        """Wakes all and waits until every index has reached a position; whether all have."""
        self.wake()
        reached = await asyncio.gather(*(item.wait_for(position, timeout_s) for item in self._projectors))
        return all(reached)

    async def _trim(self) -> None:
        while True:
            await asyncio.sleep(self._options.trim_interval_s)
            try:
                deadline_s = asyncio.get_running_loop().time() + self._options.step_timeout_s
                saved = [await self._store.watermark(item.name, deadline_s) for item in self._projectors]
                await self._store.trim_outbox(min(saved), deadline_s)
            except Exception as error:  # noqa: BLE001 - the loop must live on: an outbox grows, nothing is lost
                log.warning("outbox not trimmed: %r", error)
