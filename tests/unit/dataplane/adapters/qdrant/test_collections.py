"""How collections are made, and what every request to them carries."""

from dataclasses import replace
from typing import Literal

import numpy as np
import pytest
from qdrant_client import AsyncQdrantClient, models

from dataplane.adapters.qdrant.collections import FIELDS
from dataplane.adapters.qdrant.filters import MEMORIES, scoped
from dataplane.adapters.qdrant.names import CollectionNames
from dataplane.adapters.qdrant.options import QdrantOptions
from dataplane.adapters.qdrant.vector import QdrantVectorIndex
from dataplane.errors import Misconfigured
from dataplane.model import EVERYTHING, SYSTEM_SCOPE, IndexKey, Scope
from tests.contract.index_suite import DIMENSION, A, deadline, entry
from tests.peers.qdrant.process import QdrantPeer
from tests.unit.dataplane.adapters.qdrant.conftest import Opening


async def collection_of(peer: QdrantPeer, name: str) -> models.CollectionInfo:
    client = AsyncQdrantClient(host="127.0.0.1", grpc_port=peer.port, prefer_grpc=True, check_compatibility=False)
    try:
        return await client.get_collection(name)
    finally:
        await client.close()


async def test_a_collection_is_made_as_configured(options: QdrantOptions, qdrant_peer: QdrantPeer) -> None:
    asked = replace(
        options, shards=3, replicas=2, write_consistency_factor=2, hnsw_m=24, hnsw_ef_construct=300, on_disk=True
    )
    index = await QdrantVectorIndex.open(asked, "model-1", DIMENSION)
    await index.close()
    info = await collection_of(qdrant_peer, CollectionNames(options.prefix, "model-1", DIMENSION).common)
    params, hnsw = info.config.params, info.config.hnsw_config
    assert (params.shard_number, params.replication_factor, params.write_consistency_factor) == (3, 2, 2)
    assert (hnsw.m, hnsw.ef_construct) == (24, 300)
    assert isinstance(params.vectors, models.VectorParams)
    assert (params.vectors.size, params.vectors.on_disk) == (DIMENSION, True)
    assert info.config.metadata == {"model": "model-1", "dimension": DIMENSION, "partition": ""}
    assert set(info.payload_schema) == {
        "namespace",
        "shared",
        "terms",
        "numbers.create_time",
        "numbers.event_time",
    }
    tenant = info.payload_schema["namespace"].params
    assert isinstance(tenant, models.KeywordIndexParams)
    assert tenant.is_tenant


async def test_an_examination_makes_the_payload_indexes_that_a_half_made_collection_lacks(
    options: QdrantOptions, qdrant_peer: QdrantPeer
) -> None:
    index = await QdrantVectorIndex.open(options, "model-1", DIMENSION)
    name = CollectionNames(options.prefix, "model-1", DIMENSION).common
    client = AsyncQdrantClient(
        host="127.0.0.1", grpc_port=qdrant_peer.port, prefer_grpc=True, check_compatibility=False
    )
    await client.delete_collection(name)
    await client.create_collection(
        name, vectors_config=models.VectorParams(size=DIMENSION, distance=models.Distance.COSINE)
    )
    await client.close()
    assert not (await collection_of(qdrant_peer, name)).payload_schema
    assert not [problem for problem in (await index.examine(deadline())).problems if "PAYLOAD" in problem.code]
    await index.close()
    assert set((await collection_of(qdrant_peer, name)).payload_schema) == set(FIELDS)


@pytest.mark.parametrize(
    ("quantisation", "sort"), [("scalar", models.ScalarQuantization), ("binary", models.BinaryQuantization)]
)
async def test_a_quantised_collection_is_searched_all_the_same(
    quantisation: Literal["scalar", "binary"], sort: type, options: QdrantOptions, qdrant_peer: QdrantPeer
) -> None:
    asked = replace(options, quantisation=quantisation)
    index = await QdrantVectorIndex.open(asked, "model-1", DIMENSION)
    await index.upsert([entry("mem_1")], deadline())
    hits = await index.search(A, np.eye(DIMENSION, dtype=np.float32)[0], EVERYTHING, 10, 64, deadline())
    await index.close()
    assert [hit.memory_id for hit in hits] == ["mem_1"]
    info = await collection_of(qdrant_peer, CollectionNames(options.prefix, "model-1", DIMENSION).common)
    assert isinstance(info.config.quantization_config, sort)


async def test_a_collection_named_like_the_alias_is_told(options: QdrantOptions, qdrant_peer: QdrantPeer) -> None:
    client = AsyncQdrantClient(
        host="127.0.0.1", grpc_port=qdrant_peer.port, prefer_grpc=True, check_compatibility=False
    )
    await client.create_collection(
        options.prefix, vectors_config=models.VectorParams(size=8, distance=models.Distance.COSINE)
    )
    await client.close()
    with pytest.raises(Misconfigured, match="set another"):
        await QdrantVectorIndex.open(options, "model-1", DIMENSION)


async def test_an_older_version_never_replaces_a_newer_one(open_index: Opening) -> None:
    index = await open_index()
    await index.upsert([entry("mem_1", version=5, fields={"sequence": 5}), entry("mem_2", version=1)], deadline())
    await index.upsert([entry("mem_1", version=4), entry("mem_2", version=2), entry("mem_3", version=1)], deadline())
    held = await index.held([IndexKey(f"mem_{number}", "dept.a") for number in (1, 2, 3)], deadline())
    assert {name: one.version for name, one in held.items()} == {"mem_1": 5, "mem_2": 2, "mem_3": 1}


@pytest.mark.parametrize(
    "scope", [Scope(()), Scope((), ()), Scope(("dept.a",)), Scope((), ("dept.a",)), Scope(("a", "b"), ("c", "d"))]
)
def test_every_scope_but_the_system_s_narrows_a_search(scope: Scope) -> None:
    assert scoped(scope, []).must not in ([], [MEMORIES])
    assert scoped(SYSTEM_SCOPE, []).must == [MEMORIES]


async def test_without_rows_points_hold_no_text(options: QdrantOptions, qdrant_peer: QdrantPeer) -> None:
    held = {}
    for rows in (True, False):
        index = await QdrantVectorIndex.open(replace(options, rows=rows), "model-1", DIMENSION)
        await index.upsert([entry("mem_1", version=2 - rows, row=b"Likes tea")], deadline())
        held[rows] = await index.rows(A, ["mem_1"], deadline())
        assert await index.count(deadline()) == 1
        await index.close()
    assert held == {True: {"mem_1": b"Likes tea"}, False: {}}
