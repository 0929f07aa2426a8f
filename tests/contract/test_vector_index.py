import secrets
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest

from dataplane.adapters.edge.vector import EdgeVectorIndex
from dataplane.adapters.inmemory.vector_index import InMemoryVectorIndex
from dataplane.adapters.postgres.vector import PostgresVectorIndex
from dataplane.adapters.qdrant.calls import Connection
from dataplane.adapters.qdrant.options import QdrantOptions
from dataplane.adapters.qdrant.vector import QdrantVectorIndex
from dataplane.model import EVERYTHING, Candidate, Filter, Scope, Vector
from dataplane.ports import VectorIndex
from tests.contract.index_suite import DIMENSION, A, IndexContract, Searching, deadline, entry, ids, upsert, versions
from tests.contract.pgvector import with_pgvector
from tests.peers.qdrant.local import LocalClient

EF = 64
NO_VECTORS = [
    np.zeros(DIMENSION, dtype=np.float32),
    np.full(DIMENSION, np.nan, dtype=np.float32),
    np.full(DIMENSION, np.inf, dtype=np.float32),
    np.ones(DIMENSION + 1, dtype=np.float32),
    np.ones((1, DIMENSION), dtype=np.float32),
]


@pytest.fixture(params=["edge", "inmemory", "qdrant-peer", "qdrant-local", "qdrant-server", "pgvector"])
async def index(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[VectorIndex]:
    opened: VectorIndex
    if request.param == "edge":
        opened = EdgeVectorIndex.open(tmp_path / "vector", DIMENSION, "model-1")
    elif request.param == "inmemory":
        opened = InMemoryVectorIndex(DIMENSION, "model-1")
    elif request.param == "pgvector":
        postgres = with_pgvector(request.getfixturevalue("postgres_options"))
        opened = await PostgresVectorIndex.open(postgres, "model-1", DIMENSION, deadline())
    elif request.param == "qdrant-local":
        connection = Connection(LocalClient(), timeout_s=60)
        opened = await QdrantVectorIndex.over(connection, QdrantOptions(), "model-1", DIMENSION)
    else:
        url = request.getfixturevalue("qdrant_server_url" if request.param == "qdrant-server" else "qdrant_peer_url")
        options = QdrantOptions(url, prefix=f"t{secrets.token_hex(8)}", timeout_s=60)
        opened = await QdrantVectorIndex.open(options, "model-1", DIMENSION)
    yield opened
    await opened.close()


@pytest.fixture
def find(index: VectorIndex) -> Searching:
    async def search(scope: Scope, filter: Filter = EVERYTHING, top_k: int = 1000) -> list[Candidate]:
        return await index.search(scope, axis(0), filter, top_k, EF, deadline())

    return search


def axis(number: int) -> Vector:
    return np.eye(DIMENSION, dtype=np.float32)[number]


class TestVectorIndex(IndexContract):
    async def test_orders_by_cosine(self, index: VectorIndex) -> None:
        near = axis(0) * 0.8 + axis(1) * 0.6
        far = axis(0) * -1
        vectors = {"far": far, "near": near, "same": axis(0), "across": axis(2)}
        await upsert(index, [entry(name, embedding=vector) for name, vector in vectors.items()])
        found = await index.search(A, axis(0), EVERYTHING, 10, EF, deadline())
        assert ids(found) == ["same", "near", "across", "far"]
        assert [hit.score for hit in found] == pytest.approx([1.0, 0.8, 0.0, -1.0], abs=1e-6)

    async def test_agrees_with_brute_force(self, index: VectorIndex) -> None:
        rng = np.random.default_rng(3)
        vectors = rng.standard_normal((300, DIMENSION)).astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        await upsert(index, [entry(str(at), embedding=vector) for at, vector in enumerate(vectors)])
        found = await index.search(A, vectors[7], EVERYTHING, 20, EF, deadline())
        assert ids(found) == [str(at) for at in np.argsort(-(vectors @ vectors[7]))[:20]]

    async def test_what_is_no_vector_is_refused_and_leaves_nothing(self, index: VectorIndex) -> None:
        for vector in NO_VECTORS:
            with pytest.raises(ValueError, match="vector"):
                await upsert(index, [entry("good"), entry("bad", embedding=vector)])
            with pytest.raises(ValueError, match="vector"):
                await index.search(A, vector, EVERYTHING, 10, EF, deadline())
        assert await versions(index) == {}

    async def test_an_entry_without_embedding_is_refused(self, index: VectorIndex) -> None:
        with pytest.raises(ValueError, match="mem_1 has no embedding"):
            await upsert(index, [entry("mem_1", embedding=None)])

    async def test_no_model_is_active_before_one_was_activated(self, index: VectorIndex) -> None:
        assert await index.active_model(deadline()) == ""
        for _ in range(2):
            await index.activate(deadline())
        assert await index.active_model(deadline()) == "model-1"
