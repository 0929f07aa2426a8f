"""Compares the indexes lightly with the record store now and then: a broken one is told of, and repaired, unfelt.

What vanishes at once is noticed by beacons (`pipelines.beacons`) long before; this finds what is wrong in single ones.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from dataplane.errors import BackendUnavailable
from dataplane.pipelines.check_indexes import CheckIndexes, CheckQuestion
from dataplane.ports import Clock, Problem, RecordStore
from memplane.v1 import maintenance_service_pb2 as pb

log = logging.getLogger("memplane.dataplane.index_watch")

INDEX_BEHIND = "INDEX_BEHIND"
INDEX_INCONSISTENT = "INDEX_INCONSISTENT"
BACKENDS = {pb.INDEX_KIND_VECTOR: "vector_index", pb.INDEX_KIND_TEXT: "text_index"}


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """Seconds before the first look, between looks and for one; memories looked up; how old a waiting change may be.

    Unmeasured.
    """

    delay_s: float = 60.0
    interval_s: float = 600.0
    timeout_s: float = 60.0
    sample_size: int = 200
    behind_s: float = 300.0


class IndexWatch:
    """`problems`, one dict throughout, has what the last look found of the indexes that searches use, by backend.

    `suspect` is told the name of an index in which memories are wrong, and how many, so that it is repaired.
    """

    def __init__(
        self,
        store: RecordStore,
        checks: CheckIndexes,
        clock: Clock,
        options: WatchOptions,
        suspect: Callable[[str, str], None] = lambda _name, _what: None,
    ):
        self.problems: dict[str, tuple[Problem, ...]] = {}
        self._store = store
        self._checks = checks
        self._clock = clock
        self._options = options
        self._suspect = suspect

    async def run(self) -> None:
        """Looks until cancelled."""
        await asyncio.sleep(self._options.delay_s)
        while True:
            try:
                await self.look()
            except BackendUnavailable as error:  # told by its examination
                log.debug("the indexes were not compared: %s", error)
            except Exception:  # the loop must live on: the indexes are compared again
                log.exception("the indexes could not be compared")
            await asyncio.sleep(self._options.interval_s)

    async def look(self) -> None:
        """Looks once; raises BackendUnavailable."""
        deadline_s = asyncio.get_running_loop().time() + self._options.timeout_s
        ages_s = await self._ages(deadline_s)
        found: defaultdict[str, tuple[Problem, ...]] = defaultdict(tuple)
        for check in await self._checks.look(CheckQuestion(sample_size=self._options.sample_size), deadline_s):
            if check.active:
                found[BACKENDS[check.index]] += tuple(self._problems(check, ages_s.get(check.name, 0.0)))
            if wrong := _wrong(check):
                self._suspect(check.name, f"of {check.sampled_count} memories looked at {wrong} are wrong")
        for backend, problems in found.items():
            for problem in set(problems) - set(self.problems.get(backend, ())):
                log.warning("%s: %s", backend, problem.message)
        self.problems.clear()
        self.problems.update(found)

    async def _ages(self, deadline_s: float) -> dict[str, float]:
        """How old the oldest waiting change of each index is."""
        now_us = self._clock.now_us()
        progress = await self._store.progress(deadline_s)
        return {item.index: (now_us - item.oldest_due_us) / 1e6 for item in progress if item.oldest_due_us is not None}

    def _problems(self, check: pb.IndexCheck, age_s: float) -> Iterator[Problem]:
        if age_s > self._options.behind_s:
            text = f"{check.due_count} changes wait to reach {check.name}, the oldest since {age_s:.0f} s"
            yield Problem(INDEX_BEHIND, f"{text}; searches score them from the record store; its log says why")
        if not check.consistent:
            yield Problem(
                INDEX_INCONSISTENT,
                f"{check.name} holds {check.index_count} of {check.record_count} memories, {check.dead_count} changes "
                f"were given up, and of {check.sampled_count} memories looked at {_wrong(check)} are wrong; "
                "`memplane indexes check --full` says more, `memplane indexes rebuild --repair-only` mends it",
            )


def _wrong(check: pb.IndexCheck) -> int:
    return check.missing_count + check.stale_count + check.different_count
