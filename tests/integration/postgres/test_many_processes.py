"""Two stores on one database, as two data planes are."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from dataplane.adapters.postgres.options import PostgresOptions
from dataplane.adapters.postgres.store import PostgresRecordStore
from dataplane.errors import DuplicateContent
from dataplane.model import SYSTEM_SCOPE, Scope
from tests.contract.builders import INDEX, MODEL, commit_of, fields_of, memory_of, vector_of
from tests.postgres import open_store

Pair = tuple[PostgresRecordStore, PostgresRecordStore]


@pytest.fixture
async def deadline_s() -> float:
    return asyncio.get_running_loop().time() + 60


@pytest.fixture
async def stores(postgres_options: PostgresOptions) -> AsyncIterator[Pair]:
    pair = (await open_store(postgres_options, fields_of), await open_store(postgres_options, fields_of))
    yield pair
    for opened in pair:
        await opened.close()


async def test_positions_are_dense_and_an_outbox_read_in_order_misses_none(stores: Pair, deadline_s: float) -> None:
    await stores[0].register_index(INDEX, deadline_s)
    loop = asyncio.get_running_loop()

    async def write(store: PostgresRecordStore, name: str) -> list[int]:
        positions: list[int] = []
        for number in range(20):
            results = await store.commit([commit_of(memory_of(f"mem_{name}_{number}"))], deadline_s)
            positions += [result.position for result in results]
        return positions

    async def watch() -> None:
        """Once a position is the newest, nothing below it appears any more."""
        newest = 0
        while newest < 160:
            assert loop.time() < deadline_s
            newest = await stores[0].last_position(deadline_s)
            [progress] = await stores[1].progress(deadline_s)
            assert progress.due_count >= newest

    writers = [write(store, f"{which}_{writer}") for which, store in enumerate(stores) for writer in range(4)]
    watching = asyncio.create_task(watch())
    written = await asyncio.gather(*writers)
    await watching
    assert sorted(position for positions in written for position in positions) == list(range(1, 161))


async def test_of_the_same_content_written_through_both_one_is_kept(stores: Pair, deadline_s: float) -> None:
    async def write(number: int) -> Exception | None:
        batch = [commit_of(memory_of(f"mem_{number}_{k}", content=f"same {k}")) for k in range(5)]
        results = await stores[number % 2].commit(batch, deadline_s)
        assert len({type(result.error) for result in results}) <= 2
        return next((result.error for result in results if result.error), None)

    errors = await asyncio.gather(*(write(number) for number in range(20)))
    assert {type(error) for error in errors} <= {type(None), DuplicateContent}
    assert await stores[0].count(deadline_s) == 5


async def test_opposite_orders_of_rows_do_not_stand_in_each_others_way(stores: Pair, deadline_s: float) -> None:
    names = [f"mem_{number}" for number in range(10)]
    await stores[0].commit([commit_of(memory_of(name)) for name in names], deadline_s)

    async def reinforce(store: PostgresRecordStore, order: list[str]) -> None:
        for turn in range(10):
            raised = [
                commit_of(memory_of(name, strength=float(turn)), expected_version=1, embedding=vector_of(1))
                for name in order
            ]
            results = await store.commit(raised, deadline_s)
            assert [result.error for result in results] == [None] * 10

    await asyncio.gather(reinforce(stores[0], names), reinforce(stores[1], names[::-1]))
    found = await stores[0].fetch(SYSTEM_SCOPE, names, MODEL, 0, deadline_s)
    assert {candidate.memory.strength for candidate in found} == {9.0}


async def test_what_is_committed_while_an_index_is_registered_reaches_it(stores: Pair, deadline_s: float) -> None:
    async def write(store: PostgresRecordStore, which: int) -> None:
        for number in range(30):
            await store.commit([commit_of(memory_of(f"mem_{which}_{number:02}"))], deadline_s)

    async def follow() -> set[str]:
        await stores[1].register_index(INDEX, deadline_s)
        found: list[str] = []
        while page := await stores[1].enqueue_all(INDEX, found[-1] if found else "", 7, deadline_s):
            found += page
        return set(found)

    await asyncio.gather(write(stores[0], 0), write(stores[1], 1), follow())
    pending = await stores[0].pending(Scope(("acme.sales",)), {INDEX: 0}, MODEL, 0, 100, deadline_s)
    assert len(pending.candidates) == 60
