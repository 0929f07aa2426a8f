"""Notices a wiped index and a restored record store by beacons (`logic.beacon`), and has wiped indexes repaired.

A new beacon goes into the record store, then into a file of this data plane, then into the indexes. Nothing new is
written before everything was compared once: a new beacon would cover what an old one tells. Markers of the record store
name the newest beacon of each data plane, what each index acknowledged to it, the era, and whether somebody noticed
that the record store was restored: all data planes say so until an operator's rebuild accepts it.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from dataplane.errors import BackendUnavailable
from dataplane.logic.beacon import MARKS, Beacon, following, is_ahead
from dataplane.pipelines.gone import GonePlanes
from dataplane.pipelines.index_care import IndexCare
from dataplane.pipelines.lineage import BEACON, ERA, RECORD_STORE_RESTORED, RESTORED, Lineage
from dataplane.pipelines.project import Projectors
from dataplane.pipelines.returned import Returned
from dataplane.ports import Cache, Problem, RecordStore
from memplane.v1 import maintenance_service_pb2 as pb

log = logging.getLogger("memplane.beacons")

BACKENDS = {pb.INDEX_KIND_VECTOR: "vector_index", pb.INDEX_KIND_TEXT: "text_index"}


class Witness(Protocol):
    """Where this data plane keeps its last beacon and the newest position for itself; may block. Raises OSError."""

    def read(self) -> tuple[int, int]:
        """Both; 0: none is known."""
        ...

    def write(self, number: int, position: int) -> None:
        """Keeps both."""
        ...


@dataclass(frozen=True, slots=True)
class BeaconOptions:
    """Times in seconds. Unmeasured.

    `look_s`: between looks; `soon_s`: the same while something is down or in doubt. `interval_s`: between beacons.
    `hear_timeout_s`: how long indexes may take to tell their beacons. `remind_s`: between log lines. `repair_pause_s`:
    from a repair that failed to the next one.
    """

    look_s: float = 1.0
    soon_s: float = 0.5
    interval_s: float = 10.0
    hear_timeout_s: float = 2.0
    step_timeout_s: float = 5.0
    remind_s: float = 60.0
    repair_pause_s: float = 10.0


@dataclass(frozen=True, slots=True)
class BeaconParts:
    """What beacons need of the world. `mark` gives random marks below `MARKS`; `node` names this data plane."""

    store: RecordStore
    cache: Cache
    projectors: Projectors
    lineage: Lineage
    witness: Witness
    mark: Callable[[], int]
    node: str


class Beacons:
    """`problems`, one dict throughout, has what is wrong, by backend."""

    def __init__(self, parts: BeaconParts, cares: Sequence[IndexCare], options: BeaconOptions):
        self.problems: dict[str, tuple[Problem, ...]] = {}
        self._parts = parts
        self._cares = tuple(cares)
        self._options = options
        self._own = f"{BEACON}{parts.node}"
        self._gone = GonePlanes(parts.store, self._cares, parts.node, self._deadline)
        self._returned = Returned(parts.store, parts.cache, self._deadline)
        self._last = 0
        self._coming = 0
        self._position = 0
        self._covered = -1
        self._witnessed = (0, 0)
        self._lit_at_s: float | None = None
        self._reminded_at_s: float | None = None
        self._is_started = False
        self._is_store_down = False
        self._is_witness_kept = True

    def suspect(self, index: str, what: str) -> None:
        """Has an index repaired, by its name in the outbox, for what somebody else found wrong in it."""
        for care in self._cares:
            if care.index.name == index:
                care.suspect(what)

    async def run(self) -> None:
        """Looks until cancelled."""
        try:
            await self._run()
        finally:
            await self._returned.stop()

    async def _run(self) -> None:
        while True:
            try:
                await self.look()
                if self._is_store_down:
                    self._resume()
            except BackendUnavailable as error:
                self._is_store_down = True
                log.debug("beacons were not compared: %s", error)
            except Exception:  # the loop must live on: they are compared again
                log.exception("beacons could not be compared")
            await asyncio.sleep(self._options.soon_s if self._is_in_doubt() else self._options.look_s)

    async def look(self) -> None:
        """Compares, repairs and lights once; raises BackendUnavailable.

        The indexes are read first. So what they hold is never ahead of the record store in a healthy house.
        """
        if not self._is_started:
            self._last, self._position = await asyncio.to_thread(self._parts.witness.read)
            self._is_started = True
        hear_until_s = asyncio.get_running_loop().time() + self._options.hear_timeout_s
        await asyncio.gather(*(care.hear(hear_until_s) for care in self._cares))
        evidence = await self._evidence()
        if evidence:
            await self._note_restored(evidence)
        self._tell()
        if self._parts.lineage.is_restored:
            return
        await self._light_when_due()
        await self._witness()
        await asyncio.gather(*(self._tend(care) for care in self._cares))
        self._tell()
        await self._gone.look(self._parts.lineage.era)

    async def _evidence(self) -> str:
        """Who has what the record store lacks; "" when nobody has."""
        store, lineage = self._parts.store, self._parts.lineage
        era = await store.marker(ERA, self._deadline())
        is_restored = await store.marker(RESTORED, self._deadline()) > era
        self._take(era, is_restored=is_restored)
        stored = await store.marker(self._own, self._deadline())
        known = max(self._position, self._parts.projectors.newest)
        self._position = await store.last_position(self._deadline())
        went_back = self._position < known and Beacon.of(self._last).era == era
        if is_ahead(self._last, stored, lineage.era):
            return f"data plane {self._parts.node}"
        self._last = stored
        if went_back:
            return "its own last position"
        for care in self._cares:
            if await self._is_ahead(care):
                return care.index.name
        return ""

    async def _is_ahead(self, care: IndexCare) -> bool:
        if care.heard is None:
            return False
        for name, seen in care.heard.items():
            if care.verified.get(name) != seen:
                stored = await self._parts.store.marker(f"{BEACON}{name}", self._deadline())
                if is_ahead(seen, stored, self._parts.lineage.era):
                    return True
                care.verified[name] = seen
        care.was_verified = True
        return False

    def _take(self, era: int, *, is_restored: bool) -> None:
        lineage = self._parts.lineage
        if is_restored and not lineage.is_restored:
            self._parts.projectors.forget_past()
            self._returned.start()
        if era != lineage.era:
            self._covered = -1
        lineage.era, lineage.is_restored = era, is_restored

    async def _note_restored(self, evidence: str) -> None:
        """Lets every data plane know; said at once and again and again."""
        era = self._parts.lineage.era
        if not self._parts.lineage.is_restored:
            await self._parts.store.raise_marker(RESTORED, era + 1, 1, self._deadline())
            self._take(era, is_restored=True)
            log.error("the record store is not the one of before: %s knows of later changes", evidence)

    async def _light_when_due(self) -> None:
        """A new beacon, at the start and when positions moved."""
        now_s = asyncio.get_running_loop().time()
        is_early = self._lit_at_s is not None and now_s < self._lit_at_s + self._options.interval_s
        is_new_era = Beacon.of(self._last).era != self._parts.lineage.era
        if not all(care.was_verified for care in self._cares):
            return
        if self._covered == self._position or (is_early and not is_new_era):
            return
        stored = await self._parts.store.raise_marker(self._own, self._next(), MARKS, self._deadline())
        self._last, self._coming, self._covered, self._lit_at_s = stored, 0, self._position, now_s

    def _next(self) -> int:
        """The next beacon: the same one until it is known to be stored, for a save that failed may yet come through.

        With another mark that would look like another past of the record store.
        """
        before = Beacon.of(self._last)
        if Beacon.of(self._coming).place <= before.place or Beacon.of(self._coming).era != self._parts.lineage.era:
            self._coming = following(self._last, self._parts.lineage.era, self._parts.mark())
        return self._coming

    async def _witness(self) -> None:
        """Keeps for itself what it knows now."""
        known = self._last, self._position
        if known == self._witnessed or not self._last:
            return
        try:
            await asyncio.to_thread(self._parts.witness.write, *known)
        except OSError as error:
            if self._is_witness_kept:
                log.warning("what is known of the record store was not kept in the data folder: %s", error.strerror)
            self._is_witness_kept = False
        else:
            self._witnessed, self._is_witness_kept = known, True

    async def _tend(self, care: IndexCare) -> None:
        try:
            await care.tend(self._last, self._parts.lineage.era, self._deadline)
        except BackendUnavailable as error:
            log.debug("%s was not looked after: %s", care.index.name, error)

    def _tell(self) -> None:
        self.problems.clear()
        for care in self._cares:
            if care.problem is not None:
                self.problems[BACKENDS[care.index.kind]] = (care.problem,)
        if not self._parts.lineage.is_restored:
            self._reminded_at_s = None
            return
        came_back = (
            f"; {self._returned.count} forgotten memories came back, see the log" if self._returned.count else ""
        )
        self.problems["record_store"] = (Problem(RECORD_STORE_RESTORED, TOLD + came_back),)
        now_s = asyncio.get_running_loop().time()
        if self._reminded_at_s is None or now_s >= self._reminded_at_s + self._options.remind_s:
            self._reminded_at_s = now_s
            log.error("%s", TOLD)

    def _is_in_doubt(self) -> bool:
        return self._is_store_down or any(
            care.heard is None or care.is_suspicious or care.problem is not None for care in self._cares
        )

    def _resume(self) -> None:
        self._is_store_down = False
        for projector in self._parts.projectors:
            projector.retry_now()

    def _deadline(self) -> float:
        return asyncio.get_running_loop().time() + self._options.step_timeout_s


TOLD = (
    "the record store was restored from an older backup, or is another one: changes that were acknowledged are "
    "missing; if it is the right one, `memplane indexes rebuild VECTOR --repair-only --wait` and the same with TEXT "
    "accept it and mend the indexes (docs/operations.md: The record store was restored)"
)
