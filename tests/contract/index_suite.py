"""What both indexes promise, and random filters over two tenants against the meaning of a filter."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dataplane.adapters.postgres.index_entries import IndexOfEntries
from dataplane.adapters.qdrant.vector import QdrantVectorIndex
from dataplane.errors import BackendUnavailable, NotYet
from dataplane.logic.filters import matches
from dataplane.logic.fingerprint import fingerprint
from dataplane.model import (
    EVERYTHING,
    SYSTEM_SCOPE,
    AllOf,
    AnyOf,
    Candidate,
    Condition,
    FieldValue,
    Filter,
    Held,
    IndexEntry,
    IndexKey,
    Not,
    Operator,
    Pool,
    Scope,
)
from dataplane.ports import Index

DIMENSION = 8
ROW = bytes(range(256)) * 3
A = Scope(("dept.a",))
B = Scope(("dept.b",))

FIELDS: dict[str, tuple[FieldValue, ...]] = {
    "kind": ("FACT", "EPISODE"),
    "tags": (("x",), ("x", "y"), ("INV-2024/0031", "中文"), ()),
    "sequence": (0, 1, 7, None),
    "event_time": (1_700_000_000_000_000, 1_700_000_000_000_001, 2**53, 2**53 + 1, None),
    "confidence": (0.0, 0.25, 1.0, None),
    "session_id": ("s", "", None),
    'metadata.a.b"c\\': ("x", 1, 1.0, True, None),
    "metadata.键": (0, False, "0", -1.5, 2**60 + 1, 1e300, None),
}
VALUES = (
    "FACT",
    "x",
    "y",
    "中文",
    "s",
    "0",
    0,
    1,
    7,
    0.25,
    -1.5,
    True,
    False,
    2**53,
    2**53 + 1,
    2**60,
    1e300,
    "absent",
)
NUMBERS = [value for value in VALUES if isinstance(value, int | float) and not isinstance(value, bool)]
COMPARISONS = (Operator.LESS_THAN, Operator.LESS_OR_EQUAL, Operator.GREATER_THAN, Operator.GREATER_OR_EQUAL)


class Searching(Protocol):
    """Finds every entry of the scope that passes, whatever the query part of the index is."""

    async def __call__(self, scope: Scope, filter: Filter = EVERYTHING, top_k: int = 1000) -> list[Candidate]: ...


def deadline() -> float:
    return asyncio.get_running_loop().time() + 60


def entry(memory_id: str, namespace: str = "dept.a", **changes: object) -> IndexEntry:
    """An entry that every query of the suite finds."""
    values: dict[str, object] = {
        "version": 1,
        "pool": Pool.PRIVATE,
        "fields": {},
        "embedding": np.eye(DIMENSION, dtype=np.float32)[0],
        "tokens": ("common",),
        **changes,
    }
    return IndexEntry(memory_id, namespace=namespace, **values)  # type: ignore[arg-type]  # fields by name


def population() -> list[IndexEntry]:
    """120 entries in two namespaces, some shared, with every value of FIELDS."""
    rng = np.random.default_rng(7)
    entries = []
    for number in range(120):
        fields = {field: values[rng.integers(len(values))] for field, values in FIELDS.items()}
        pool = Pool.SHARED if rng.integers(3) == 0 else Pool.PRIVATE
        namespace = "dept.a" if number % 2 else "dept.b"
        entries.append(entry(f"mem_{number}", namespace, fields=fields, pool=pool, version=number + 1))
    return entries


def conditions() -> st.SearchStrategy[Filter]:
    fields = st.sampled_from(sorted(FIELDS))
    values = st.sampled_from(VALUES)
    return st.one_of(
        st.builds(
            lambda field, operator, value: Condition(field, operator, (value,)),
            fields,
            st.sampled_from([Operator.EQUALS, Operator.NOT_EQUALS]),
            values,
        ),
        st.builds(
            lambda field, several: Condition(field, Operator.IN, tuple(several)),
            fields,
            st.lists(values, min_size=1, max_size=4),
        ),
        st.builds(lambda field: Condition(field, Operator.EXISTS), fields),
        st.builds(
            lambda field, operator, value: Condition(field, operator, (value,)),
            fields,
            st.sampled_from(COMPARISONS),
            st.sampled_from(NUMBERS),
        ),
    )


def filters() -> st.SearchStrategy[Filter]:
    return st.recursive(
        conditions(),
        lambda inner: st.one_of(
            st.builds(Not, inner),
            st.builds(lambda parts: AllOf(tuple(parts)), st.lists(inner, max_size=3)),
            st.builds(lambda parts: AnyOf(tuple(parts)), st.lists(inner, max_size=3)),
        ),
        max_leaves=8,
    )


def scopes() -> st.SearchStrategy[Scope]:
    return st.sampled_from(
        [A, B, Scope(("dept.a",), ("dept.b",)), Scope(("dept.a", "dept.b")), Scope(()), SYSTEM_SCOPE]
    )


def ids(candidates: Sequence[Candidate]) -> list[str]:
    return [candidate.memory_id for candidate in candidates]


def keys(memory_ids: Sequence[str], namespace: str = "dept.a") -> list[IndexKey]:
    return [IndexKey(memory_id, namespace) for memory_id in memory_ids]


async def upsert(index: Index, entries: Sequence[IndexEntry]) -> None:
    """Upserts so that searches see it: a server's index may show it only when it was flushed."""
    await index.upsert(entries, deadline())
    await index.flush(deadline())


async def purge(index: Index) -> None:
    """Purges once; an index that must be asked again later is not."""
    with suppress(NotYet):
        await index.purge(deadline())


async def delete(index: Index, memory_ids: Sequence[str], namespace: str = "dept.a") -> None:
    """Deletes so that searches see it."""
    await index.delete(keys(memory_ids, namespace), deadline())
    await index.flush(deadline())


async def versions(index: Index) -> dict[str, int]:
    """The version of everything in the index."""
    return {memory_id: held.version for memory_id, held in (await index.versions(deadline())).items()}


async def rows(index: Index, scope: Scope, *memory_ids: str) -> dict[str, bytes]:
    """What the index gives; an index in the record store's own database keeps no rows and is passed over."""
    if isinstance(index, IndexOfEntries):
        assert await index.rows(scope, memory_ids, deadline()) == {}
        pytest.skip("keeps no rows, as the port says")
    return await index.rows(scope, memory_ids, deadline())


class IndexContract:
    """Subclasses give the fixtures `index` and `find`."""

    async def test_finds_what_was_upserted(self, index: Index, find: Searching) -> None:
        await upsert(index, [entry("mem_1", version=3)])
        assert [(hit.memory_id, hit.version) for hit in await find(A)] == [("mem_1", 3)]

    async def test_the_last_entry_of_an_id_wins(self, index: Index, find: Searching) -> None:
        await upsert(index, [entry("mem_1", version=1), entry("mem_1", "dept.b", version=2)])
        assert await find(A) == []
        assert [hit.version for hit in await find(B)] == [2]
        assert await versions(index) == {"mem_1": 2}

    async def test_upserting_again_replaces_the_fields(self, index: Index, find: Searching) -> None:
        await upsert(index, [entry("mem_1", fields={"tags": ("x",)})])
        await upsert(index, [entry("mem_1", fields={"sequence": 1})])
        assert await find(A, Condition("tags", Operator.EXISTS)) == []
        assert ids(await find(A, Condition("sequence", Operator.EQUALS, (1,)))) == ["mem_1"]

    async def test_deletes_and_passes_over_unknown_ids(self, index: Index, find: Searching) -> None:
        await upsert(index, [entry("mem_1"), entry("mem_2")])
        await delete(index, ["mem_1", "mem_9"])
        assert ids(await find(A)) == ["mem_2"]
        assert await versions(index) == {"mem_2": 1}

    async def test_tells_what_it_holds_of_some_memories_and_of_all(self, index: Index) -> None:
        entries = [entry("mem_1", version=3), entry("mem_2", "dept.b"), entry("mem_3")]
        await upsert(index, entries)
        held = {each.memory_id: Held(each.version, each.namespace, fingerprint(each)) for each in entries}
        assert await index.versions(deadline()) == held
        asked = [*keys(["mem_1", "mem_9"]), *keys(["mem_2"], "dept.b")]
        assert await index.held(asked, deadline()) == {name: held[name] for name in ("mem_1", "mem_2")}
        assert await index.held([], deadline()) == {}
        assert await index.count(deadline()) == 3

    async def test_tells_what_it_is(self, index: Index) -> None:
        examination = await index.examine(deadline())
        assert examination.server
        assert examination.problems == ()

    async def test_lists_every_version(self, index: Index) -> None:
        entries = [entry(f"mem_{number}", version=number + 1) for number in range(1100)]
        await upsert(index, entries)
        assert await versions(index) == {each.memory_id: each.version for each in entries}

    async def test_returns_as_many_as_asked_for(self, index: Index, find: Searching) -> None:
        await upsert(index, [entry(f"mem_{number}") for number in range(1100)])
        assert len(await find(A, top_k=50)) == 50
        assert len(set(ids(await find(A, top_k=1000)))) == 1000

    async def test_a_scope_is_never_left(self, index: Index, find: Searching) -> None:
        await upsert(
            index,
            [
                entry("own", "dept.sales"),
                entry("sibling", "dept.salesforce"),
                entry("child", "dept.sales.east", pool=Pool.SHARED),
                entry("shared", "dept.shared", pool=Pool.SHARED),
                entry("hidden", "dept.shared", pool=Pool.PRIVATE),
            ],
        )
        assert ids(await find(Scope(("dept.sales",)))) == ["own"]
        assert set(ids(await find(Scope(("dept.sales",), ("dept.shared",))))) == {"own", "shared"}
        assert ids(await find(Scope((), ("dept.shared",)))) == ["shared"]
        assert await find(Scope(())) == []
        assert len(await find(SYSTEM_SCOPE)) == 5

    async def test_gives_the_rows_of_the_memories_asked_for_in_the_scope(self, index: Index) -> None:
        everyone = Scope(("dept.a",), ("dept.b",))
        await upsert(
            index,
            [
                entry("own", row=ROW),
                entry("theirs", "dept.b", row=ROW),
                entry("shared", "dept.b", pool=Pool.SHARED, row=b"s"),
                entry("bare"),
                entry("other", row=ROW),
            ],
        )
        asked = ("own", "theirs", "shared", "bare", "unknown", "own")
        assert await rows(index, everyone, *asked) == {"own": ROW, "shared": b"s"}
        assert await rows(index, A, *asked) == {"own": ROW}
        assert await rows(index, B, *asked) == {"theirs": ROW, "shared": b"s"}
        assert await rows(index, Scope(()), *asked) == {}
        assert await rows(index, Scope((), ("dept.b",)), *asked) == {"shared": b"s"}
        assert await rows(index, SYSTEM_SCOPE, *asked) == {"own": ROW, "theirs": ROW, "shared": b"s"}
        assert await rows(index, everyone) == {}

    async def test_gives_many_rows_at_once(self, index: Index) -> None:
        many = {f"mem_{number}": str(number).encode() * 40 for number in range(1200)}
        await upsert(index, [entry(memory_id, row=row) for memory_id, row in many.items()])
        assert await rows(index, A, *many) == many

    async def test_a_row_is_replaced_with_its_entry_and_goes_with_it(self, index: Index) -> None:
        await upsert(index, [entry("mem_1", row=b"one"), entry("mem_2", row=b"two"), entry("mem_3", row=b"three")])
        await upsert(index, [entry("mem_1", version=2, row=b"new"), entry("mem_2", version=2)])
        await delete(index, ["mem_3"])
        assert await rows(index, A, "mem_1", "mem_2", "mem_3") == {"mem_1": b"new"}
        await purge(index)
        assert await rows(index, A, "mem_1", "mem_2", "mem_3") == {"mem_1": b"new"}
        await index.clear(deadline())
        assert await rows(index, A, "mem_1") == {}

    async def test_a_row_changes_nothing_that_is_compared(self, index: Index) -> None:
        await upsert(index, [entry("mem_1", row=ROW), entry("mem_2")])
        held = await index.versions(deadline())
        await upsert(index, [entry("mem_1"), entry("mem_2", row=ROW)])
        assert await index.versions(deadline()) == held

    async def test_keeps_beacons_until_it_is_cleared(self, index: Index) -> None:
        assert await index.beacons(deadline()) == {}
        for name, value in (("plane/1", 7), ("节点", 2**62), ("plane/1", 8)):
            await index.save_beacon(name, value, deadline())
        assert await index.beacons(deadline()) == {"plane/1": 8, "节点": 2**62}
        await purge(index)
        assert await index.beacons(deadline()) == {"plane/1": 8, "节点": 2**62}
        await index.save_beacon("plane/1", 0, deadline())
        await index.save_beacon("never there", 0, deadline())
        assert await index.beacons(deadline()) == {"节点": 2**62}
        await index.save_beacon("plane/1", 3, deadline())
        assert await index.beacons(deadline()) == {"plane/1": 3, "节点": 2**62}
        await index.clear(deadline())
        assert await index.beacons(deadline()) == {}

    async def test_a_beacon_that_comes_late_replaces_no_higher_one(self, index: Index) -> None:
        if isinstance(index, QdrantVectorIndex):
            pytest.skip("Qdrant compares no points as it writes them")
        for value in (7, 9, 8, 9):
            await index.save_beacon("plane-1", value, deadline())
        assert await index.beacons(deadline()) == {"plane-1": 9}

    async def test_planes_that_save_at_once_lose_no_beacon(self, index: Index) -> None:
        wanted = {f"plane-{number}": number for number in range(1, 9)}
        await asyncio.gather(*(index.save_beacon(name, value, deadline()) for name, value in wanted.items()))
        assert await index.beacons(deadline()) == wanted

    async def test_a_beacon_is_no_memory(self, index: Index, find: Searching) -> None:
        await upsert(index, [entry("mem_1", row=ROW)])
        before = await find(SYSTEM_SCOPE)
        await index.save_beacon("plane-1", 1, deadline())
        await index.flush(deadline())
        assert await index.count(deadline()) == 1
        assert await versions(index) == {"mem_1": 1}
        assert set(await index.held(keys(["plane-1", "mem_1"]), deadline())) == {"mem_1"}
        assert await find(SYSTEM_SCOPE) == before
        assert ids(await find(SYSTEM_SCOPE, Not(Condition("tags", Operator.EXISTS)))) == ["mem_1"]
        await index.delete(keys(["plane-1"]), deadline())
        assert await index.beacons(deadline()) == {"plane-1": 1}
        assert await index.rows(SYSTEM_SCOPE, ["plane-1"], deadline()) == {}

    async def test_clears_everything_and_goes_on(self, index: Index, find: Searching) -> None:
        await upsert(index, [entry("mem_1")])
        await index.clear(deadline())
        assert await index.count(deadline()) == 0
        assert await find(SYSTEM_SCOPE) == []
        assert await versions(index) == {}
        await upsert(index, [entry("mem_2")])
        assert ids(await find(A)) == ["mem_2"]

    async def test_a_purge_changes_nothing_that_is_found(self, filled: Index, find: Searching) -> None:
        await delete(filled, ["mem_1", "mem_2"])
        await upsert(filled, [entry("mem_3", version=90), entry("bare", tokens=())])
        before, filter = await versions(filled), Condition("tags", Operator.EQUALS, ("x",))
        found = [set(await find(scope, each)) for scope in (A, B) for each in (EVERYTHING, filter)]
        for _ in range(2):
            await purge(filled)
            assert await versions(filled) == before
            assert [set(await find(scope, each)) for scope in (A, B) for each in (EVERYTHING, filter)] == found
        await upsert(filled, [entry("mem_1")])
        assert "mem_1" in ids(await find(A))

    async def test_searches_go_on_during_a_purge(self, filled: Index, find: Searching) -> None:
        found = set(ids(await find(A)))
        purging = asyncio.create_task(purge(filled))
        while not purging.done():
            assert set(ids(await find(A))) == found
            await asyncio.sleep(0)
        await purging

    async def test_past_the_deadline_is_unavailable(self, index: Index) -> None:
        past = asyncio.get_running_loop().time() - 1
        for call in (
            index.upsert([entry("mem_1")], past),
            index.delete(keys(["mem_1"]), past),
            index.versions(past),
            index.held(keys(["mem_1"]), past),
            index.count(past),
            index.rows(A, ["mem_1"], past),
            index.beacons(past),
            index.save_beacon("plane-1", 1, past),
            index.examine(past),
            index.flush(past),
            index.clear(past),
            index.purge(past),
        ):
            with pytest.raises(BackendUnavailable):
                await call

    async def test_nothing_to_do_is_fine(self, index: Index) -> None:
        await upsert(index, [])
        await delete(index, [])
        await index.flush(deadline())
        await index.close()
        await index.close()

    async def test_ids_may_hold_any_character(self, index: Index) -> None:
        odd = ["mem_1", "中文", 'a"b\\c', "x" * 500, "00000000-0000-0000-0000-000000000000", "7"]
        await upsert(index, [entry(memory_id) for memory_id in odd])
        assert set(await versions(index)) == set(odd)
        await delete(index, odd[:3])
        assert set(await versions(index)) == set(odd[3:])

    async def test_a_filter_beyond_exact_doubles_still_fills_top_k(self, index: Index, find: Searching) -> None:
        entries = [entry(f"mem_{number}", fields={"metadata.n": 2**53 + number}) for number in range(60)]
        await upsert(index, entries)
        found = await find(A, Condition("metadata.n", Operator.GREATER_THAN, (2**53 + 49,)), top_k=8)
        assert len(found) == 8
        assert set(ids(found)) <= {f"mem_{number}" for number in range(50, 60)}

    async def test_parallel_writers_leave_the_last_call(self, index: Index) -> None:
        writes = [
            index.upsert([entry(f"mem_{number}", version=version) for number in range(100)], deadline())
            for version in (1, 2, 3)
        ]
        await asyncio.gather(*writes)
        await index.flush(deadline())
        assert set((await versions(index)).values()) == {3}

    @settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(filter=filters(), scope=scopes())
    async def test_filters_mean_what_matches_says(
        self, filled: Index, find: Searching, filter: Filter, scope: Scope
    ) -> None:
        expected = {
            each.memory_id
            for each in population()
            if scope.covers(each.namespace, each.pool) and matches(filter, each.fields)
        }
        assert set(ids(await find(scope, filter))) == expected

    @pytest.fixture
    async def filled(self, index: Index) -> Index:
        await upsert(index, population())
        return index
