"""What becomes of collections that somebody removed while data planes use them, and how that shows."""

from collections.abc import AsyncIterator, Awaitable, Callable

import numpy as np
import pytest
from qdrant_client import AsyncQdrantClient, models

from dataplane.adapters.qdrant.names import CollectionNames
from dataplane.adapters.qdrant.options import QdrantOptions
from dataplane.adapters.qdrant.vector import QdrantVectorIndex
from dataplane.errors import BackendUnavailable
from dataplane.model import EVERYTHING, SYSTEM_SCOPE, IndexKey, Pool, Scope
from tests.contract.index_suite import DIMENSION, A, deadline, entry
from tests.peers.qdrant.process import QdrantPeer
from tests.unit.dataplane.adapters.qdrant.conftest import Opening

QUESTION = np.eye(DIMENSION, dtype=np.float32)[0]
Writing = Callable[[QdrantVectorIndex], Awaitable[None]]
WRITES: dict[str, Writing] = {
    "upsert": lambda index: index.upsert([entry("mem_1")], deadline()),
    "delete": lambda index: index.delete([IndexKey("mem_1", "dept.a")], deadline()),
    "clear": lambda index: index.clear(deadline()),
}


@pytest.fixture
async def client(qdrant_peer: QdrantPeer) -> AsyncIterator[AsyncQdrantClient]:
    opened = AsyncQdrantClient(
        host="127.0.0.1", grpc_port=qdrant_peer.port, prefer_grpc=True, check_compatibility=False
    )
    yield opened
    await opened.close()


@pytest.fixture
def names(options: QdrantOptions) -> CollectionNames:
    return CollectionNames(options.prefix, "model-1", DIMENSION)


async def shape(client: AsyncQdrantClient, name: str) -> tuple[models.CollectionConfig, set[str]]:
    info = await client.get_collection(name)
    return info.config, set(info.payload_schema)


async def test_a_collection_that_is_gone_is_told_and_never_looks_empty(
    open_index: Opening, client: AsyncQdrantClient, names: CollectionNames
) -> None:
    index = await open_index()
    await index.upsert([entry("mem_1")], deadline())
    await index.save_beacon("plane-1", 1, deadline())
    await client.delete_collection(names.common)
    for call in (
        index.search(A, QUESTION, EVERYTHING, 10, 64, deadline()),
        index.rows(A, ["mem_1"], deadline()),
        index.held([IndexKey("mem_1", "dept.a")], deadline()),
        index.versions(deadline()),
        index.count(deadline()),
    ):
        with pytest.raises(BackendUnavailable, match="gone"):
            await call
    assert await index.beacons(deadline()) == {}
    assert [each.code for each in (await index.examine(deadline())).problems] == ["COLLECTION_MISSING"]
    assert not await client.collection_exists(names.common)


@pytest.mark.parametrize("write", WRITES)
async def test_a_write_makes_a_collection_that_is_gone_anew_as_it_was(
    open_index: Opening, client: AsyncQdrantClient, names: CollectionNames, write: str
) -> None:
    index = await open_index()
    await index.activate(deadline())
    before = await shape(client, names.common)
    await index.save_beacon("plane-1", 1, deadline())
    await client.delete_collection(names.common)
    await WRITES[write](index)
    assert await shape(client, names.common) == before
    assert await index.active_model(deadline()) == "model-1"
    assert await index.beacons(deadline()) == {}
    assert (await index.examine(deadline())).problems == ()
    assert set(await index.versions(deadline())) == ({"mem_1"} if write == "upsert" else set())


async def test_a_beacon_makes_a_collection_that_is_gone_anew_and_is_not_kept(
    open_index: Opening, client: AsyncQdrantClient, names: CollectionNames
) -> None:
    index = await open_index()
    before = await shape(client, names.common)
    await client.delete_collection(names.common)
    with pytest.raises(BackendUnavailable, match="made anew, empty"):
        await index.save_beacon("plane-1", 1, deadline())
    assert await shape(client, names.common) == before
    assert await index.beacons(deadline()) == {}
    await index.save_beacon("plane-1", 2, deadline())
    assert await index.beacons(deadline()) == {"plane-1": 2}


async def test_a_dedicated_collection_that_is_gone_takes_the_beacons_along_until_the_next(
    open_index: Opening, client: AsyncQdrantClient, names: CollectionNames
) -> None:
    index = await open_index()
    await index.save_beacon("plane-1", 1, deadline())
    apart = entry("apart", "dept.sales", partition="dept.sales")
    await index.upsert([entry("mem_1"), apart], deadline())
    assert await index.beacons(deadline()) == {"plane-1": 1}
    await index.save_beacon("plane-1", 2, deadline())
    assert await index.beacons(deadline()) == {"plane-1": 2}
    await client.delete_collection(names.of("dept.sales"))
    assert await index.beacons(deadline()) == {}
    await (await open_index()).upsert([apart], deadline())
    assert await index.beacons(deadline()) == {}
    await index.save_beacon("plane-1", 3, deadline())
    assert await index.beacons(deadline()) == {"plane-1": 3}
    assert await index.count(deadline()) == 2


async def test_rows_come_from_the_collections_of_the_scope_and_the_newest_counts(open_index: Opening) -> None:
    index = await open_index()
    await index.upsert(
        [
            entry("common", row=b"common"),
            entry("apart", "dept.sales.x", row=b"apart", partition="dept.sales"),
            entry("shared", "dept.sales", pool=Pool.SHARED, row=b"shared", partition="dept.sales"),
        ],
        deadline(),
    )
    asked = ["common", "apart", "shared"]
    assert await index.rows(A, asked, deadline()) == {"common": b"common"}
    assert await index.rows(Scope(("dept.a",), ("dept.sales",)), asked, deadline()) == {
        "common": b"common",
        "shared": b"shared",
    }
    assert await index.rows(Scope(("dept.sales.x",)), asked, deadline()) == {"apart": b"apart"}
    await index.upsert([entry("apart", "dept.sales.x", version=2, row=b"moved")], deadline())
    assert (await index.rows(SYSTEM_SCOPE, asked, deadline()))["apart"] == b"moved"
