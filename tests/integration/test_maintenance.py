"""Checks, rebuilds and dead letters over gRPC, on the embedded stores and in memory."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dataplane.adapters.inmemory.write_queue import InMemoryWriteQueue
from dataplane.changes import OutboxRow, QueuedWrite
from dataplane.errors import EntriesRefused
from dataplane.model import IndexEntry, IndexKey, Pool
from memplane.client import RpcError, write_request
from memplane.client.maintenance import progress_of, result_of
from memplane.process import SystemClock
from tests.contract.pgvector import with_pgvector
from tests.deadline import eventually_async
from tests.integration.upkeep_plane import AGENT_KEY, NEW, OLD, UpkeepPlane, done, in_memory, on_postgres, upkeep_plane

COUNT = 40
VECTOR = f"vector_index:{OLD.model}"


@pytest.fixture(params=["embedded", "in memory", "postgres"])
async def plane(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[UpkeepPlane]:
    """A plane with COUNT memories, projected."""
    async with AsyncExitStack() as stack:
        shared = None
        if request.param == "postgres":
            options = with_pgvector(request.getfixturevalue("postgres_options"))
            shared = await on_postgres(options, [OLD, NEW], stack)
        folder = tmp_path if request.param == "embedded" else None
        plane = await stack.enter_async_context(upkeep_plane(folder, shared=shared))
        await fill(plane, COUNT)
        yield plane


async def fill(plane: UpkeepPlane, count: int) -> list[str]:
    """Writes distinct memories and waits until the indexes have them; their ids."""
    async with plane.memory() as client:
        requests = [
            write_request(
                "dept.sales",
                f"Order {number} of customer {number % 7} is worth {number * 31} dollars",
                session_id="s",
                subject_id=f"customer-{number}",
            )
            for number in range(count)
        ]
        ids = [result.response.memory.id async for page in client.batch_write(requests) for result in page.results]
    await settled(plane)
    return ids


async def settled(plane: UpkeepPlane) -> None:
    """Waits until nothing waits for an index."""
    await eventually_async(
        lambda: plane.wired.records.progress(soon()), lambda found: not any(item.due_count for item in found)
    )


def entry_of(row: OutboxRow, memory_id: str) -> IndexEntry:
    """An entry at the version of a row, with a vector that no memory has."""
    assert row.memory is not None
    vector = np.eye(OLD.dimension, dtype=np.float32)[0]
    return IndexEntry(memory_id, row.memory.version, row.namespace, Pool.PRIVATE, {}, embedding=vector)


def soon() -> float:
    return asyncio.get_running_loop().time() + 10


async def test_level_indexes_are_consistent(plane: UpkeepPlane) -> None:
    async with plane.maintenance() as client:
        for full in (False, True):
            checks = (await client.check_indexes(full=full)).checks
            assert [(each.active, each.consistent, each.record_count, each.index_count) for each in checks] == [
                (True, True, COUNT, COUNT),
                (False, True, COUNT, COUNT),
                (True, True, COUNT, COUNT),
            ]


async def test_a_spoilt_index_is_told_of_and_repaired(plane: UpkeepPlane) -> None:
    space = plane.stores.spaces.current
    rows = await plane.wired.records.scan("", 3, soon(), OLD.model)
    await space.vectors.delete([IndexKey(rows[0].memory_id, rows[0].namespace)], soon())
    spoilt = [entry_of(rows[1], rows[1].memory_id), entry_of(rows[2], "mem_gone")]
    await space.vectors.upsert(spoilt, soon())
    async with plane.maintenance() as client:
        check = (await client.check_indexes("VECTOR", full=True)).checks[0]
        assert check.name.startswith(VECTOR)
        assert (check.missing_count, check.different_count, check.orphan_count) == (1, 1, 1)
        assert not check.consistent
        operation = await done(client, await client.reindex("VECTOR", repair_only=True))
        assert progress_of(operation).enqueued_count == 2
        assert result_of(operation).index_count == COUNT
        assert all(each.consistent for each in (await client.check_indexes(full=True)).checks)


async def test_the_text_index_is_rebuilt_while_searches_go_on(plane: UpkeepPlane) -> None:
    await plane.stores.texts.clear(soon())
    async with plane.maintenance() as client, plane.memory() as memory:
        operation = await done(client, await client.reindex("TEXT"))
        assert (result_of(operation).index_count, result_of(operation).activated) == (COUNT, False)
        assert (await memory.search("dept.sales", "What is order 17 worth?")).hits


async def test_what_an_index_refuses_is_a_dead_letter_until_it_is_replayed(
    plane: UpkeepPlane, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(entries: list[object], deadline_s: float) -> None:
        raise EntriesRefused("text_index", {entry.memory_id: "too odd" for entry in entries})  # type: ignore[attr-defined]

    with monkeypatch.context() as broken:
        broken.setattr(plane.wired.stores.texts, "upsert", refuse)
        async with plane.memory() as memory:
            written = await memory.write("dept.sales", "The blue whale of Bergen sings at dawn", session_id="s")
        await settled(plane)
    async with plane.maintenance() as client:
        letters = [letter async for letter in client.dead_letters()]
        assert [(each.memory_id, each.namespace, each.reason) for each in letters] == [
            (written.memory.id, "dept.sales", "too odd")
        ]
        assert not (await client.check_indexes("TEXT")).checks[0].consistent
        assert await client.replay_dead_letters(letters[0].index_name) == 1
        await settled(plane)
        assert (await client.check_indexes("TEXT")).checks[0].consistent


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda client: client.check_indexes(sample_size=-1), "sample_size"),
        (lambda client: client.check_indexes(sample_size=100_001), "100000"),
        (lambda client: client.reindex(""), "index: is required: VECTOR or TEXT"),
        (lambda client: client.reindex("VECTOR", "bge-m3"), f"{NEW.model}, {OLD.model}"),
        (lambda client: client.reindex("TEXT", NEW.model), "embedding_model"),
        (lambda client: client.reindex("VECTOR", keep_active=True), "keep_active"),
        (lambda client: client.reindex("VECTOR", request_id="x" * 129), "request_id"),
        (lambda client: client.replay_dead_letters(""), "index_name"),
        (lambda client: client.replay_dead_letters("typo"), VECTOR),
        (lambda client: client.dead_letters(page_size=1_001).__anext__(), "page_size"),
        (lambda client: client.set_aside_writes(page_size=-1).__anext__(), "page_size"),
        (lambda client: client.replay_set_aside(["1"] * 10_001), "10000"),
        (lambda client: client.operation("operations/reindex-nothing"), "no operation"),
    ],
)
async def test_bad_input_is_named(call, words: str) -> None:
    async with upkeep_plane(None) as plane, plane.maintenance() as client:
        with pytest.raises(RpcError) as caught:
            await call(client)
        assert words in caught.value.sentence()


async def test_without_a_queue_set_aside_writes_are_not_offered() -> None:
    async with upkeep_plane(None) as plane, plane.maintenance() as client:
        for call in (client.set_aside_writes().__anext__(), client.replay_set_aside()):
            with pytest.raises(RpcError, match="no durable queue") as caught:
                await call
            assert caught.value.reason == "NOT_OFFERED"


async def test_set_aside_writes_are_listed_in_pages_and_replayed_over_grpc() -> None:
    queue = InMemoryWriteQueue(SystemClock())
    stores = replace(in_memory((OLD, NEW)), queue=queue)
    for number in range(3):
        write = QueuedWrite(f"operations/{number}", "agent", "dept.sales", b"\xff", 1_000_000, "k")
        await queue.put(write, soon())
    await queue.set_aside(await queue.take("one", 10, 0, soon()), soon())
    async with upkeep_plane(None, shared=stores) as plane, plane.maintenance() as client:
        found = [write async for write in client.set_aside_writes(page_size=2)]
        assert [(each.operation, each.namespace, each.principal_id) for each in found] == [
            (f"operations/{number}", "dept.sales", "agent") for number in range(3)
        ]
        assert found[0].time.ToSeconds() == 1
        assert await client.replay_set_aside([found[1].id]) == 1
        assert await client.replay_set_aside() == 2


async def test_who_lacks_maintenance_on_every_namespace_is_refused() -> None:
    async with upkeep_plane(None) as plane, plane.maintenance(AGENT_KEY) as client:
        for call in (
            client.check_indexes(),
            client.reindex("TEXT"),
            client.dead_letters().__anext__(),
            client.replay_dead_letters(VECTOR),
            client.set_aside_writes().__anext__(),
            client.replay_set_aside(),
        ):
            with pytest.raises(RpcError, match="maintenance") as caught:
                await call
            assert caught.value.reason == "PERMISSION_DENIED"
