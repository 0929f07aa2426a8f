"""Lists a namespace's memories, newest first. COLD is told apart from ACTIVE when read."""

from collections.abc import AsyncIterator
from dataclasses import dataclass

from dataplane.errors import BackendUnavailable
from dataplane.logic.expiry import has_expired
from dataplane.model import EVERYTHING, Filter, Memory, Scope, State
from dataplane.pipelines.caller import Caller
from dataplane.pipelines.get import state_now
from dataplane.pipelines.sight import may_list, narrowed, sight_of
from dataplane.ports import Clock, ListQuery, RecordStore
from memplane.errors import Unavailable


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """What to list: states as clients see them; `after` is (create_time_us, id) of the last row shown."""

    namespace: str
    states: frozenset[State]
    page_size: int
    filter: Filter = EVERYTHING
    after: tuple[int, str] | None = None


@dataclass(frozen=True, slots=True)
class Page:
    """Rows with their state and strength now, and where the next page starts (None: nowhere)."""

    rows: tuple[tuple[Memory, State, float], ...]
    after: tuple[int, str] | None


class ListPipeline:
    """Lists by page."""

    def __init__(self, store: RecordStore, clock: Clock):
        self._store = store
        self._clock = clock

    async def list(self, listing: Listing, caller: Caller, deadline_s: float) -> Page:
        """A full page, unless it is the last.

        What was forgotten is listed to who may forget, what is withheld to reviewers; what has expired to nobody.
        """
        caller.require("memory.read", listing.namespace)
        if State.SOFT_DELETED in listing.states:
            caller.require("memory.forget", listing.namespace)
        if listing.states & {State.PENDING_REVIEW, State.QUARANTINED}:
            caller.require("review", listing.namespace)
        rows: list[tuple[Memory, State, float]] = []
        now_us = self._clock.now_us()
        async for memory in self._stored(listing, caller, deadline_s):
            if not may_list(caller, memory):
                continue
            state, strength = state_now(memory, caller, now_us)
            if state not in listing.states or has_expired(memory, now_us):
                continue
            if len(rows) == listing.page_size:
                last = rows[-1][0]
                return Page(tuple(rows), (last.create_time_us, last.memory_id))
            rows.append((memory, state, strength))
        return Page(tuple(rows), None)

    async def _stored(self, listing: Listing, caller: Caller, deadline_s: float) -> AsyncIterator[Memory]:
        stored = {State.ACTIVE if state is State.COLD else state for state in listing.states}
        states, scope = tuple(sorted(stored)), Scope((listing.namespace,))
        after, size = listing.after, listing.page_size + 1
        filter = narrowed(listing.filter, sight_of(caller, scope).filter())
        while True:
            try:
                query = ListQuery(states, filter, size, after)
                memories = await self._store.list_memories(scope, query, deadline_s)
            except BackendUnavailable as error:
                raise Unavailable(error.backend) from error
            for memory in memories:
                yield memory
            if len(memories) < size:
                return
            after = (memories[-1].create_time_us, memories[-1].memory_id)
