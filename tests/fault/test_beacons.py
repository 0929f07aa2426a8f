"""Real servers that lose an index under load, and a PostgreSQL that comes back as an older copy of itself."""

import asyncio
import logging
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import httpx
import psycopg
import pytest
from qdrant_client import QdrantClient

from dataplane.adapters.elasticsearch.options import ElasticsearchOptions
from dataplane.adapters.elasticsearch.text import ElasticsearchTextIndex
from dataplane.adapters.postgres.migrate import migrate
from dataplane.adapters.postgres.options import PostgresOptions
from dataplane.codec import fields_of
from dataplane.ending import end
from dataplane.logic.tokens import TOKENIZER
from dataplane.pipelines.beacons import BeaconOptions, Beacons
from dataplane.pipelines.index_care import INDEX_WIPED
from dataplane.pipelines.lineage import RECORD_STORE_RESTORED
from dataplane.stores import Stores
from memplane.client import MemPlaneClient, RpcError
from memplane.client.maintenance import MaintenanceClient
from tests.contract.pgvector import with_pgvector
from tests.integration.beacon_parts import beacons_beside, faults, has_problem, is_lit, is_well, until
from tests.integration.test_maintenance import fill, settled, soon
from tests.integration.upkeep_plane import OLD, UpkeepPlane, done, in_memory, on_postgres, over_qdrant, upkeep_plane
from tests.peers.qdrant.process import QdrantPeer
from tests.postgres import open_store, options_for
from tests.servers.postgres import PostgresServer

COUNT = 60
WITHIN_S = 20.0
"""Within which a loss must be noticed, at the default pace, however busy the machine is; 5 s where it is not."""
log = logging.getLogger(__name__)


@dataclass
class Rig:
    """A data plane with beacons at their default pace, written to all the while."""

    plane: UpkeepPlane
    beacons: Beacons
    client: MemPlaneClient
    maintenance: MaintenanceClient
    acknowledged: list[str]
    writing: "asyncio.Task[None] | None" = None

    async def lose(self, lose: Callable[[], Awaitable[None]], backend: str) -> None:
        """Loses an index; it must be noticed and repaired, and everything acknowledged be in it."""
        await lose()
        noticed_s = await until(has_problem(self.beacons, backend, INDEX_WIPED), WITHIN_S)
        repaired_s = await until(is_well(self.beacons, self.plane.wired), 30)
        log.info("%s: noticed after %.1f s, repaired after %.1f s more", backend, noticed_s, repaired_s)
        assert self.writing is not None
        await end(self.writing)
        await settled(self.plane)
        # What was applied at the very moment of the loss is counted out and repaired once more.
        await until(self.is_consistent, 15)
        indexes = [each.index for each in self.plane.wired.followed]
        for held in [await index.versions(soon()) for index in indexes]:
            assert held.keys() >= set(self.acknowledged)

    async def is_consistent(self) -> bool:
        """Whether a full check finds nothing wrong."""
        return await faults(self.maintenance) == {}

    async def write_on(self) -> None:
        """Writes until it is cancelled."""
        number = 0
        while True:
            number += 1
            answer = await self.client.write("dept.sales", f"Parcel {number} weighs {number * 17} g", session_id="s")
            if answer.memory.id:
                self.acknowledged.append(answer.memory.id)


@asynccontextmanager
async def rig_over(stores: Stores, tmp_path: Path) -> AsyncIterator[Rig]:
    async with (
        upkeep_plane(None, [OLD], stores) as plane,
        plane.memory() as client,
        plane.maintenance() as maintenance,
        beacons_beside(plane.wired, tmp_path / "beacon", BeaconOptions(interval_s=1.0)) as beacons,
    ):
        rig = Rig(plane, beacons, client, maintenance, await fill(plane, COUNT))
        await until(is_lit(plane.wired), 15)
        rig.writing = asyncio.create_task(rig.write_on())
        yield rig
        await end(rig.writing)


async def test_an_elasticsearch_index_that_is_deleted_under_load(elasticsearch_url: str, tmp_path: Path) -> None:
    options = ElasticsearchOptions(hosts=(elasticsearch_url,), shards=1, replicas=0)
    texts = await ElasticsearchTextIndex.open(options, TOKENIZER)

    async def lose() -> None:
        async with httpx.AsyncClient(base_url=elasticsearch_url, trust_env=False) as http:
            for name in (await http.get("/_alias")).json():
                (await http.delete(f"/{name}")).raise_for_status()

    async with rig_over(replace(in_memory([OLD]), texts=texts), tmp_path) as rig:
        await rig.lose(lose, "text_index")
    await texts.close()


async def test_a_qdrant_collection_that_is_deleted_under_load(qdrant_peer: QdrantPeer, tmp_path: Path) -> None:
    async with AsyncExitStack() as stack:
        stores = await over_qdrant(qdrant_peer.url, [OLD], stack)
        names = stores.spaces.current.vectors._names  # type: ignore[attr-defined]

        async def lose() -> None:
            await asyncio.to_thread(drop, qdrant_peer.url, names.common)

        async with rig_over(stores, tmp_path) as rig:
            await rig.lose(lose, "vector_index")


def drop(url: str, collection: str) -> None:
    """Removes a collection as anybody could."""
    port = int(url.rpartition(":")[2])
    client = QdrantClient(host="127.0.0.1", grpc_port=port, prefer_grpc=True, check_compatibility=False)
    client.delete_collection(collection)
    client.close()


async def test_a_pgvector_table_that_is_truncated_under_load(postgres_options: PostgresOptions, tmp_path: Path) -> None:
    options = with_pgvector(postgres_options)

    async def lose() -> None:
        assert options.migrate_dsn
        async with await psycopg.AsyncConnection.connect(options.migrate_dsn, autocommit=True) as connection:
            found = await connection.execute(
                "SELECT relname FROM pg_class WHERE relnamespace = 'memplane'::regnamespace AND relkind = 'r'"
                " AND relname LIKE 'vectors%'"
            )
            for (name,) in await found.fetchall():
                await connection.execute(f'TRUNCATE memplane."{name}"')

    async with AsyncExitStack() as stack, rig_over(await on_postgres(options, [OLD], stack), tmp_path) as rig:
        await rig.lose(lose, "vector_index")


@pytest.fixture
def own_postgres() -> Iterator[PostgresServer]:
    server = PostgresServer.create()
    yield server
    server.close()


async def test_postgresql_comes_back_as_an_older_copy_under_a_data_plane(
    own_postgres: PostgresServer, tmp_path: Path
) -> None:
    server = own_postgres
    options = options_for(server.database("memplane"))
    await asyncio.to_thread(migrate, options)
    stores = replace(in_memory([OLD]), records=await open_store(options, fields_of))
    async with (
        upkeep_plane(None, [OLD], stores) as plane,
        plane.memory() as client,
        plane.maintenance() as maintenance,
        beacons_beside(plane.wired, tmp_path / "beacon", BeaconOptions(interval_s=1.0)) as beacons,
    ):
        kept = await fill(plane, COUNT)
        await until(is_lit(plane.wired), 15)
        copy = server.process.folder / "older"
        await asyncio.to_thread(set_aside, server, copy)
        lost = await client.write("dept.sales", "The lost order is worth 9 dollars", session_id="s")
        assert lost.memory.id
        await asyncio.to_thread(put_back, server, copy)
        noticed_s = await until(has_problem(beacons, "record_store", RECORD_STORE_RESTORED), 15)
        log.info("noticed after %.1f s, most of them for connections", noticed_s)
        with pytest.raises(RpcError) as refused:
            await client.search("dept.sales", "order", at_least_as_fresh=lost.consistency_token)
        assert "at_least_as_fresh" in str(refused.value)
        after = await client.write("dept.sales", "The next order is worth 8 dollars", session_id="s")
        answer = await client.search("dept.sales", "The next order is worth 8 dollars", top_k=3)
        assert after.memory.id in [hit.memory.id for hit in answer.hits]
        for kind in ("VECTOR", "TEXT"):
            await done(maintenance, await maintenance.reindex(kind, repair_only=True))
        await until(is_well(beacons, plane.wired), 15)
        assert await faults(maintenance) == {}
        for held in [await each.index.versions(soon()) for each in plane.wired.followed]:
            assert held.keys() == {*kept, after.memory.id}


def set_aside(server: PostgresServer, copy: Path) -> None:
    """A copy of the data folder, taken while it stands still."""
    server.stop()
    shutil.copytree(server.data, copy, copy_function=shutil.copy2)
    own(server, copy)
    server.start()


def put_back(server: PostgresServer, copy: Path) -> None:
    """The copy in place of what is there."""
    server.stop()
    shutil.rmtree(server.data)
    copy.rename(server.data)
    server.start()


def own(server: PostgresServer, copy: Path) -> None:
    """The copy belongs to whom the original belongs to."""
    status = server.data.stat()
    for path in (copy, *copy.rglob("*")):
        shutil.chown(path, status.st_uid, status.st_gid)
