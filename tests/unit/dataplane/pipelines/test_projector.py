"""One projector over in-memory stores: what it applies, settles, postpones and gives back."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import pytest

from dataplane.adapters.inmemory.embedder import DIMENSION, HashEmbedder
from dataplane.adapters.inmemory.record_store import InMemoryRecordStore
from dataplane.adapters.inmemory.vector_index import InMemoryVectorIndex
from dataplane.changes import Erasure, Lease, OutboxRow
from dataplane.errors import BackendUnavailable, EntriesRefused
from dataplane.model import IndexEntry, IndexKey, State, Vector
from dataplane.pipelines.project import Projectors
from dataplane.pipelines.projection import Projection
from dataplane.pipelines.projector import Projector, ProjectorOptions
from memplane.v1 import memory_pb2
from tests.contract.builders import NOW_US, commit_of, fields_of, memory_of, scope_of
from tests.deadline import eventually, eventually_async

TARGET = "vector_index:hash-384"
OPTIONS = ProjectorOptions(owner="here", poll_s=0.02, backoff_s=0.01, max_backoff_s=0.02, retry_s=0.01)


def entry_of(row: OutboxRow) -> IndexEntry:
    memory = row.memory
    assert memory is not None
    return IndexEntry(memory.memory_id, memory.version, memory.namespace, memory.pool, {}, embedding=row.embedding)


OWN = Projection(
    name="vector_index",
    target=TARGET,
    index=InMemoryVectorIndex(DIMENSION),
    entry_of=entry_of,
    embedder=HashEmbedder(),
    flush_interval_s=0.01,
)


class ScriptedIndex(InMemoryVectorIndex):
    """Fails as it is told to: all calls while `down`, and upserts that hold a memory of `refused` or `poison`."""

    def __init__(self) -> None:
        super().__init__(DIMENSION)
        self.down = False
        self.refused: set[str] = set()
        self.poison: set[str] = set()
        self.flushes = 0

    async def upsert(self, entries: Sequence[IndexEntry], deadline_s: float) -> None:
        self._check_up()
        if bad := self.poison & {entry.memory_id for entry in entries}:
            raise ValueError(f"{len(bad)} entries have no direction")
        await super().upsert([entry for entry in entries if entry.memory_id not in self.refused], deadline_s)
        if refused := self.refused & {entry.memory_id for entry in entries}:
            raise EntriesRefused("vector_index", dict.fromkeys(refused, "no such field"))

    async def delete(self, keys: Sequence[IndexKey], deadline_s: float) -> None:
        self._check_up()
        await super().delete(keys, deadline_s)

    async def flush(self, deadline_s: float) -> None:
        self._check_up()
        self.flushes += 1

    def _check_up(self) -> None:
        if self.down:
            raise BackendUnavailable("vector_index", "no route to host")


class SwitchedEmbedder(HashEmbedder):
    """Cannot embed while `down`."""

    down = False

    async def embed_passages(self, texts: Sequence[str], deadline_s: float) -> list[Vector]:
        if self.down:
            raise BackendUnavailable("embedder", "no route to host")
        return await super().embed_passages(texts, deadline_s)


def soon() -> float:
    return asyncio.get_running_loop().time() + 10


@pytest.fixture
def store() -> InMemoryRecordStore:
    return InMemoryRecordStore(fields_of)


@pytest.fixture
def index() -> ScriptedIndex:
    return ScriptedIndex()


def body_of(memory_id: str) -> bytes:
    return memory_pb2.Memory(id=memory_id, content=f"about {memory_id}").SerializeToString()


async def put(store: InMemoryRecordStore, *ids: str) -> int:
    commits = [commit_of(memory_of(memory_id, body=body_of(memory_id))) for memory_id in ids]
    return (await store.commit(commits, soon()))[-1].position


async def erase(store: InMemoryRecordStore, memory_id: str) -> int:
    erasure = Erasure(scope=scope_of(), memory_id=memory_id, now_us=NOW_US, principal_id="alice")
    return await store.erase(erasure, soon())


@asynccontextmanager
async def following(
    store: InMemoryRecordStore, projection: Projection, options: ProjectorOptions = OPTIONS
) -> AsyncIterator[Projector]:
    projector = Projector(store, projection, options)
    await projector.start()
    try:
        yield projector
    finally:
        await projector.stop()


def projection(index: ScriptedIndex, **changes: Any) -> Projection:
    return replace(OWN, index=index, **changes)


async def in_index(index: ScriptedIndex) -> list[str]:
    return sorted(await index.versions(soon()))


async def waiting(store: InMemoryRecordStore) -> tuple[int, int]:
    [progress] = await store.progress(soon())
    return progress.due_count, progress.dead_count


def reads(read: Callable[..., Any], *given: Any) -> Callable[[], Any]:
    return lambda: read(*given)


@pytest.mark.parametrize("own", [True, False])
async def test_what_was_there_before_and_what_comes_is_brought_into_the_index(
    store: InMemoryRecordStore, index: ScriptedIndex, own: bool
) -> None:
    await put(store, "mem_1", "mem_2")
    await index.upsert([], soon())
    async with following(store, projection(index, own=own)) as projector:
        assert await projector.wait_level(5)
        position = await put(store, "mem_3")
        projector.wake()
        assert await projector.wait_for({"mem_3": position}, 5)
        await eventually_async(reads(in_index, index), lambda ids: ids == ["mem_1", "mem_2", "mem_3"])
        position = await erase(store, "mem_1")
        assert await projector.wait_for({"mem_1": position}, 5)
        assert await in_index(index) == ["mem_2", "mem_3"]
        await eventually_async(reads(waiting, store), lambda seen: seen == (0, 0))


async def test_searches_may_rely_on_an_own_index_before_it_is_flushed(
    store: InMemoryRecordStore, index: ScriptedIndex
) -> None:
    async with following(store, projection(index, flush_interval_s=600.0)) as projector:
        await projector.wait_level(5)
        position = await put(store, "mem_1")
        assert await projector.wait_for({"mem_1": position}, 5)
        assert projector.position == position
        assert index.flushes == 0
    assert index.flushes == 1


async def test_rows_of_a_server_are_settled_once_they_are_flushed(
    store: InMemoryRecordStore, index: ScriptedIndex
) -> None:
    async with following(store, projection(index, own=False, flush_interval_s=600.0)) as projector:
        await projector.wait_level(5)
        position = await put(store, "mem_1")
        await eventually_async(reads(in_index, index), lambda ids: ids == ["mem_1"])
        assert not await projector.wait_for({"mem_1": position}, 500.0)  # at once: the flush is further off
        assert (projector.position, await waiting(store)) == (0, (1, 0))
    assert await waiting(store) == (0, 0)


async def test_a_writer_learns_of_a_delivery_by_another_process(
    store: InMemoryRecordStore, index: ScriptedIndex
) -> None:
    async with following(store, projection(index, own=False)) as projector:
        await projector.wait_level(5)
        projector.pause()
        position = await put(store, "mem_1")
        waiter = asyncio.create_task(projector.wait_for({"mem_1": position}, 5))
        rows = await eventually_async(lambda: store.lease_outbox(TARGET, Lease("other", 60), 9, "", soon()), bool)
        await store.settle_outbox(TARGET, "other", rows, soon())
        assert await waiter


@pytest.mark.parametrize("own", [True, False])
async def test_a_refused_entry_is_tried_again_then_given_up_and_holds_up_nothing(
    store: InMemoryRecordStore, index: ScriptedIndex, own: bool
) -> None:
    index.refused = {"mem_1"}
    async with following(store, projection(index, own=own)) as projector:
        await projector.wait_level(5)
        position = await put(store, "mem_1", "mem_2")
        assert await projector.wait_for({"mem_2": position}, 5)
        await eventually_async(reads(waiting, store), lambda seen: seen == (0, 1))
        [letter] = await store.dead_letters(TARGET, 0, 9, soon())
        assert (letter.memory_id, letter.attempts, letter.reason) == ("mem_1", 5, "no such field")
        found = await store.pending(scope_of(), {TARGET: projector.position}, "", 0, 9, soon())
        assert [row.memory.memory_id for row in found.candidates] == ["mem_1"]
        index.refused = set()
        assert await store.replay_dead_letters(TARGET, [], soon()) == 1
        await eventually_async(reads(in_index, index), lambda ids: ids == ["mem_1", "mem_2"])
        assert projector.last_error == ""


@pytest.mark.parametrize("own", [True, False])
async def test_one_poisonous_row_does_not_hold_up_the_others(
    store: InMemoryRecordStore, index: ScriptedIndex, own: bool
) -> None:
    index.poison = {"mem_2"}
    async with following(store, projection(index, own=own)) as projector:
        await projector.wait_level(5)
        position = await put(store, "mem_1", "mem_2", "mem_3")
        assert await projector.wait_for({"mem_3": position}, 5)
        assert await in_index(index) == ["mem_1", "mem_3"]
        await eventually_async(reads(waiting, store), lambda seen: seen == (0, 1))
        [letter] = await store.dead_letters(TARGET, 0, 9, soon())
        assert letter.reason == "a defect (ValueError); the log says more"


async def test_a_poisonous_memory_found_while_levelling_goes_to_the_outbox(
    store: InMemoryRecordStore, index: ScriptedIndex
) -> None:
    await put(store, "mem_1", "mem_2", "mem_3")
    index.poison = {"mem_2"}
    async with following(store, projection(index)) as projector:
        assert await projector.wait_level(5)
        assert await in_index(index) == ["mem_1", "mem_3"]
        await eventually_async(reads(waiting, store), lambda seen: seen == (0, 1))
        [letter] = await store.dead_letters(TARGET, 0, 9, soon())
        assert letter.memory_id == "mem_2"


@pytest.mark.parametrize("own", [True, False])
async def test_a_backend_that_is_down_costs_no_attempts_and_others_may_go_on(
    store: InMemoryRecordStore, index: ScriptedIndex, own: bool
) -> None:
    async with following(store, projection(index, own=own)) as projector:
        await projector.wait_level(5)
        index.down = True
        position = await put(store, "mem_1")
        projector.wake()
        await eventually(lambda: projector.last_error, lambda error: "no route to host" in error)
        assert not await projector.wait_for({"mem_1": position}, 0.05)
        assert await waiting(store) == (1, 0)
        taken = await eventually_async(lambda: store.lease_outbox(TARGET, Lease("other", 60.0), 9, "", soon()), bool)
        assert [row.attempts for row in taken] == [0]
        await store.release_outbox("other", soon())
        index.down = False
        assert await projector.wait_for({"mem_1": position}, 5)
        await eventually(lambda: projector.last_error, lambda error: not error)


async def test_what_has_no_embedding_waits_for_the_embedder_alone(
    store: InMemoryRecordStore, index: ScriptedIndex
) -> None:
    embedder = SwitchedEmbedder()
    async with following(store, projection(index, embedder=embedder)) as projector:
        await projector.wait_level(5)
        embedder.down = True
        position = await put(store, "mem_1")
        projector.wake()
        await eventually(lambda: projector.last_error, lambda error: error == "embedder: no route to host")
        embedder.down = False
        assert await projector.wait_for({"mem_1": position}, 5)
        [row] = await store.scan("", 9, soon(), embedder.model)
        assert row.embedding is not None


async def test_an_index_in_this_folder_is_compared_at_every_start(
    store: InMemoryRecordStore, index: ScriptedIndex
) -> None:
    await put(store, "mem_1", "mem_2")
    async with following(store, projection(index)) as projector:
        await projector.wait_level(5)
    await index.delete([IndexKey("mem_1", "acme.sales")], soon())
    await index.upsert([replace(entry_of(row), memory_id="mem_9") for row in await embedded(store)], soon())
    async with following(store, projection(index)) as projector:
        assert await projector.wait_level(5)
        assert await in_index(index) == ["mem_1", "mem_2"]


async def embedded(store: InMemoryRecordStore) -> list[OutboxRow]:
    return [row for row in await store.scan("", 1, soon(), HashEmbedder().model) if row.embedding is not None]


async def test_a_server_is_filled_through_the_outbox_once(store: InMemoryRecordStore, index: ScriptedIndex) -> None:
    await put(store, *(f"mem_{number}" for number in range(9)))
    await store.commit([commit_of(memory_of("mem_9", state=State.SOFT_DELETED))], soon())
    small = replace(OPTIONS, batch_size=2)
    async with following(store, projection(index, own=False), small) as projector:
        assert await projector.wait_level(5)
        await eventually_async(reads(waiting, store), lambda seen: seen == (0, 0))
        assert await in_index(index) == [f"mem_{number}" for number in range(9)]
    last = await store.last_position(soon())
    async with following(store, projection(index, own=False), replace(small, owner="there")) as projector:
        assert await projector.wait_level(5)
        assert await store.last_position(soon()) == last


async def test_filling_that_a_process_left_unfinished_is_finished_by_another(
    store: InMemoryRecordStore, index: ScriptedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dataplane.pipelines.projector.FILL_LOOK_S", 0.01)
    await put(store, "mem_1", "mem_2")
    await store.register_index(TARGET, soon())  # as a process that was killed right after this
    async with following(store, projection(index, own=False)) as projector:
        assert not projector.is_level
        assert await projector.wait_level(5)
        await eventually_async(reads(in_index, index), lambda ids: ids == ["mem_1", "mem_2"])


async def test_an_index_that_comes_again_after_it_was_retired_is_filled_again(
    store: InMemoryRecordStore, index: ScriptedIndex
) -> None:
    await put(store, "mem_1")
    async with following(store, projection(index, own=False)) as projector:
        assert await projector.wait_level(5)
        await eventually_async(reads(waiting, store), lambda seen: seen == (0, 0))
    await store.retire_index(TARGET, soon())
    await index.clear(soon())
    async with following(store, projection(index, own=False)) as projector:
        assert await projector.wait_level(5)
        await eventually_async(reads(in_index, index), lambda ids: ids == ["mem_1"])


async def test_stopping_gives_back_what_was_not_applied(store: InMemoryRecordStore, index: ScriptedIndex) -> None:
    async with following(store, projection(index, own=False)) as projector:
        await projector.wait_level(5)
        index.down = True
        await put(store, "mem_1")
        projector.wake()
        await eventually(lambda: projector.last_error, bool)
    assert len(await store.lease_outbox(TARGET, Lease("other", 60.0), 9, "", soon())) == 1


async def test_stopping_gives_back_what_the_index_could_not_flush(
    store: InMemoryRecordStore, index: ScriptedIndex, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_deadline_s: float) -> None:
        raise BackendUnavailable("text_index", "down")

    async with following(store, projection(index, own=False, flush_interval_s=3_600.0)) as projector:
        await projector.wait_level(5)
        await put(store, "mem_1")
        projector.wake()
        await eventually_async(reads(in_index, index), lambda ids: ids == ["mem_1"])
        monkeypatch.setattr(index, "flush", fail)
    assert len(await store.lease_outbox(TARGET, Lease("other", 60.0), 9, "", soon())) == 1


async def test_a_memory_may_still_be_held_by_an_index_of_any_process(
    store: InMemoryRecordStore, index: ScriptedIndex
) -> None:
    projector = Projector(store, projection(index), OPTIONS)
    projectors = Projectors(store, [projector], OPTIONS)
    await projectors.start()
    await store.register_index("text_index:t@elsewhere", soon())
    position = await put(store, "mem_1")
    assert await projectors.wait_for({"mem_1": position}, 5)
    assert projectors.applied == {TARGET: position}
    assert await projectors.holding("mem_1", position, erased=False, deadline_s=soon()) == ["text_index"]
    position = await erase(store, "mem_1")
    assert await projectors.wait_for({"mem_1": position}, 5)
    holding = await projectors.holding("mem_1", position, erased=True, deadline_s=soon())
    assert holding == ["text_index", "vector_index"]
    await projectors.stop()


async def test_an_index_that_does_not_count_is_not_waited_for_nor_relied_on(
    store: InMemoryRecordStore, index: ScriptedIndex
) -> None:
    coming = Projector(store, projection(index, counts=lambda: False), OPTIONS)
    projectors = Projectors(store, [coming], OPTIONS)
    index.down = True
    await projectors.start()
    assert await projectors.wait_for({"mem_1": await put(store, "mem_1")}, 5)
    assert (projectors.applied, projectors.unlevel) == ({}, [])
    index.down = False
    await eventually_async(reads(in_index, index), lambda ids: ids == ["mem_1"])
    await projectors.stop()
