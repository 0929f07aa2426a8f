"""The projectors of all indexes together: what searches may rely on, and what still awaits an index."""

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress

from dataplane.ending import end
from dataplane.errors import BackendUnavailable
from dataplane.pipelines.projector import Projector, ProjectorOptions
from dataplane.pipelines.purge import marker_of
from dataplane.ports import RecordStore

log = logging.getLogger("memplane.project")

LEVEL_LOOK_S = 0.02
RELEASE_WITHIN_S = 2.0
RETIRE_INTERVAL_S = 3_600.0
"""How often it is looked for indexes that nobody follows any more. Unmeasured."""


class Projectors:
    """The projectors of all indexes that this process follows, those that do not count now included.

    `newest` is the highest position of a change that was waited for.
    """

    def __init__(self, store: RecordStore, projectors: Sequence[Projector], options: ProjectorOptions):
        self._store = store
        self._projectors = tuple(projectors)
        self._options = options
        self.newest = 0
        self._retirer: asyncio.Task[None] | None = None

    def __iter__(self) -> Iterator[Projector]:
        return iter(self._projectors)

    @property
    def applied(self) -> dict[str, int]:
        """For `RecordReads.pending`: the indexes that searches use now, each with how far it may be relied on."""
        return {projector.target: projector.position for projector in self._counting()}

    @property
    def unlevel(self) -> list[str]:
        """Names of the indexes in use that may lack old memories because they are still compared or filled."""
        return [projector.name for projector in self._counting() if not projector.is_level]

    def _counting(self) -> list[Projector]:
        return [projector for projector in self._projectors if projector.counts]

    async def start(self, *, paused: bool = False) -> None:
        """Brings every index level and begins to follow; `paused`: levels, then waits for `resume`.

        Returns once those in use are level, or what they need is down, or after `level_wait_s`: then they go on in the
        background.
        """
        await self._release_earlier()
        for projector in self._projectors:
            if paused:
                projector.pause()
            await projector.start()
        with suppress(TimeoutError):
            async with asyncio.timeout(self._options.level_wait_s):
                # ASYNC110: it is two facts of several projectors, once at the start.
                while any(not item.is_level and not item.last_error for item in self._counting()):  # noqa: ASYNC110
                    await asyncio.sleep(LEVEL_LOOK_S)
        self._retirer = asyncio.create_task(self._retire(), name="index-retirer")

    async def _release_earlier(self) -> None:
        """Frees what earlier processes of this data plane held; should another one of its name live, no harm is done.

        It notices that it lost its rows, and whoever has them brings the indexes to them once more (`pipelines.hand`).
        """
        node, _, _ = self._options.owner.rpartition("/")
        if not node:
            return
        try:
            await self._store.release_outbox(node, asyncio.get_running_loop().time() + RELEASE_WITHIN_S)
        except BackendUnavailable as error:
            log.info("what earlier processes of %s held is free once its leases run out: %s", node, error)

    async def stop(self) -> None:
        """Stops them all."""
        if self._retirer is not None:
            await end(self._retirer)
        for projector in self._projectors:
            await projector.stop()

    def wake(self) -> None:
        """Tells all that there may be new rows: after a commit here, or when another process says that it committed."""
        for projector in self._projectors:
            projector.wake()

    async def wait_for(self, changes: Mapping[str, int], timeout_s: float) -> bool:
        """Wakes all and waits until changes (memory id to outbox position) are in every index in use.

        Whether they are, as far as is known: False when the store cannot tell.
        """
        self.wake()
        self.newest = max(self.newest, *changes.values(), 0)
        try:
            reached = await asyncio.gather(*(item.wait_for(changes, timeout_s) for item in self._counting()))
        except BackendUnavailable:
            return False
        return all(reached)

    async def holding(self, memory_id: str, position: int, *, erased: bool, deadline_s: float) -> list[str]:
        """Names of the indexes, of any process, that may still hold a memory as it was before a change.

        `erased`: or that hold it in files that await the purge. All in use when the store cannot tell.
        """
        try:
            targets = await self._targets_holding(memory_id, position, erased=erased, deadline_s=deadline_s)
        except BackendUnavailable:
            targets = {item.target for item in self._counting()}
        return sorted({self._name_of(target) for target in targets})

    async def _targets_holding(self, memory_id: str, position: int, *, erased: bool, deadline_s: float) -> set[str]:
        targets = await self._store.undelivered(memory_id, deadline_s)
        targets -= {item.target for item in self._projectors if item.has_delivered(memory_id, position)}
        if erased:
            for followed in await self._store.progress(deadline_s):
                if await self._store.marker(marker_of(followed.index), deadline_s):
                    targets.add(followed.index)
        return targets

    def _name_of(self, target: str) -> str:
        return next((item.name for item in self._projectors if item.target == target), target.partition(":")[0])

    def forget_past(self) -> None:
        """Forgets every position: the record store has another past now, in which they mean other changes."""
        self.newest = 0
        for projector in self._projectors:
            projector.forget_past()

    async def _retire(self) -> None:
        """Ends the outbox rows of indexes that no process follows any more, else they would stay for ever."""
        while True:
            await asyncio.sleep(RETIRE_INTERVAL_S)
            deadline_s = asyncio.get_running_loop().time() + self._options.step_timeout_s
            try:
                retired = await self._store.retire_unseen(self._options.unseen_s, deadline_s)
            except Exception as error:  # noqa: BLE001 - the loop must live on: an outbox grows, nothing is lost
                log.warning("indexes not looked through for ones that nobody follows: %r", error)
            else:
                for target in retired:
                    log.warning("index %s is followed by nobody any more: retired", target)
