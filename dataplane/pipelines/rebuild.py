"""One rebuild of an index, from where it stands to its end: repeatable, so that another process can go on with it.

The index is filled through the outbox like by any change, and few rows at a time wait there: live changes never wait
behind more, and no search has to score more from the record store.
"""

import asyncio
import logging
from collections.abc import Sequence, Set
from dataclasses import dataclass

from google.protobuf import any_pb2

from dataplane.changes import OperationRecord, OutboxRow
from dataplane.errors import BackendUnavailable
from dataplane.model import IndexKey
from dataplane.pipelines.check_indexes import CheckIndexes
from dataplane.pipelines.followed import FollowedIndex
from dataplane.pipelines.operations import continued, finished
from dataplane.pipelines.spaces import Spaces
from dataplane.ports import Clock, RecordStore
from memplane.v1 import maintenance_service_pb2 as pb

log = logging.getLogger("memplane.rebuild")

DELETE_PAGE = 500
"""Entries removed by one call. Unmeasured."""


@dataclass(frozen=True, slots=True)
class RebuildOptions:
    """How a rebuild goes on; times in seconds. Unmeasured.

    `page_size` memories are put in line by one call. `window`: rows in line at most; `aside_window`: the same for an
    index that no search uses. An index on a server gives rows free when it is flushed, every 2 s or so.
    """

    page_size: int = 250
    window: int = 1_500
    aside_window: int = 10_000
    look_s: float = 0.1
    step_timeout_s: float = 120.0
    backoff_s: float = 1.0


@dataclass(frozen=True, slots=True)
class RebuildParts:
    """What a rebuild needs of the world."""

    store: RecordStore
    checks: CheckIndexes
    spaces: Spaces
    clock: Clock


class Rebuild:
    """Carries out an operation whose metadata is a ReindexProgress."""

    def __init__(self, parts: RebuildParts, options: RebuildOptions, record: OperationRecord, index: FollowedIndex):
        self._parts = parts
        self._options = options
        self._record = record
        self._index = index
        self._progress = progress_of(record)
        self._activated = False

    async def run(self) -> None:
        """Rebuilds to the end, waiting out backends that do not answer; anything else is raised."""
        while True:
            try:
                await self._run()
            except BackendUnavailable as error:
                log.warning("the rebuild of %s waits: %s", self._index.name, error)
                await asyncio.sleep(self._options.backoff_s)
            else:
                return

    async def _run(self) -> None:
        await self._parts.store.register_index(self._index.name, self._deadline())
        if not self._progress.through_id:
            await self._clear_the_way()
        if self._progress.request.repair_only:
            await self._enqueue_faulty()
        else:
            await self._enqueue_all()
        await self._wait_until_level()
        await self._index.index.flush(self._deadline())
        await self._activate()
        await self._finish()

    async def _clear_the_way(self) -> None:
        """Removes orphans, and what is newer than the record store says: no older version replaces a newer one.

        The index is read first. So what it holds is never newer than the rows, unless the record store was set back.
        Orphans go through the outbox: whoever may be bringing such a memory is waited for, and nothing else can come
        between.
        """
        held = await self._index.index.versions(self._deadline())
        ahead: list[IndexKey] = []
        after_id = ""
        while rows := await self._parts.store.scan(after_id, DELETE_PAGE, self._deadline(), ""):
            after_id = rows[-1].memory_id
            for row in rows:
                found = held.pop(row.memory_id, None)
                if found is not None and row.memory is not None and found.version > row.memory.version:
                    ahead.append(IndexKey(row.memory_id, found.namespace))
        orphans = await self._parts.checks.orphans(self._index, held, self._deadline())
        await self._remove(ahead)
        await self._enqueue_orphans(orphans)

    async def _remove(self, keys: Sequence[IndexKey]) -> None:
        for start in range(0, len(keys), DELETE_PAGE):
            await self._index.index.delete(keys[start : start + DELETE_PAGE], self._deadline())
        if keys:
            await self._index.index.flush(self._deadline())
            log.info("%d entries of %s are newer than the record store: removed", len(keys), self._index.name)

    async def _enqueue_orphans(self, keys: Sequence[IndexKey]) -> None:
        name, store = self._index.name, self._parts.store
        rows = [OutboxRow(0, key.memory_id, key.namespace, None, None) for key in keys]
        for start in range(0, len(rows), DELETE_PAGE):
            await store.doubt_outbox(name, rows[start : start + DELETE_PAGE], 0.0, self._deadline())
            await store.enqueue_doubted(name, DELETE_PAGE, self._deadline())
        if keys:
            log.info("%d entries of %s are of no memory that is active: they are removed", len(keys), name)

    async def _enqueue_all(self) -> None:
        while ids := await self._enqueue(self._progress.through_id, self._options.page_size):
            await self._passed(ids[-1], len(ids))

    async def _enqueue_faulty(self) -> None:
        """Puts in line what a page of memories lacks: the outbox takes what follows an id, so faults go in runs."""
        while rows := await self._parts.store.scan(
            self._progress.through_id, self._options.page_size, self._deadline(), self._index.model
        ):
            faulty = await self._parts.checks.faults(self._index, rows, self._deadline())
            ids = [row.memory_id for row in rows]
            for after_id, count in runs(self._progress.through_id, ids, faulty.keys()):
                await self._enqueue(after_id, count)
            await self._passed(ids[-1], len(faulty))

    async def _enqueue(self, after_id: str, count: int) -> list[str]:
        return await self._parts.store.enqueue_all(self._index.name, after_id, count, self._deadline())

    async def _passed(self, through_id: str, enqueued: int) -> None:
        """Notes how far it is, and waits until there is room in the line again."""
        self._progress.through_id = through_id
        self._progress.enqueued_count += enqueued
        is_aside = self._index.space not in (None, self._parts.spaces.current)
        window = self._options.aside_window if is_aside else self._options.window
        due_count, _ = await self._look()
        while due_count >= window:
            await asyncio.sleep(self._options.look_s)
            due_count, _ = await self._look()

    async def _wait_until_level(self) -> None:
        position = await self._parts.store.last_position(self._deadline())
        _, watermark = await self._look()
        while watermark < position:
            await asyncio.sleep(self._options.look_s)
            _, watermark = await self._look()

    async def _look(self) -> tuple[int, int]:
        """How many rows wait and the watermark, kept for who asks after the operation."""
        due_count, watermark = 0, 0
        for item in await self._parts.store.progress(self._deadline()):
            if item.index == self._index.name:
                due_count, watermark = item.due_count, item.watermark
        self._progress.due_count = due_count
        await self._save(continued(self._record, self._progress, self._parts.clock.now_us()))
        return due_count, watermark

    async def _activate(self) -> None:
        """Lets searches use the index when it is another model's."""
        request, space = self._progress.request, self._index.space
        if space is None or request.keep_active or not request.embedding_model:
            return
        before = await space.vectors.active_model(self._deadline())
        await space.vectors.activate(self._deadline())
        self._activated = self._activated or before != space.model
        await self._parts.spaces.look(self._deadline())

    async def _finish(self) -> None:
        progress = await self._parts.store.progress(self._deadline())
        now_us = self._parts.clock.now_us()
        result = pb.ReindexResult(
            index=self._index.kind,
            index_count=await self._index.index.count(self._deadline()),
            activated=self._activated,
            dead_count=sum(item.dead_count for item in progress if item.index == self._index.name),
        )
        result.duration.FromMicroseconds(now_us - self._record.create_time_us)
        await self._save(finished(continued(self._record, self._progress, now_us), result, now_us))
        log.info("%s is rebuilt: %d memories in it", self._index.name, result.index_count)

    async def _save(self, record: OperationRecord) -> None:
        self._record = record
        await self._parts.store.save_operations([record], self._deadline())

    def _deadline(self) -> float:
        return asyncio.get_running_loop().time() + self._options.step_timeout_s


def progress_of(record: OperationRecord) -> pb.ReindexProgress:
    """The metadata of a rebuild's operation."""
    progress = pb.ReindexProgress()
    any_pb2.Any.FromString(record.metadata).Unpack(progress)
    return progress


def runs(after_id: str, ids: Sequence[str], wanted: Set[str]) -> list[tuple[str, int]]:
    """The wanted among `ids`, which follow `after_id` in order, as (id before a run, its length)."""
    found: list[tuple[str, int]] = []
    before, length = after_id, 0
    for previous, memory_id in zip([after_id, *ids], ids, strict=False):
        if memory_id in wanted:
            before, length = (before, length + 1) if length else (previous, 1)
        elif length:
            found.append((before, length))
            length = 0
    return [*found, (before, length)] if length else found
