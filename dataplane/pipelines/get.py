"""Reads one memory, an old version of it, or its history.

While the record store is down these are UNAVAILABLE, and so are lists: who asks for a memory by its id wants it as it
stands, to change it or to show it, and neither answer has a place to say that it may be out of date. Searches answer.
"""

from dataplane.changes import MemoryVersion
from dataplane.errors import BackendUnavailable
from dataplane.logic.expiry import has_expired
from dataplane.logic.strength import is_cold, strength_at
from dataplane.model import Memory, Scope, State
from dataplane.pipelines.caller import Caller
from dataplane.pipelines.sight import READ, may, require_found
from dataplane.ports import Clock, RecordStore
from memplane.errors import MemoryNotFound, Unavailable, VersionNotFound


def state_now(memory: Memory, caller: Caller, now_us: int) -> tuple[State, float]:
    """The state as clients see it (ACTIVE turns COLD by its strength), and the strength now."""
    decay = caller.snapshot.policies.for_namespace(memory.namespace).decay
    strength = strength_at(memory.strength, memory.strength_time_us, now_us, decay)
    cold = memory.state is State.ACTIVE and is_cold(memory, now_us, decay)
    return (State.COLD if cold else memory.state), strength


async def find(store: RecordStore, namespace: str, memory_id: str, now_us: int, deadline_s: float) -> Memory:
    """The memory, unless it is forgotten or expired; MemoryNotFound says the same of one that never was."""
    try:
        memory = await store.get(Scope((namespace,)), memory_id, deadline_s)
    except BackendUnavailable as error:
        raise Unavailable(error.backend) from error
    if memory is None or memory.state is State.SOFT_DELETED or has_expired(memory, now_us):
        raise MemoryNotFound(memory_id, namespace)
    return memory


class GetPipeline:
    """Reads by id."""

    def __init__(self, store: RecordStore, clock: Clock):
        self._store = store
        self._clock = clock

    async def get(
        self, namespace: str, memory_id: str, version: int, caller: Caller, deadline_s: float
    ) -> tuple[Memory, State, float]:
        """The memory with its state and strength now; an old `version` (0: current) as it was recorded."""
        caller.require("memory.read", namespace)
        now_us = self._clock.now_us()
        current = await find(self._store, namespace, memory_id, now_us, deadline_s)
        require_found(caller, READ, current)
        if version in (0, current.version):
            return current, *state_now(current, caller, now_us)
        try:
            old = await self._store.get_version(Scope((namespace,)), memory_id, version, deadline_s)
        except BackendUnavailable as error:
            raise Unavailable(error.backend) from error
        if old is None or not may(caller, READ, old.memory):
            raise VersionNotFound(memory_id, version)
        return old.memory, old.memory.state, old.memory.strength

    async def versions(
        self, namespace: str, memory_id: str, before_version: int, page_size: int, caller: Caller, deadline_s: float
    ) -> list[MemoryVersion]:
        """A page of the history, newest first, of readable versions; `before_version` 0: from the newest."""
        caller.require("memory.read", namespace)
        current = await find(self._store, namespace, memory_id, self._clock.now_us(), deadline_s)
        require_found(caller, READ, current)
        shown: list[MemoryVersion] = []
        try:
            while True:
                scope, size = Scope((namespace,)), page_size - len(shown)
                found = await self._store.list_versions(scope, memory_id, before_version, size, deadline_s)
                shown += [version for version in found if may(caller, READ, version.memory)]
                if len(found) < size or len(shown) == page_size:
                    return shown
                before_version = found[-1].memory.version
        except BackendUnavailable as error:
            raise Unavailable(error.backend) from error
