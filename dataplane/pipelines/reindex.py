"""Begins rebuilds of indexes, and goes on with those whose process ended.

Each rebuild is an operation in the record store. The process that carries it out renews a marker; when the marker grows
old, any data plane that follows the index goes on from where the operation's metadata says. Should two do so at once,
or begin at the same instant, both come to the same: nothing of a rebuild does harm when done twice.
"""

import asyncio
import hashlib
import logging
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum

from google.longrunning import operations_pb2

from dataplane.changes import OperationRecord
from dataplane.ending import end
from dataplane.errors import BackendUnavailable
from dataplane.pipelines.caller import Caller
from dataplane.pipelines.followed import FollowedIndex, FollowedIndexes
from dataplane.pipelines.lineage import accept_restored
from dataplane.pipelines.operations import PREFIX, begun, failed, shown
from dataplane.pipelines.rebuild import Rebuild, RebuildOptions, RebuildParts, progress_of
from memplane.errors import Defect, InvalidField, RequestIdReused, Unavailable
from memplane.v1 import maintenance_service_pb2 as pb

log = logging.getLogger("memplane.reindex")

NAMES = f"{PREFIX}reindex-"
PAGE_SIZE = 200


@dataclass(frozen=True, slots=True)
class ReindexOptions:
    """Seconds between looks for abandoned rebuilds, until one counts as such, and for a step. Unmeasured."""

    look_s: float = 5.0
    abandoned_s: float = 30.0
    step_timeout_s: float = 30.0
    rebuild: RebuildOptions = field(default_factory=RebuildOptions)


class RebuildEnd(Enum):
    """What a rebuild came to: UNKNOWN is one that the record store does not know any more."""

    BUILT = "built"
    FAILED = "failed"
    UNKNOWN = "unknown"


class Reindexing:
    """The rebuilds of this data plane. `new_id` makes ids that nobody can guess."""

    def __init__(
        self, parts: RebuildParts, indexes: FollowedIndexes, new_id: Callable[[], str], options: ReindexOptions
    ):
        self._parts = parts
        self._indexes = indexes
        self._new_id = new_id
        self._options = options
        self._running: dict[str, asyncio.Task[None]] = {}
        self._beginning = asyncio.Lock()
        self._looking: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Looks for unfinished rebuilds from now on."""
        self._looking = asyncio.create_task(self._look_on(), name="reindex")

    async def stop(self) -> None:
        """Leaves unfinished rebuilds to others, or to the next start."""
        left = list(self._running)
        await end(*self._running.values(), *([self._looking] if self._looking else []))
        for name in left:
            with suppress(BackendUnavailable):  # then others wait until the marker is old
                await self._parts.store.save_marker(_marker(name), 0, self._deadline())

    async def begin(self, request: pb.ReindexRequest, caller: Caller, deadline_s: float) -> operations_pb2.Operation:
        """The operation of a new rebuild, or of the one that runs on this index already.

        A record store that was restored is accepted by it. Raises PermissionDenied, InvalidField, RequestIdReused or
        Unavailable.
        """
        caller.require("maintenance", None)
        index = self._chosen(request)
        try:
            async with self._beginning:
                record = await self._begin(request, index, caller.principal_id, deadline_s)
            await accept_restored(self._parts.store, deadline_s)
            return shown(record)
        except BackendUnavailable as error:
            raise Unavailable(error.backend) from error

    async def repair(self, index: FollowedIndex, deadline_s: float, *, repair_only: bool) -> str:
        """Begins to mend an index for the data plane itself, unless a rebuild of it runs; the operation's name.

        `repair_only`: what it holds is compared; quick where little is wrong. Raises BackendUnavailable.
        """
        request = pb.ReindexRequest(index=index.kind, repair_only=repair_only)
        async with self._beginning:
            return (await self._begin(request, index, "", deadline_s)).name

    async def ended(self, name: str, deadline_s: float) -> RebuildEnd | None:
        """How a rebuild ended; None: it goes on. Raises BackendUnavailable."""
        record = await self._parts.store.find_operation(name, deadline_s)
        if record is None:
            return RebuildEnd.UNKNOWN
        if not record.is_done:
            return None
        return RebuildEnd.FAILED if record.error else RebuildEnd.BUILT

    def _chosen(self, request: pb.ReindexRequest) -> FollowedIndex:
        """The index that is meant; raises InvalidField."""
        if request.index == pb.INDEX_KIND_TEXT and request.embedding_model:
            raise InvalidField.one("embedding_model", "is for the vector index; leave it empty for the text index")
        there = {each.model: each for each in self._indexes.of_kind(request.index)}
        active = next(each for each in there.values() if self._indexes.is_active(each))
        index = there.get(request.embedding_model) if request.embedding_model else active
        if index is None:
            raise InvalidField.one(
                "embedding_model",
                f"is none of this data plane's models: {', '.join(sorted(there))} ({active.model} is active)",
            )
        if request.keep_active and index is active:
            raise InvalidField.one("keep_active", "is for another embedding model than the active one; name it")
        return index

    async def _begin(
        self, request: pb.ReindexRequest, index: FollowedIndex, principal_id: str, deadline_s: float
    ) -> OperationRecord:
        name = NAMES + (_digest(principal_id, request.request_id) if request.request_id else self._new_id())
        known = await self._parts.store.find_operation(name, deadline_s) if request.request_id else None
        if known is not None and progress_of(known).request != request:
            raise RequestIdReused(request.request_id)
        known = known or await self._unfinished_of(index, deadline_s)
        if known is not None:
            return known
        now_us = self._parts.clock.now_us()
        progress = pb.ReindexProgress(index=index.kind, name=index.name, request=request)
        progress.total_count = await self._parts.store.count(deadline_s)
        progress.start_time.FromMicroseconds(now_us)
        record = begun(name, principal_id, "", progress, now_us)
        await self._parts.store.save_operations([record], deadline_s)
        await self._mark(index, deadline_s)
        self._carry_out(record, index)
        return record

    async def _unfinished_of(self, index: FollowedIndex, deadline_s: float) -> OperationRecord | None:
        return next((each for each in await self._unfinished(deadline_s) if progress_of(each).name == index.name), None)

    async def _unfinished(self, deadline_s: float) -> list[OperationRecord]:
        """Rebuilds that are not done, of all data planes."""
        found: list[OperationRecord] = []
        after_name = NAMES
        while page := await self._parts.store.list_operations(after_name, PAGE_SIZE, deadline_s):
            ours = [record for record in page if record.name.startswith(NAMES)]
            found.extend(record for record in ours if not record.is_done)
            if len(ours) < PAGE_SIZE:
                break
            after_name = ours[-1].name
        return found

    async def _look_on(self) -> None:
        while True:
            try:
                await self.take_over(self._deadline())
            except BackendUnavailable as error:
                log.debug("unfinished rebuilds are not known: %s", error)
            except Exception:  # the loop must live on: unfinished rebuilds are looked for again
                log.exception("unfinished rebuilds could not be looked for")
            await asyncio.sleep(self._options.look_s)

    async def take_over(self, deadline_s: float) -> None:
        """Goes on with the rebuilds of this data plane's indexes that nobody carries out any more."""
        for record in await self._unfinished(deadline_s):
            index = self._indexes.named(progress_of(record).name)
            if index is None or index.name in self._running or not await self._is_abandoned(index, deadline_s):
                continue
            log.info("going on with the rebuild of %s", index.name)
            await self._mark(index, deadline_s)
            self._carry_out(record, index)

    async def _is_abandoned(self, index: FollowedIndex, deadline_s: float) -> bool:
        """A marker of the future tells nothing, for somebody's clock is wrong: one rebuild too many does no harm."""
        marked_us = await self._parts.store.marker(_marker(index.name), deadline_s)
        return abs(self._parts.clock.now_us() - marked_us) >= self._options.abandoned_s * 1e6

    async def _mark(self, index: FollowedIndex, deadline_s: float) -> None:
        await self._parts.store.save_marker(_marker(index.name), self._parts.clock.now_us(), deadline_s)

    def _carry_out(self, record: OperationRecord, index: FollowedIndex) -> None:
        task = asyncio.create_task(self._run(record, index), name=f"rebuild-{index.name}")
        self._running[index.name] = task
        task.add_done_callback(lambda _: self._running.pop(index.name, None))

    async def _run(self, record: OperationRecord, index: FollowedIndex) -> None:
        beating = asyncio.create_task(self._beat(index))
        try:
            await Rebuild(self._parts, self._options.rebuild, record, index).run()
        except Exception as error:  # noqa: BLE001 - a defect must end the operation, or it would be begun for ever
            await self._fail(record, error)
        finally:
            await end(beating)

    async def _beat(self, index: FollowedIndex) -> None:
        """Renews the marker; when it fails others may go on, too, which does no harm."""
        while True:
            await asyncio.sleep(self._options.abandoned_s / 4)
            try:
                await self._mark(index, self._deadline())
            except BackendUnavailable as error:
                log.debug("the marker of a rebuild was not renewed: %s", error)

    async def _fail(self, record: OperationRecord, error: Exception) -> None:
        correlation_id = secrets.token_hex(8)
        log.error("%s failed, correlation id %s", record.name, correlation_id, exc_info=error)
        ended = failed(record, Defect(correlation_id), self._parts.clock.now_us())
        try:
            await self._parts.store.save_operations([ended], self._deadline())
        except BackendUnavailable as unavailable:
            log.warning("%s stays unfinished and is begun again: %s", record.name, unavailable)

    def _deadline(self) -> float:
        return asyncio.get_running_loop().time() + self._options.step_timeout_s


def _marker(name: str) -> str:
    return f"reindex:{name}"


def _digest(principal_id: str, request_id: str) -> str:
    return hashlib.sha256(f"{principal_id}\0{request_id}".encode()).hexdigest()[:32]
