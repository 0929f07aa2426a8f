"""Compares indexes with the record store: by count, and by version and content of a sample or of everything.

A memory that looks wrong may just have changed. So it is looked at again, in an order that cannot mislead: first what
the record store says, then whether the index still awaits it, then what the index holds. What awaits delivery is no
fault. A change that comes between the first and the last look makes one memory look wrong once, so there are two looks.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from dataplane.changes import IndexProgress, OutboxRow
from dataplane.errors import BackendUnavailable
from dataplane.logic.id_sample import UnseenIds
from dataplane.logic.index_faults import Fault, counts_agree, fault_of
from dataplane.model import SYSTEM_SCOPE, Held, IndexKey
from dataplane.pipelines.caller import Caller
from dataplane.pipelines.followed import FollowedIndex, FollowedIndexes, keys_of
from dataplane.ports import RecordStore
from memplane.errors import Unavailable
from memplane.v1 import maintenance_service_pb2 as pb

PAGE_SIZE = 500
"""Memories compared between two turns of the event loop at most. Unmeasured."""
DRAWS = 100
"""Into how many places of the id range a sample reaches. Unmeasured."""
VAIN_DRAWS = 100
"""Places that may turn out to be empty or known before a sample stays smaller; the empty ends cost about ten."""
LOOKS = 2
MAX_IDS = 100
"""How many faulty memories are named."""


@dataclass(frozen=True, slots=True)
class CheckQuestion:
    """Which kind of index, how many memories, or all of them and orphans too."""

    kind: pb.IndexKind.ValueType = pb.INDEX_KIND_UNSPECIFIED
    sample_size: int = 1_000
    full: bool = False


@dataclass(slots=True)
class _Found:
    """What a comparison has come across."""

    sampled: int = 0
    faults: dict[str, Fault] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Counts:
    """What was counted while nothing, or little, changed."""

    records: int
    index: int
    progress: IndexProgress
    passed: int

    @property
    def lacking(self) -> int:
        """How many memories the index lacks at least, beyond what waits, was given up, or came while counting."""
        return max(0, self.records - self.index - self._explained)

    @property
    def surplus(self) -> int:
        """How many entries the index has at least that the record store does not, beyond the same."""
        return max(0, self.index - self.records - self._explained)

    @property
    def _explained(self) -> int:
        return self.progress.due_count + self.progress.dead_count + self.passed


class CheckIndexes:
    """Compares; changes nothing. `draw` gives numbers from 0 to 1, without 1, at random."""

    def __init__(self, store: RecordStore, indexes: FollowedIndexes, draw: Callable[[], float]):
        self._store = store
        self._indexes = indexes
        self._draw = draw

    async def check(self, question: CheckQuestion, caller: Caller, deadline_s: float) -> list[pb.IndexCheck]:
        """How each index stands that the outbox feeds; raises PermissionDenied, or Unavailable."""
        caller.require("maintenance", None)
        try:
            return await self.look(question, deadline_s)
        except BackendUnavailable as error:
            raise Unavailable(error.backend) from error

    async def look(self, question: CheckQuestion, deadline_s: float) -> list[pb.IndexCheck]:
        """The same for this process itself; raises BackendUnavailable."""
        fed = {item.index for item in await self._store.progress(deadline_s)}
        chosen = [index for index in self._indexes.of_kind(question.kind) if index.name in fed]
        return [await self._check(index, question, deadline_s) for index in chosen]

    async def faults(self, index: FollowedIndex, rows: Sequence[OutboxRow], deadline_s: float) -> dict[str, Fault]:
        """Which of these rows an index holds wrongly, and does not await."""
        held = await index.index.held(keys_of(rows), deadline_s)
        return await self._confirmed(index, _suspects(index, rows, held), deadline_s)

    async def orphans(self, index: FollowedIndex, held: Mapping[str, Held], deadline_s: float) -> list[IndexKey]:
        """Which of the memories that an index holds are not ACTIVE in the record store, and are not on their way out.

        `held` was read before the record store was.
        """
        found: list[IndexKey] = []
        keys = [IndexKey(memory_id, each.namespace) for memory_id, each in held.items()]
        for start in range(0, len(keys), PAGE_SIZE):
            page = keys[start : start + PAGE_SIZE]
            faults = await self._confirmed(index, page, deadline_s)
            found.extend(key for key in page if faults.get(key.memory_id) is Fault.ORPHAN)
        return found

    async def _check(self, index: FollowedIndex, question: CheckQuestion, deadline_s: float) -> pb.IndexCheck:
        counts = await self.count(index, deadline_s)
        if question.full:
            found = await self._everything(index, deadline_s)
        else:
            found = await self._sample(index, question.sample_size, counts.records, deadline_s)
        return self._told(index, counts, found)

    async def count(self, index: FollowedIndex, deadline_s: float) -> Counts:
        """How many memories each side has; raises BackendUnavailable."""
        before = await self._store.last_position(deadline_s)
        progress = await self._progress(index.name, deadline_s)
        records = await self._store.count(deadline_s)
        entries = await index.index.count(deadline_s)
        return Counts(records, entries, progress, await self._store.last_position(deadline_s) - before)

    async def _progress(self, name: str, deadline_s: float) -> IndexProgress:
        found = [item for item in await self._store.progress(deadline_s) if item.index == name]
        return found[0] if found else IndexProgress(name, 0, 0, 0, None)

    async def _everything(self, index: FollowedIndex, deadline_s: float) -> _Found:
        held = await index.index.versions(deadline_s)
        found = _Found()
        async for rows in self._all_rows(index.model, deadline_s):
            await self._compare(index, rows, held, found, deadline_s)
            for row in rows:
                held.pop(row.memory_id, None)
        orphans = await self.orphans(index, held, deadline_s)
        found.faults.update((key.memory_id, Fault.ORPHAN) for key in orphans)
        return found

    async def _sample(self, index: FollowedIndex, size: int, record_count: int, deadline_s: float) -> _Found:
        found = _Found()
        if record_count <= size:
            pages = self._all_rows(index.model, deadline_s)
        else:
            pages = self._drawn_rows(index.model, size, deadline_s)
        async for rows in pages:
            held = await index.index.held(keys_of(rows), deadline_s)
            await self._compare(index, rows, held, found, deadline_s)
        return found

    async def _compare(
        self,
        index: FollowedIndex,
        rows: Sequence[OutboxRow],
        held: Mapping[str, Held],
        found: _Found,
        deadline_s: float,
    ) -> None:
        found.sampled += len(rows)
        found.faults.update(await self._confirmed(index, _suspects(index, rows, held), deadline_s))

    async def _all_rows(self, model: str, deadline_s: float) -> AsyncIterator[list[OutboxRow]]:
        after_id = ""
        while rows := await self._store.scan(after_id, PAGE_SIZE, deadline_s, model):
            after_id = rows[-1].memory_id
            yield rows
            await asyncio.sleep(0)

    async def _drawn_rows(self, model: str, size: int, deadline_s: float) -> AsyncIterator[list[OutboxRow]]:
        unseen, seen, run = UnseenIds(), set[str](), max(1, min(PAGE_SIZE, size // DRAWS))
        for _ in range(VAIN_DRAWS + 2 * size // run):
            after_id = unseen.draw(self._draw())
            if after_id is None or len(seen) >= size:
                return
            rows = await self._store.scan(after_id, run, deadline_s, model)
            unseen.saw(after_id, rows[-1].memory_id if rows else None)
            fresh = [row for row in rows if row.memory_id not in seen][: size - len(seen)]
            seen.update(row.memory_id for row in fresh)
            if fresh:
                yield fresh
            await asyncio.sleep(0)

    async def _confirmed(
        self, index: FollowedIndex, suspects: Sequence[IndexKey], deadline_s: float
    ) -> dict[str, Fault]:
        """What is still wrong with the suspects after LOOKS looks in the order that the module's text gives."""
        faults: dict[str, Fault] = {}
        for _ in range(LOOKS):
            if not suspects:
                return {}
            faults = await self._look_again(index, suspects, deadline_s)
            suspects = [key for key in suspects if key.memory_id in faults]
        return faults

    async def _look_again(
        self, index: FollowedIndex, suspects: Sequence[IndexKey], deadline_s: float
    ) -> dict[str, Fault]:
        ids = [key.memory_id for key in suspects]
        stored = {
            each.memory.memory_id: OutboxRow(
                0, each.memory.memory_id, each.memory.namespace, each.memory, each.embedding
            )
            for each in await self._store.fetch(SYSTEM_SCOPE, ids, index.model, 0, deadline_s)
        }
        awaited = {key for key in suspects if index.name in await self._store.undelivered(key.memory_id, deadline_s)}
        held = await index.index.held(suspects, deadline_s)
        faults: dict[str, Fault] = {}
        for key in suspects:
            row = stored.get(key.memory_id)
            fault = fault_of(None if row is None else index.expected(row), held.get(key.memory_id))
            if fault is not None and key not in awaited:
                faults[key.memory_id] = fault
        return faults

    def _told(self, index: FollowedIndex, counts: Counts, found: _Found) -> pb.IndexCheck:
        by_fault = Counter(found.faults.values())
        progress = counts.progress
        agree = counts_agree(counts.records, counts.index, progress, counts.passed)
        return pb.IndexCheck(
            index=index.kind,
            name=index.name,
            active=self._indexes.is_active(index),
            record_count=counts.records,
            index_count=counts.index,
            due_count=progress.due_count,
            dead_count=progress.dead_count,
            watermark=progress.watermark,
            sampled_count=found.sampled,
            missing_count=by_fault[Fault.MISSING],
            stale_count=by_fault[Fault.STALE],
            different_count=by_fault[Fault.DIFFERENT],
            orphan_count=by_fault[Fault.ORPHAN],
            memory_ids=sorted(found.faults)[:MAX_IDS],
            consistent=agree and not found.faults and not progress.dead_count,
        )


def _suspects(index: FollowedIndex, rows: Sequence[OutboxRow], held: Mapping[str, Held]) -> list[IndexKey]:
    return [
        IndexKey(row.memory_id, row.namespace)
        for row in rows
        if fault_of(index.expected(row), held.get(row.memory_id)) is not None
    ]
