"""A wiped index is noticed and repaired while it serves; a restored record store is said until it is accepted."""

import asyncio
import copy
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from dataplane.model import IndexKey
from dataplane.pipelines.beacons import Beacons
from dataplane.pipelines.index_care import INDEX_SURPLUS, INDEX_WIPED
from dataplane.pipelines.lineage import RECORD_STORE_RESTORED
from memplane.client import MemPlaneClient
from tests.integration.beacon_parts import beacons_beside, faults, has_problem, is_lit, is_well, until
from tests.integration.test_maintenance import fill, settled, soon
from tests.integration.upkeep_plane import OLD, LastingRecords, UpkeepPlane, done, in_memory, restarted, upkeep_plane

COUNT = 40


@asynccontextmanager
async def lit_plane(tmp_path: Path) -> AsyncIterator[tuple[UpkeepPlane, Beacons]]:
    """A plane in memory, whose indexes count as those of servers, with COUNT memories and beacons everywhere."""
    async with upkeep_plane(None, [OLD]) as plane, beacons_beside(plane.wired, tmp_path / "beacon") as beacons:
        await fill(plane, COUNT)
        await until(is_lit(plane.wired), 5)
        yield plane, beacons


async def all_found(client: MemPlaneClient) -> bool:
    """Whether every memory of `fill` is found by what it says."""
    for number in range(COUNT):
        said = f"Order {number} of customer {number % 7} is worth {number * 31} dollars"
        answer = await client.search("dept.sales", said, top_k=5)
        if said not in [hit.memory.content for hit in answer.hits]:
            return False
    return True


@pytest.mark.parametrize("kind", ["vectors", "texts"])
async def test_a_wiped_index_says_so_and_is_filled_again(tmp_path: Path, kind: str) -> None:
    async with lit_plane(tmp_path) as (plane, beacons), plane.memory() as client, plane.maintenance() as maintenance:
        index = plane.stores.texts if kind == "texts" else plane.stores.spaces.current.vectors
        name = "text_index" if kind == "texts" else "vector_index"
        await index.clear(soon())
        await until(has_problem(beacons, name, INDEX_WIPED), 2)
        answer = await client.search("dept.sales", "Order 7")
        assert [(each.backend, each.reason) for each in answer.degraded] == [(name, "REBUILDING")]
        await until(is_well(beacons, plane.wired), 5)
        await until(is_lit(plane.wired), 5)
        assert await faults(maintenance) == {}
        answer = await client.search("dept.sales", "Order 7")
        assert not answer.degraded
        assert await all_found(client)


async def test_entries_that_vanish_beside_the_beacon_are_counted_out(tmp_path: Path) -> None:
    async with lit_plane(tmp_path) as (plane, beacons), plane.maintenance() as maintenance:
        held = await plane.stores.texts.versions(soon())
        await plane.stores.texts.delete([IndexKey(each, "dept.sales") for each in list(held)[:9]], soon())
        await until(has_problem(beacons, "text_index", INDEX_WIPED), 3)
        await until(is_well(beacons, plane.wired), 5)
        assert await faults(maintenance) == {}


@pytest.mark.parametrize("kind", ["vectors", "texts"])
async def test_entries_of_memories_that_are_gone_are_counted_out_and_removed(tmp_path: Path, kind: str) -> None:
    async with lit_plane(tmp_path) as (plane, beacons), plane.memory() as client, plane.maintenance() as maintenance:
        index = plane.stores.texts if kind == "texts" else plane.stores.spaces.current.vectors
        [row] = await plane.stores.records.scan("", 1, soon(), plane.stores.spaces.current.model)
        followed = next(each for each in plane.wired.followed if (each.space is None) == (kind == "texts"))
        late = replace(followed.entry_of(row), memory_id="mem_gone")
        await index.upsert([late], soon())
        await until(has_problem(beacons, "text_index" if kind == "texts" else "vector_index", INDEX_SURPLUS), 3)
        assert not (await client.search("dept.sales", "Order 7")).degraded
        await until(is_well(beacons, plane.wired), 5)
        assert "mem_gone" not in await index.versions(soon())
        assert await faults(maintenance) == {}


async def test_an_index_that_is_suspected_is_repaired(tmp_path: Path) -> None:
    async with lit_plane(tmp_path) as (plane, beacons):
        name = next(each.name for each in plane.wired.followed if each.space is None)
        beacons.suspect(name, "of 40 memories looked at 3 are wrong")
        await until(has_problem(beacons, "text_index", INDEX_WIPED), 2)
        await until(is_well(beacons, plane.wired), 5)


async def test_an_index_whose_rebuild_ends_by_a_defect_counts_as_being_rebuilt_until_one_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> None:
        raise ZeroDivisionError

    async with lit_plane(tmp_path) as (plane, beacons), plane.memory() as client, plane.maintenance() as maintenance:
        before = {record.name for record in await plane.wired.records.list_operations("", 100, soon())}

        async def failed_twice() -> bool:
            records = await plane.wired.records.list_operations("", 100, soon())
            failures = [record for record in records if record.error and record.name not in before]
            if failures:
                assert plane.wired.projectors.unlevel == ["text_index"]
                assert [each.reason for each in (await client.search("dept.sales", "Order 7")).degraded] == [
                    "REBUILDING"
                ]
            return len(failures) >= 2

        with monkeypatch.context() as broken:
            broken.setattr("dataplane.pipelines.rebuild.Rebuild._wait_until_level", fail)
            await plane.stores.texts.clear(soon())
            await until(failed_twice, 5)
        await until(is_well(beacons, plane.wired), 5)
        assert await faults(maintenance) == {}


async def test_an_index_that_was_wiped_while_no_data_plane_ran_is_noticed_at_the_start(tmp_path: Path) -> None:
    stores = in_memory([OLD])
    async with upkeep_plane(None, [OLD], stores) as plane, beacons_beside(plane.wired, tmp_path / "beacon"):
        await fill(plane, COUNT)
        await until(is_lit(plane.wired), 5)
    await stores.texts.clear(soon())
    async with (
        upkeep_plane(None, [OLD], restarted(stores, 1)) as plane,
        beacons_beside(plane.wired, tmp_path / "beacon") as beacons,
        plane.maintenance() as maintenance,
    ):
        await until(has_problem(beacons, "text_index", INDEX_WIPED), 3)
        await until(is_well(beacons, plane.wired), 5)
        assert await faults(maintenance) == {}


async def test_writes_under_way_while_an_index_is_wiped_are_found(tmp_path: Path) -> None:
    async with lit_plane(tmp_path) as (plane, beacons), plane.memory() as client, plane.maintenance() as maintenance:
        writing = asyncio.create_task(_write_on(client, 150))
        await asyncio.sleep(0)
        await plane.stores.spaces.current.vectors.clear(soon())
        await until(has_problem(beacons, "vector_index", INDEX_WIPED), 3)
        await writing
        await until(is_well(beacons, plane.wired), 10)
        await settled(plane)
        assert await faults(maintenance) == {}


async def _write_on(client: MemPlaneClient, count: int) -> None:
    for number in range(count):
        await client.write("dept.sales", f"Parcel {number} weighs {number * 17} grams", session_id="s")


async def test_a_record_store_that_goes_back_under_a_data_plane_is_said_until_it_is_accepted(tmp_path: Path) -> None:
    async with lit_plane(tmp_path) as (plane, beacons), plane.memory() as client, plane.maintenance() as maintenance:
        records = plane.stores.records
        assert isinstance(records, LastingRecords)
        backup, lit = copy.deepcopy(records._tables), await plane.wired.records.marker("beacon:data-1", soon())
        await fill_more(client)
        await settled(plane)
        await until(is_lit(plane.wired, lit), 5)
        restore(records, backup)
        await until(has_problem(beacons, "record_store", RECORD_STORE_RESTORED), 2)
        assert await faults(maintenance) != {}
        answer = await client.search("dept.sales", "Letter 3 came")
        assert [(each.backend, each.reason) for each in answer.degraded] == [("record_store", RECORD_STORE_RESTORED)]
        for kind in ("VECTOR", "TEXT"):
            ended = await done(maintenance, await maintenance.reindex(kind, repair_only=True))
            assert ended.done
        await until(is_well(beacons, plane.wired), 5)
        await until(is_lit(plane.wired), 5)
        assert await faults(maintenance) == {}
        assert await all_found(client)


async def fill_more(client: MemPlaneClient) -> None:
    for number in range(5):
        await client.write("dept.sales", f"Letter {number} came on day {number * 3}", session_id="s")


def restore(records: LastingRecords, backup: object) -> None:
    """Sets the record store back to a copy of before, in place."""
    kept = copy.deepcopy(backup)
    for name in kept.__dataclass_fields__:  # type: ignore[attr-defined]
        setattr(records._tables, name, getattr(kept, name))


async def test_another_data_plane_learns_of_it_from_the_indexes(tmp_path: Path) -> None:
    stores = in_memory([OLD])
    records = stores.records
    assert isinstance(records, LastingRecords)
    backup = copy.deepcopy(records._tables)
    async with upkeep_plane(None, [OLD], stores) as plane, beacons_beside(plane.wired, tmp_path / "one"):
        await fill(plane, COUNT)
        await until(is_lit(plane.wired), 5)
    restore(records, backup)
    async with (
        upkeep_plane(None, [OLD], restarted(stores, 1)) as plane,
        beacons_beside(plane.wired, tmp_path / "two", node="data-2") as beacons,
    ):
        await until(has_problem(beacons, "record_store", RECORD_STORE_RESTORED), 3)


async def test_the_witness_tells_when_the_indexes_were_set_back_too(tmp_path: Path) -> None:
    stores = in_memory([OLD])
    async with upkeep_plane(None, [OLD], stores) as plane, beacons_beside(plane.wired, tmp_path / "beacon"):
        await fill(plane, COUNT)
        await until(is_lit(plane.wired), 5)
    async with (
        upkeep_plane(None, [OLD], in_memory([OLD])) as plane,
        beacons_beside(plane.wired, tmp_path / "beacon") as beacons,
    ):
        await until(has_problem(beacons, "record_store", RECORD_STORE_RESTORED), 3)


async def test_sqlite_set_back_beside_its_indexes_is_noticed_at_the_next_start(tmp_path: Path) -> None:
    folder, backup = tmp_path / "data", tmp_path / "backup"
    folder.mkdir()
    async with upkeep_plane(folder, [OLD]) as plane, beacons_beside(plane.wired, folder / "beacon"):
        ids = await fill(plane, COUNT)
        await until(is_lit(plane.wired), 5)
    backup.mkdir()
    for path in folder.glob("records.sqlite3*"):
        shutil.copy(path, backup)
    async with upkeep_plane(folder, [OLD]) as plane, beacons_beside(plane.wired, folder / "beacon"):
        lit = await plane.wired.records.marker("beacon:data-1", soon())
        async with plane.memory() as client:
            await fill_more(client)
            await client.update("dept.sales", ids[0], {"content": "Order 0 was called off"})
        await until(is_lit(plane.wired, lit), 5)
    for path in folder.glob("records.sqlite3*"):
        path.unlink()
    for path in backup.iterdir():
        shutil.copy(path, folder)
    async with (
        upkeep_plane(folder, [OLD]) as plane,
        beacons_beside(plane.wired, folder / "beacon") as beacons,
        plane.maintenance() as maintenance,
        plane.memory() as client,
    ):
        await until(has_problem(beacons, "record_store", RECORD_STORE_RESTORED), 5)
        await done(maintenance, await maintenance.reindex("VECTOR", repair_only=True))
        await until(is_well(beacons, plane.wired), 5)
        assert await faults(maintenance) == {}
        assert await all_found(client)


async def test_an_edge_folder_that_is_removed_under_a_data_plane_is_filled_again(tmp_path: Path) -> None:
    async with (
        upkeep_plane(tmp_path, [OLD]) as plane,
        beacons_beside(plane.wired, tmp_path / "beacon") as beacons,
        plane.maintenance() as maintenance,
    ):
        await fill(plane, COUNT)
        await until(is_lit(plane.wired), 5)
        shutil.rmtree(tmp_path / "texts")
        await until(has_problem(beacons, "text_index", INDEX_WIPED), 5)
        await until(is_well(beacons, plane.wired), 10)
        assert await faults(maintenance) == {}


async def test_what_was_forgotten_since_the_backup_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async with lit_plane(tmp_path) as (plane, beacons), plane.memory() as client:
        records = plane.stores.records
        assert isinstance(records, LastingRecords)
        backup = copy.deepcopy(records._tables)
        forgotten = (await client.search("dept.sales", "Order 3", top_k=1)).hits[0].memory.id
        await client.forget("dept.sales", forgotten, "HARD")
        await settled(plane)
        restore(records, backup)
        await until(has_problem(beacons, "record_store", RECORD_STORE_RESTORED), 2)

        async def is_told() -> bool:
            return "1 forgotten memories came back" in beacons.problems["record_store"][0].message

        await until(is_told, 5)
        assert f"stands again: memplane forget dept.sales {forgotten}" in caplog.text
