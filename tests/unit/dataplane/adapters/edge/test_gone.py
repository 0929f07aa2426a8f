"""What becomes of an index whose folder somebody removes or sets back, and of the beacons in it."""

import asyncio
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from dataplane.adapters.edge.folder import BEACONS, ShardFolder
from dataplane.adapters.edge.text import EdgeTextIndex
from dataplane.errors import BackendUnavailable
from dataplane.model import EVERYTHING, Candidate
from tests.unit.dataplane.adapters.edge.test_shard import SCOPE, deadline, entries


def open_text(folder: Path) -> EdgeTextIndex:
    return EdgeTextIndex.open(folder, "rule-1")


async def found(index: EdgeTextIndex) -> list[Candidate]:
    return await index.search(SCOPE, ("word",), EVERYTHING, 100, deadline())


async def test_beacons_are_there_when_it_is_opened_again(tmp_path: Path) -> None:
    index = open_text(tmp_path / "text")
    await index.save_beacon("plane-1", 5, deadline())
    await index.purge(deadline())
    await index.close()
    again = open_text(tmp_path / "text")
    assert await again.beacons(deadline()) == {"plane-1": 5}
    await again.close()


@pytest.mark.parametrize("content", ["", "[]", '{"plane-1": 5'])
async def test_a_file_of_beacons_that_cannot_be_read_tells_of_none(tmp_path: Path, content: str) -> None:
    index = open_text(tmp_path / "text")
    await index.save_beacon("plane-1", 5, deadline())
    (tmp_path / "text" / BEACONS).write_text(content)
    assert await index.beacons(deadline()) == {}
    await index.save_beacon("plane-1", 6, deadline())
    assert await index.beacons(deadline()) == {"plane-1": 6}
    await index.close()


async def test_a_folder_set_back_tells_older_beacons(tmp_path: Path) -> None:
    for value in (5, 6):
        index = open_text(tmp_path / "text")
        await index.save_beacon("plane-1", value, deadline())
        await index.close()
        if value == 5:
            shutil.copytree(tmp_path / "text", tmp_path / "backup")
    shutil.rmtree(tmp_path / "text")
    shutil.copytree(tmp_path / "backup", tmp_path / "text")
    again = open_text(tmp_path / "text")
    assert not again.recreated
    assert await again.beacons(deadline()) == {"plane-1": 5}
    await again.close()


@pytest.mark.parametrize("part", ["", "shard-1"])
async def test_a_folder_that_is_removed_while_it_is_open_is_missed_at_once_and_at_the_next_start(
    tmp_path: Path, part: str
) -> None:
    index = open_text(tmp_path / "text")
    await index.upsert(entries(3), deadline())
    await index.save_beacon("plane-1", 5, deadline())
    shutil.rmtree(tmp_path / "text" / part)
    assert await index.beacons(deadline()) == {}
    with suppress(BackendUnavailable):  # there is nothing to write to
        await index.close()
    again = open_text(tmp_path / "text")
    assert again.recreated
    assert (await again.beacons(deadline()), await again.count(deadline())) == ({}, 0)
    await again.close()


@pytest.mark.parametrize("call", ["flush", "save_beacon"])
async def test_what_would_be_durable_in_a_folder_that_is_gone_makes_it_anew_and_is_not_promised(
    tmp_path: Path, call: str
) -> None:
    index = open_text(tmp_path / "text")
    await index.upsert(entries(3), deadline())
    await index.save_beacon("plane-1", 5, deadline())
    shutil.rmtree(tmp_path / "text")
    with pytest.raises(BackendUnavailable, match="was gone and was made anew, empty"):
        await (index.flush(deadline()) if call == "flush" else index.save_beacon("plane-1", 6, deadline()))
    assert (await index.beacons(deadline()), await found(index)) == ({}, [])
    await index.upsert(entries(3), deadline())
    await index.flush(deadline())
    await index.save_beacon("plane-1", 7, deadline())
    await index.close()
    again = open_text(tmp_path / "text")
    assert not again.recreated
    assert (await again.beacons(deadline()), len(await found(again))) == ({"plane-1": 7}, 3)
    await again.close()


async def test_beacons_are_saved_while_a_purge_goes_on(tmp_path: Path) -> None:
    index = open_text(tmp_path / "text")
    await index.upsert(entries(100), deadline())
    purging = asyncio.create_task(index.purge(deadline()))
    saved = 0
    while not purging.done():
        saved += 1
        await index.save_beacon("plane-1", saved, deadline())
    await purging
    assert await index.beacons(deadline()) == {"plane-1": saved}
    assert ShardFolder(tmp_path / "text", {}).beacons() == {}, "a folder of another identity has none"
    await index.close()
