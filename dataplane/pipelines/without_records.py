"""Candidates while the record store is down: from the indexes alone, which keep the packed row of each memory.

Read-only, and behind by what the indexes have not applied; the answer says so. Nothing forgotten comes back: a row
counts only when the cache says that its memory is not forgotten, and only while the cache can be relied on for that
(`pipelines.tombstones`). An index that may lack or still hold old memories (`Projectors.unlevel`) is not asked, nor one
that has just kept this search waiting in vain. When that leaves nothing to answer from, the answer is UNAVAILABLE: no
rows at all would look like "no memories".
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import TypeVar

from dataplane.errors import BackendUnavailable
from dataplane.model import Memory, State, StoredCandidate
from dataplane.pipelines.degraded import BACKEND_UNAVAILABLE
from dataplane.pipelines.project import Projectors
from dataplane.pipelines.retrieve import Asked, Gathered, Retrieval
from dataplane.pipelines.spaces import Spaces
from dataplane.pipelines.stages import cut
from dataplane.pipelines.tombstones import Tombstones
from dataplane.ports import Index, TextIndex
from dataplane.row_codec import unpack_memory

BACKEND = "record_store"
FROM_INDEXES = "answered from the indexes; changes of the last moments may be missing"
NOT_AS_FRESH = f"{FROM_INDEXES}, also the one named by at_least_as_fresh"

T = TypeVar("T")


class WithoutRecords:
    """Gathers the candidates of a question from the indexes alone."""

    def __init__(
        self, retrieval: Retrieval, spaces: Spaces, texts: TextIndex, projectors: Projectors, tombstones: Tombstones
    ):
        self._retrieval = retrieval
        self._spaces = spaces
        self._texts = texts
        self._projectors = projectors
        self._tombstones = tombstones

    async def gather(self, asked: Asked, deadline_s: float) -> Gathered:
        """What the indexes have. Raises BackendUnavailable when they have nothing, or it cannot be relied on."""
        question, unlevel = asked.question, frozenset(self._projectors.unlevel)
        continuity, proposed = await asyncio.gather(
            self._tombstones.relied_on(deadline_s),
            self._retrieval.propose(asked, unlevel | asked.degraded.down(), cut(deadline_s)),
        )
        ids = proposed.fused(question)
        memories, forgotten = await asyncio.gather(
            self._memories(asked, ids, unlevel | asked.degraded.down(), cut(deadline_s)),
            self._tombstones.among(ids, continuity, deadline_s),
        )
        if not memories:
            raise BackendUnavailable(BACKEND, "and the indexes have nothing to answer from")
        rows = {
            memory.memory_id: StoredCandidate(memory, None, 0)
            for memory in memories
            if memory.memory_id not in forgotten and memory.state is State.ACTIVE
        }
        self._note(asked, unlevel)
        return Gathered(
            rows,
            asked.vectors,
            proposed.by_words(question),
            frozenset(rows) if asked.degraded.any_of("text_index") else frozenset(),
            {item.memory_id: item.score for item in proposed.near},
        )

    async def check(self, deadline_s: float) -> None:
        """Raises BackendUnavailable when no question can be answered now."""
        await self._tombstones.relied_on(deadline_s)
        counts = [partial(index.count, deadline_s) for index in self._indexes(frozenset(self._projectors.unlevel))]
        found = await _each(counts)
        if all(isinstance(each, BackendUnavailable) or not each for each in found):  # one that is empty has no answer
            raise BackendUnavailable(BACKEND, "and no index can stand in for it")

    async def _memories(
        self, asked: Asked, memory_ids: Sequence[str], but: frozenset[str], deadline_s: float
    ) -> list[Memory]:
        """The newest version that an index has of each; what lies outside the scope is left out here again.

        An index that does not give its rows is noted: what it alone has is missing.
        """
        scope = asked.question.scope
        newest: dict[str, Memory] = {}
        for found in await _each([partial(index.rows, scope, memory_ids, deadline_s) for index in self._indexes(but)]):
            if isinstance(found, BackendUnavailable):
                asked.degraded.add(found.backend, BACKEND_UNAVAILABLE, FROM_INDEXES)
                continue
            for memory_id, row in found.items():
                memory = unpack_memory(row)
                if memory is None or memory.memory_id != memory_id or not scope.covers(memory.namespace, memory.pool):
                    continue
                if memory_id not in newest or newest[memory_id].version < memory.version:
                    newest[memory_id] = memory
        return list(newest.values())

    def _indexes(self, but: frozenset[str]) -> list[Index]:
        indexes: dict[str, Index] = {"vector_index": self._spaces.current.vectors, "text_index": self._texts}
        return [index for name, index in indexes.items() if name not in but]

    def _note(self, asked: Asked, unlevel: frozenset[str]) -> None:
        degraded = asked.degraded
        degraded.add(BACKEND, BACKEND_UNAVAILABLE, FROM_INDEXES)
        degraded.reword("found by words", "vector_index", "embedder")
        degraded.reword("found by meaning", "text_index")
        for index in sorted(unlevel):
            degraded.add(index, "REBUILDING", "not asked; it may lack memories, or still hold old ones")


async def _each(calls: Sequence[Callable[[], Awaitable[T]]]) -> list[T | BackendUnavailable]:
    """What each call comes to, all made at once."""
    return await asyncio.gather(*(_tried(call) for call in calls))


async def _tried(call: Callable[[], Awaitable[T]]) -> T | BackendUnavailable:
    try:
        return await call()
    except BackendUnavailable as error:
        return error
