"""Dedicated collections, with two data planes on one server where it matters."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from qdrant_client import AsyncQdrantClient

from dataplane.adapters.qdrant.names import CollectionNames
from dataplane.adapters.qdrant.options import QdrantOptions
from dataplane.adapters.qdrant.vector import QdrantVectorIndex
from dataplane.errors import BackendUnavailable
from dataplane.model import EVERYTHING, SYSTEM_SCOPE, IndexKey, Pool, Scope
from tests.contract.index_suite import DIMENSION, deadline, entry
from tests.peers.qdrant.process import QdrantPeer
from tests.unit.dataplane.adapters.qdrant.conftest import Opening

QUESTION = np.eye(DIMENSION, dtype=np.float32)[0]
NEAR_MISSES = ("dept.sales", "dept.salesforce", "dept.sales.a", "dept.sales-a", "dept.sales_a", "dept")


async def found(index: QdrantVectorIndex, *namespaces: str, shared: Sequence[str] = ()) -> set[str]:
    hits = await index.search(Scope(namespaces, tuple(shared)), QUESTION, EVERYTHING, 100, 64, deadline())
    return {hit.memory_id for hit in hits}


async def everything(index: QdrantVectorIndex) -> list[tuple[str, int]]:
    hits = await index.search(SYSTEM_SCOPE, QUESTION, EVERYTHING, 100, 64, deadline())
    return sorted((hit.memory_id, hit.version) for hit in hits)


async def test_a_subtree_lies_apart_and_its_near_misses_do_not(
    open_index: Opening, options: QdrantOptions, qdrant_peer: QdrantPeer
) -> None:
    index = await open_index()
    entries = [
        entry(namespace, namespace, partition="dept.sales" if f"{namespace}.".startswith("dept.sales.") else "")
        for namespace in NEAR_MISSES
    ]
    await index.upsert(entries, deadline())
    client = AsyncQdrantClient(
        host="127.0.0.1", grpc_port=qdrant_peer.port, prefer_grpc=True, check_compatibility=False
    )
    names = CollectionNames(options.prefix, "model-1", DIMENSION)
    counts = [(await client.count(names.of(partition))).count for partition in ("", "dept.sales")]
    metadata = (await client.get_collection(names.of("dept.sales"))).config.metadata
    await client.close()
    assert counts == [4, 2]
    assert metadata == {"model": "model-1", "dimension": DIMENSION, "partition": "dept.sales"}
    for namespace in NEAR_MISSES:
        assert await found(index, namespace) == {namespace}
    assert await found(index, *NEAR_MISSES) == set(NEAR_MISSES)


async def test_each_of_several_partitions_is_searched_for_its_namespaces_alone(open_index: Opening) -> None:
    index = await open_index()
    partitions = {"a.b": "a.b", "a.b.c": "a.b.c", "a.b.c.d": "a.b.c", "a.bc": "a.bc", "x": ""}
    await index.upsert([entry(name, name, partition=where) for name, where in partitions.items()], deadline())
    for namespace in partitions:
        assert await found(index, namespace) == {namespace}
    assert await found(index, "a.b.c.d", "x") == {"a.b.c.d", "x"}


async def test_shared_memories_of_a_partition_are_found_from_outside(open_index: Opening) -> None:
    index = await open_index()
    await index.upsert(
        [
            entry("own", "x"),
            entry("shared", "a", pool=Pool.SHARED, partition="a"),
            entry("private", "a", partition="a"),
        ],
        deadline(),
    )
    assert await found(index, "x", shared=["a"]) == {"own", "shared"}


async def test_hits_of_several_collections_come_in_one_order(open_index: Opening) -> None:
    index = await open_index()
    angles = np.linspace(0, 1.5, 10)
    vectors = [(np.cos(angle) * np.eye(DIMENSION)[0] + np.sin(angle) * np.eye(DIMENSION)[1]) for angle in angles]
    entries = [
        entry(
            f"mem_{at}", "a.x" if at % 2 else "b", embedding=vector.astype(np.float32), partition="a" if at % 2 else ""
        )
        for at, vector in enumerate(vectors)
    ]
    await index.upsert(entries, deadline())
    hits = await index.search(Scope(("a.x", "b")), QUESTION, EVERYTHING, 6, 64, deadline())
    assert [hit.memory_id for hit in hits] == [f"mem_{at}" for at in range(6)]


async def test_a_change_of_policy_hides_nothing_and_the_next_write_moves(open_index: Opening) -> None:
    index = await open_index()
    await index.upsert([entry("old", "a"), entry("moved", "a")], deadline())
    await index.upsert([entry("moved", "a", version=2, partition="a"), entry("new", "a", partition="a")], deadline())
    assert await found(index, "a") == {"old", "moved", "new"}
    assert await everything(index) == [("moved", 2), ("new", 1), ("old", 1)]
    assert await index.count(deadline()) == 3
    await index.upsert([entry("moved", "a", version=3)], deadline())
    assert await found(index, "a") == {"old", "moved", "new"}
    assert await index.count(deadline()) == 3


async def test_a_late_write_by_the_old_policy_does_not_undo_a_newer_one(open_index: Opening) -> None:
    index = await open_index()
    await index.upsert([entry("mem_1", "a", version=2, partition="a")], deadline())
    await index.upsert([entry("mem_1", "a", version=1)], deadline())
    assert await everything(index) == [("mem_1", 2)]
    held = await index.held([IndexKey("mem_1", "a")], deadline())
    assert held["mem_1"].version == 2


async def test_deletes_reach_every_partition(open_index: Opening) -> None:
    index = await open_index()
    await index.upsert([entry("mem_1", "a"), entry("mem_2", "a", partition="a"), entry("mem_3", "b")], deadline())
    await index.delete([IndexKey("mem_1", "a"), IndexKey("mem_2", "a")], deadline())
    assert await everything(index) == [("mem_3", 1)]
    await index.clear(deadline())
    assert (await index.count(deadline()), await index.versions(deadline())) == (0, {})
    await index.upsert([entry("mem_2", "a", partition="a")], deadline())
    assert await found(index, "a") == {"mem_2"}


async def test_what_one_data_plane_settled_in_a_new_partition_others_find_at_once(open_index: Opening) -> None:
    writer, reader = await open_index(), await open_index()
    for number in range(3):
        assert await found(reader, f"n{number}") == set()  # its list of collections is fresh now
        await writer.upsert([entry(f"mem_{number}", f"n{number}", partition=f"n{number}")], deadline())
        assert await found(reader, f"n{number}") == {f"mem_{number}"}


async def test_a_partition_that_another_data_plane_cleared_counts_as_empty(open_index: Opening) -> None:
    one, other = await open_index(), await open_index()
    await one.upsert([entry("mem_1", "a", partition="a")], deadline())
    assert await found(other, "a") == {"mem_1"}
    await one.clear(deadline())
    assert await found(other, "a") == set()
    await other.upsert([entry("mem_1", "a", partition="a")], deadline())
    assert await found(one, "a") == {"mem_1"}


async def test_a_write_that_cannot_wait_for_a_new_partition_is_refused_and_hides_nothing(
    options: QdrantOptions,
) -> None:
    patient = await QdrantVectorIndex.open(replace(options, partition_refresh_s=60), "model-1", DIMENSION)
    await patient.upsert([entry("mem_1", "a")], deadline())
    soon = asyncio.get_running_loop().time() + 30
    with pytest.raises(BackendUnavailable, match="takes writes in"):
        await patient.upsert([entry("mem_1", "a", version=2, partition="a")], soon)
    assert await everything(patient) == [("mem_1", 1)]
    await patient.close()
