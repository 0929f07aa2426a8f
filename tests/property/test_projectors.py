"""Two processes follow one index on a server that fails at random, while leases expire under them: nothing is lost."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from dataplane.adapters.inmemory.embedder import DIMENSION, HashEmbedder
from dataplane.adapters.inmemory.record_store import InMemoryRecordStore
from dataplane.adapters.inmemory.vector_index import InMemoryVectorIndex
from dataplane.changes import Erasure, OutboxRow
from dataplane.errors import BackendUnavailable, EntriesRefused
from dataplane.model import SYSTEM_SCOPE, IndexEntry, IndexKey, State
from dataplane.pipelines.projection import Projection
from dataplane.pipelines.projector import Projector, ProjectorOptions
from memplane.v1 import memory_pb2
from tests.contract.builders import NOW_US, commit_of, fields_of, memory_of, scope_of

TARGET = "vector_index:hash-384"
STEPS = 150
LEASE_S = 30.0


class MovedClock:
    """The store's clock; it stands until it is moved."""

    time_us = NOW_US

    def now_us(self) -> int:
        return self.time_us

    def forward(self, seconds: float) -> None:
        self.time_us += int(seconds * 1_000_000)


class ErraticIndex(InMemoryVectorIndex):
    """Takes its time, and fails before or after it did what it was asked to."""

    def __init__(self, rng: np.random.Generator):
        super().__init__(DIMENSION)
        self.erratic = True
        self._rng = rng

    async def upsert(self, entries: Sequence[IndexEntry], deadline_s: float) -> None:
        await self._falter()
        refused = {entry.memory_id for entry in entries if self._chance(0.05)}
        await super().upsert([entry for entry in entries if entry.memory_id not in refused], deadline_s)
        await self._falter()
        if refused and self._chance(0.5):
            raise EntriesRefused("vector_index", dict.fromkeys(refused, "not today"))
        if refused:
            raise ValueError("a vector is not to its liking")

    async def delete(self, keys: Sequence[IndexKey], deadline_s: float) -> None:
        await self._falter()
        await super().delete(keys, deadline_s)
        await self._falter()

    async def flush(self, deadline_s: float) -> None:
        await self._falter()

    async def _falter(self) -> None:
        for _ in range(self._rng.integers(4)):
            await asyncio.sleep(0)
        if self._chance(0.1):
            raise BackendUnavailable("vector_index", "no answer")

    def _chance(self, share: float) -> bool:
        return self.erratic and bool(self._rng.random() < share)


class Writers:
    """Creates, changes, hides and erases memories at random."""

    def __init__(self, store: InMemoryRecordStore, rng: np.random.Generator):
        self._store = store
        self._rng = rng
        self._count = 0

    async def write(self) -> None:
        known = await self._store.fetch(SYSTEM_SCOPE, [f"mem_{n}" for n in range(self._count)], "", 0, soon())
        chosen = self._rng.integers(2 * len(known) + 2)
        if chosen >= len(known):
            await self._commit(f"mem_{self._count}", 1, State.ACTIVE)
            self._count += 1
            return
        memory = known[chosen].memory
        if self._rng.random() < 0.3:
            erasure = Erasure(scope=scope_of(), memory_id=memory.memory_id, now_us=NOW_US, principal_id="alice")
            await self._store.erase(erasure, soon())
        else:
            state = State.ACTIVE if self._rng.random() < 0.7 else State.SOFT_DELETED
            await self._commit(memory.memory_id, memory.version + 1, state)

    async def _commit(self, memory_id: str, version: int, state: State) -> None:
        content = f"{memory_id} {version}"
        body = memory_pb2.Memory(id=memory_id, content=content).SerializeToString()
        memory = memory_of(memory_id, content=content, body=body, version=version, state=state)
        [result] = await self._store.commit([commit_of(memory, expected_version=version - 1)], soon())
        assert result.error is None


def entry_of(row: OutboxRow) -> IndexEntry:
    memory = row.memory
    assert memory is not None
    return IndexEntry(memory.memory_id, memory.version, memory.namespace, memory.pool, {}, embedding=row.embedding)


def soon() -> float:
    return asyncio.get_running_loop().time() + 60


def projectors(store: InMemoryRecordStore, index: ErraticIndex) -> list[Projector]:
    projection = Projection(
        name="vector_index",
        target=TARGET,
        index=index,
        entry_of=entry_of,
        embedder=HashEmbedder(),
        own=False,
        flush_interval_s=0.0,
    )
    options = ProjectorOptions(
        owner="",
        batch_size=4,
        lease_s=LEASE_S,
        doubt_s=0.0,
        poll_s=0.0,
        backoff_s=0.0,
        retry_s=LEASE_S,
        heartbeat_s=0.0,
    )
    return [Projector(store, projection, replace(options, owner=owner)) for owner in ("one", "two")]


async def settled(store: InMemoryRecordStore, clock: MovedClock) -> None:
    """Lets time pass, and replays what was given up, until no row is left."""
    for _ in range(1_000):
        await store.replay_dead_letters(TARGET, [], soon())
        [progress] = await store.progress(soon())
        if not progress.due_count:
            return
        clock.forward(LEASE_S)
        for _ in range(20):
            await asyncio.sleep(0)
    raise AssertionError(f"rows are left over: {await store.progress(soon())}")


@pytest.mark.parametrize("seed", range(12))
async def test_two_projectors_end_level_whatever_fails_on_the_way(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dataplane.pipelines.projector.FILL_LOOK_S", 0.0)
    rng, clock = np.random.default_rng(seed), MovedClock()
    store, index = InMemoryRecordStore(fields_of, clock), ErraticIndex(rng)
    writers = Writers(store, rng)
    for _ in range(10):
        await writers.write()
    following = projectors(store, index)
    for projector in following:
        await projector.start()
    for _ in range(STEPS):
        await writers.write()
        if rng.random() < 0.1:
            clock.forward(LEASE_S + 1)
        for _ in range(rng.integers(12)):
            await asyncio.sleep(0)
    index.erratic = False
    await settled(store, clock)
    for projector in following:
        assert projector.is_level
        await projector.stop()
    wanted = {row.memory_id: row.memory.version for row in await store.scan("", 10_000, soon(), "") if row.memory}
    held = {memory_id: found.version for memory_id, found in (await index.versions(soon())).items()}
    assert {memory_id: held.get(memory_id) for memory_id in wanted} == wanted
