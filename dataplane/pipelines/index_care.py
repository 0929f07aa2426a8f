"""One index as beacons see it: whether it still has what it acknowledged, and its repair while it serves."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from dataplane.errors import BackendUnavailable
from dataplane.logic.beacon import MARKS, Beacon, has_lost
from dataplane.pipelines.check_indexes import CheckIndexes, Counts
from dataplane.pipelines.followed import FollowedIndex
from dataplane.pipelines.lineage import BEACON
from dataplane.pipelines.projector import Projector
from dataplane.pipelines.reindex import RebuildEnd, Reindexing
from dataplane.ports import Problem, RecordStore

log = logging.getLogger("memplane.beacons")

INDEX_WIPED = "INDEX_WIPED"
INDEX_SURPLUS = "INDEX_SURPLUS"
COUNT_SHARE = 0.1
"""Of the time that counting may take, by the quicker one of the last two. Unmeasured."""


@dataclass(frozen=True, slots=True)
class CareParts:
    """What caring for indexes needs of the world. `node` names this data plane's beacons.

    `repair_pause_s`: from a repair that failed to the next one.
    """

    store: RecordStore
    checks: CheckIndexes
    reindexing: Reindexing
    node: str
    repair_pause_s: float


class IndexCare:
    """`heard` has the beacons that the index told last; None: it did not answer."""

    def __init__(self, parts: CareParts, index: FollowedIndex, projector: Projector):
        self.index = index
        self.projector = projector
        self.heard: dict[str, int] | None = None
        self.verified: dict[str, int] = {}
        self.was_verified = False
        self.problem: Problem | None = None
        self._parts = parts
        self._marker = f"{BEACON}{parts.node}:{index.name}"
        self._acknowledged: int | None = None
        self._repair = ""
        self._repair_at_s = 0.0
        self._astray = 0
        self._tolerated = 0
        self._was_astray = 0
        self._suspicion = ""
        self._was_down = False
        self._count_at_s = 0.0
        self._count_s = 0.0

    @property
    def is_suspicious(self) -> bool:
        """Whether the last count found too few or too many entries, which the next one is to confirm."""
        return self._astray != 0

    def suspect(self, what: str) -> None:
        """Has the index repaired for what somebody else found wrong in it."""
        self._suspicion = what

    async def hear(self, deadline_s: float) -> None:
        """Reads the beacons; one that answers again is told to its projector."""
        try:
            self.heard = await self.index.index.beacons(deadline_s)
        except BackendUnavailable as error:
            self.heard, self._was_down = None, True
            log.debug("the beacons of %s are not known: %s", self.index.name, error)
            return
        if self._was_down:
            self._was_down = False
            self.projector.retry_now()

    async def tend(self, latest: int, era: int, deadline: Callable[[], float]) -> None:
        """Repairs the index when it has lost something, else sees to it that it has the latest beacon.

        Raises BackendUnavailable.
        """
        if self.heard is None:
            return
        if self._acknowledged is None:
            self._acknowledged = await self._parts.store.marker(self._marker, deadline())
        if self._repair:
            await self._look_at_repair(deadline())
        elif self.problem is not None:
            await self._begin_repair(deadline())
        elif self.projector.is_level:
            held = self.heard.get(self._parts.node, 0)
            if has_lost(held, self._acknowledged, era):
                self._was_astray = 0
                await self._lose(_words_for(held, self._acknowledged, era), deadline())
            elif self._suspicion:
                self._was_astray, what, self._suspicion = 0, self._suspicion, ""
                await self._lose(what, deadline())
            elif counts := await self._wrong_counts(deadline()):
                self._was_astray = self._astray
                await self._mend(counts, deadline())
            elif Beacon.of(latest).era == era:
                await self._keep(held, latest, deadline())

    async def _keep(self, held: int, latest: int, deadline_s: float) -> None:
        if held != latest:
            await self.index.index.save_beacon(self._parts.node, latest, deadline_s)
        if self._acknowledged != latest:
            await self._parts.store.raise_marker(self._marker, latest, MARKS, deadline_s)
            self._acknowledged = latest

    async def _wrong_counts(self, deadline_s: float) -> Counts | None:
        """The second of two counts in a row that found more missing, or too much, than a repair could not mend."""
        before, started_s = self._astray, _now_s()
        if not before and started_s < self._count_at_s:
            return None
        counts = await self._parts.checks.count(self.index, deadline_s)
        took_s = _now_s() - started_s
        self._count_at_s = _now_s() + min(took_s, self._count_s) * (1 / COUNT_SHARE - 1)
        self._count_s = took_s
        found = _astray(counts)
        self._astray = found if abs(found) > abs(self._tolerated) else 0
        self._tolerated = min(self._tolerated, found, key=abs)
        return counts if before * self._astray > 0 else None

    async def _mend(self, counts: Counts, deadline_s: float) -> None:
        if counts.lacking:
            await self._lose(f"it lacks {counts.lacking} memories or more", deadline_s)
            return
        told = f"{self.index.name} holds {counts.surplus} entries or more that the record store does not have"
        self.problem = Problem(INDEX_SURPLUS, f"{told}; they are removed")
        log.warning("%s: no answer shows them while the record store is up; they are removed", told)
        await self._begin_repair(deadline_s)

    async def _lose(self, what: str, deadline_s: float) -> None:
        """From now on answers say that the index is being rebuilt."""
        self.projector.doubt()
        told = f"{self.index.name} lost what it had: {what}; it is repaired while searches go on"
        self.problem = Problem(INDEX_WIPED, told)
        log.error("%s", told)
        await self._begin_repair(deadline_s)

    async def _begin_repair(self, deadline_s: float) -> None:
        if _now_s() < self._repair_at_s:
            return
        try:  # makes anew one that is not there at all
            await self.index.index.save_beacon(self._parts.node, 0, deadline_s)
        except BackendUnavailable as error:
            log.info("before its repair: %s", error)
        counts = await self._parts.checks.count(self.index, deadline_s)
        is_mostly_there = 2 * counts.index > counts.records
        self._repair = await self._parts.reindexing.repair(self.index, deadline_s, repair_only=is_mostly_there)

    async def _look_at_repair(self, deadline_s: float) -> None:
        end = await self._parts.reindexing.ended(self._repair, deadline_s)
        if end is None:
            return
        if end is not RebuildEnd.BUILT:  # what was wrong is wrong still, and answers go on to say so
            log.error("the repair of %s is begun anew: %s is %s", self.index.name, self._repair, end.value)
            self._repair, self._repair_at_s = "", _now_s() + self._parts.repair_pause_s
            return
        counts = await self._parts.checks.count(self.index, deadline_s)
        log.info("%s is repaired (%s)", self.index.name, self._repair)
        self._repair, self._astray = "", 0
        self._tolerated = _astray(counts) if _astray(counts) == self._was_astray else 0
        self._acknowledged, self.problem = 0, None
        self.projector.trust()


def _astray(counts: Counts) -> int:
    """How many memories are missing at least, or, below 0, how many entries are too many."""
    return counts.lacking or -counts.surplus


def _words_for(held: int, acknowledged: int, era: int) -> str:
    if Beacon.of(acknowledged).era < era:
        return "another past of the record store was accepted"
    return "its beacon is gone" if held == 0 else "its beacon is not the one that it acknowledged"


def _now_s() -> float:
    return asyncio.get_running_loop().time()
