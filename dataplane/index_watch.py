"""Compares the indexes lightly with the record store now and then: a broken one is told of, and repaired, unfelt.

What vanishes at once is noticed by beacons (`pipelines.beacons`) long before; this finds what is wrong in single ones.

Under load what is counted first and what is counted last may differ with nothing wrong: so a find is told when a look
some seconds later finds the same, and what is told is looked at again soon, until it is gone.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from dataplane.errors import BackendUnavailable
from dataplane.pipelines.check_indexes import CheckIndexes, CheckQuestion
from dataplane.ports import Clock, Problem, RecordStore
from memplane.v1 import maintenance_service_pb2 as pb

log = logging.getLogger("memplane.dataplane.index_watch")

INDEX_BEHIND = "INDEX_BEHIND"
INDEX_INCONSISTENT = "INDEX_INCONSISTENT"
Found = Mapping[str, tuple[Problem, ...]]
"""What is wrong, by backend."""
BACKENDS = {pb.INDEX_KIND_VECTOR: "vector_index", pb.INDEX_KIND_TEXT: "text_index"}


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """How often and how closely the indexes are looked at; unmeasured.

    Attributes:
        delay_s: Before the first look.
        interval_s: Between looks while nothing is told.
        again_s: Between looks while something is.
        confirm_s: Between a find and the look that confirms it.
        timeout_s: For one look.
        sample_size: Memories looked up.
        behind_s: How old a waiting change may be.
    """

    delay_s: float = 60.0
    interval_s: float = 600.0
    again_s: float = 30.0
    confirm_s: float = 5.0
    timeout_s: float = 60.0
    sample_size: int = 200
    behind_s: float = 300.0


class IndexWatch:
    """`problems`, one dict throughout, has what the last looks found of the indexes that searches use, by backend.

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
        self._suspect_again_s: dict[str, float] = {}

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
            await asyncio.sleep(self._options.again_s if any(self.problems.values()) else self._options.interval_s)

    async def look(self) -> None:
        """Looks once, and once more before it tells anything new; raises BackendUnavailable."""
        found, known = await self._find(), _codes(self.problems)
        if new := _codes(found) - known:
            await asyncio.sleep(self._options.confirm_s)
            found = _only(await self._find(), known | new)
        for backend, problems in found.items():
            for problem in problems:
                if (backend, problem.code) not in known:
                    log.warning("%s: %s", backend, problem.message)
        self.problems.clear()
        self.problems.update(found)

    async def _find(self) -> Found:
        deadline_s = asyncio.get_running_loop().time() + self._options.timeout_s
        ages_s = await self._ages(deadline_s)
        found: defaultdict[str, tuple[Problem, ...]] = defaultdict(tuple)
        for check in await self._checks.look(CheckQuestion(sample_size=self._options.sample_size), deadline_s):
            if check.active:
                found[BACKENDS[check.index]] += tuple(self._problems(check, ages_s.get(check.name, 0.0)))
            if wrong := _wrong(check):
                self._suspect_now_and_then(check.name, f"of {check.sampled_count} memories looked at {wrong} are wrong")
        return found

    def _suspect_now_and_then(self, name: str, what: str) -> None:
        """A repair under way is not begun anew by every look."""
        now_s = asyncio.get_running_loop().time()
        if now_s >= self._suspect_again_s.get(name, 0.0):
            self._suspect_again_s[name] = now_s + self._options.interval_s
            self._suspect(name, what)

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


def _codes(found: Found) -> set[tuple[str, str]]:
    return {(backend, problem.code) for backend, problems in found.items() for problem in problems}


def _only(found: Found, codes: set[tuple[str, str]]) -> Found:
    return {
        backend: tuple(problem for problem in problems if (backend, problem.code) in codes)
        for backend, problems in found.items()
    }


def _wrong(check: pb.IndexCheck) -> int:
    return check.missing_count + check.stale_count + check.different_count
