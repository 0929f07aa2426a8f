"""Lists by filter, against the reference `logic.filters.matches` over two tenants."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.adapters.inmemory.record_store import InMemoryRecordStore
from dataplane.adapters.postgres.options import PostgresOptions
from dataplane.adapters.sqlite.connection import SqliteOptions
from dataplane.adapters.sqlite.store import SqliteRecordStore
from dataplane.logic.filters import matches
from dataplane.model import (
    EVERYTHING,
    AllOf,
    AnyOf,
    Condition,
    FieldValue,
    Filter,
    Memory,
    Not,
    Operator,
    Scalar,
    Scope,
    State,
)
from dataplane.ports import ListQuery, RecordStore
from tests.contract.builders import commit_of, memory_of
from tests.postgres import empty, open_store

KEYS = (
    "tags",
    "sequence",
    "speaker",
    'metadata.a"b',
    "metadata.a.b",
    "metadata.$[0]",
    "metadata.%20",
    "metadata. ",
    "metadata.键",
    "metadata.",
)
TEXTS = ("a", "A", "a b", "", "1", "true", "[]", '["a"]', "null", "键", "é", '"')
NUMBERS = (0, 1, -1, 1.0, 0.1, 0.30000000000000004, 1e300, 5e-324, 2**53 + 1, float(2**53), 2**62)
scalars = st.sampled_from(TEXTS) | st.sampled_from(NUMBERS) | st.floats(allow_nan=False, allow_infinity=False)
scalars |= st.booleans() | st.integers(-(2**63), 2**63 - 1)
tags = st.lists(st.sampled_from(TEXTS), max_size=3).map(tuple)
field_values: st.SearchStrategy[FieldValue] = scalars | tags | st.none()
field_maps = st.dictionaries(st.sampled_from(KEYS), field_values, max_size=6)


def condition(operator: Operator) -> st.SearchStrategy[Filter]:
    least, most = {Operator.EXISTS: (0, 0), Operator.IN: (1, 4)}.get(operator, (1, 1))
    values: st.SearchStrategy[tuple[Scalar, ...]] = st.lists(scalars, min_size=least, max_size=most).map(tuple)
    return st.builds(Condition, st.sampled_from(KEYS), st.just(operator), values)


def grown(part: st.SearchStrategy[Filter]) -> st.SearchStrategy[Filter]:
    parts = st.lists(part, max_size=3).map(tuple)
    return st.builds(AllOf, parts) | st.builds(AnyOf, parts) | st.builds(Not, part)


filters: st.SearchStrategy[Filter] = st.recursive(st.sampled_from(Operator).flatmap(condition), grown, max_leaves=6)


def fields_in_body(memory: Memory) -> Mapping[str, FieldValue]:
    """The fields of a memory whose body is their JSON."""
    values: dict[str, FieldValue | list[str]] = json.loads(memory.body)
    return {key: tuple(value) if isinstance(value, list) else value for key, value in values.items()}


async def listed(store: RecordStore, asked: list[Filter]) -> list[list[str]]:
    deadline_s = asyncio.get_running_loop().time() + 60
    scope = Scope(("tenant_a",))
    pages = [await store.list_memories(scope, ListQuery((State.ACTIVE,), one, 100), deadline_s) for one in asked]
    return [[memory.memory_id for memory in page] for page in pages]


async def check(stores: Sequence[RecordStore], maps: list[dict[str, FieldValue]], asked: list[Filter]) -> None:
    memories = [memory_of(f"mem_{n}", namespace="tenant_a", body=json.dumps(m).encode()) for n, m in enumerate(maps)]
    foreign = [replace(memory, memory_id=f"b_{memory.memory_id}", namespace="tenant_b") for memory in memories]
    expected = [
        [memory.memory_id for memory in reversed(memories) if matches(one, fields_in_body(memory))] for one in asked
    ]
    for store in stores:
        commits = [commit_of(memory) for memory in (*memories, *foreign)]
        await store.commit(commits, asyncio.get_running_loop().time() + 60)
        try:
            assert await listed(store, asked) == expected
        finally:
            await store.close()


field_map_lists = st.lists(field_maps, min_size=1, max_size=8)
filter_lists = st.lists(filters, min_size=1, max_size=20)


@settings(max_examples=40)
@given(field_map_lists, filter_lists)
def test_every_filter_means_what_the_reference_says(maps: list[dict[str, FieldValue]], asked: list[Filter]) -> None:
    async def run() -> None:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "records.db"
            sqlite = await SqliteRecordStore.open(path, options=SqliteOptions(), fields_of=fields_in_body)
            await check([sqlite, InMemoryRecordStore(fields_in_body)], maps, asked)

    asyncio.run(run())


@settings(max_examples=40)
@given(maps=field_map_lists, asked=filter_lists)
def test_every_filter_means_so_in_postgres(
    migrated_postgres: PostgresOptions, maps: list[dict[str, FieldValue]], asked: list[Filter]
) -> None:
    async def run() -> None:
        await check([await open_store(migrated_postgres, fields_in_body)], maps, asked)

    empty(migrated_postgres)
    asyncio.run(run())


async def test_filters_see_the_newest_version(store: RecordStore, deadline_s: float) -> None:
    await store.commit([commit_of(memory_of(category="old"))], deadline_s)
    update = commit_of(memory_of(content="two", category="new", version=2), expected_version=1)
    await store.commit([update], deadline_s)
    found = {}
    for category in ("old", "new"):
        query = ListQuery((State.ACTIVE,), Condition("category", Operator.EQUALS, (category,)), 10)
        found[category] = len(await store.list_memories(Scope(("acme.sales",)), query, deadline_s))
    assert found == {"old": 0, "new": 1}


async def test_a_filter_and_a_page_token_go_together(store: RecordStore, deadline_s: float) -> None:
    await store.commit([commit_of(memory_of(f"mem_{n}", create_time_us=n)) for n in range(10)], deadline_s)
    odd = AnyOf(tuple(Condition("create_time", Operator.EQUALS, (n,)) for n in range(1, 10, 2)))
    scope = Scope(("acme.sales",))
    page = await store.list_memories(scope, ListQuery((State.ACTIVE,), odd, 2, (8, "mem_8")), deadline_s)
    assert [memory.memory_id for memory in page] == ["mem_7", "mem_5"]
    assert len(await store.list_memories(scope, ListQuery((State.ACTIVE,), EVERYTHING, 99), deadline_s)) == 10
