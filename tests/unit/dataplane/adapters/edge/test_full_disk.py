"""An index on a full disk writes nothing and is searched on; nothing that was there is given up. About 1 s."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from dataplane.adapters.edge.room import LEAST_FREE_BYTES, DiskRoom
from dataplane.adapters.edge.text import EdgeTextIndex
from dataplane.errors import BackendUnavailable
from dataplane.model import EVERYTHING, IndexKey
from tests.unit.dataplane.adapters.edge.test_shard import SCOPE, deadline, entries

WRITES: dict[str, Callable[[EdgeTextIndex], Awaitable[None]]] = {
    "upsert": lambda index: index.upsert(entries(1), deadline()),
    "delete": lambda index: index.delete([IndexKey(entries(1)[0].memory_id, entries(1)[0].namespace)], deadline()),
    "flush": lambda index: index.flush(deadline()),
    "purge": lambda index: index.purge(deadline()),
    "clear": lambda index: index.clear(deadline()),
    "save_beacon": lambda index: index.save_beacon("plane-1", 1, deadline()),
}


class Disk:
    """What `os.statvfs` tells."""

    def __init__(self) -> None:
        self.free_bytes = LEAST_FREE_BYTES

    def __call__(self, _path: object) -> os.statvfs_result:
        return os.statvfs_result((1, 1, self.free_bytes * 2, self.free_bytes, self.free_bytes, 0, 0, 0, 0, 255))


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    made = Disk()
    monkeypatch.setattr(os, "statvfs", made)
    return made


@pytest.mark.parametrize("name", WRITES)
async def test_nothing_is_written_and_searches_go_on(tmp_path: Path, disk: Disk, name: str) -> None:
    index = EdgeTextIndex.open(tmp_path / "text", "rule-1")
    await index.upsert(entries(3), deadline())
    disk.free_bytes = LEAST_FREE_BYTES - 1
    with pytest.raises(BackendUnavailable, match="the disk is full"):
        await WRITES[name](index)
    assert len(await index.search(SCOPE, ("word",), EVERYTHING, 10, deadline())) == 3
    disk.free_bytes = LEAST_FREE_BYTES
    await WRITES[name](index)
    await index.close()


async def test_an_index_that_cannot_be_opened_for_a_full_disk_is_not_thrown_away(tmp_path: Path, disk: Disk) -> None:
    index = EdgeTextIndex.open(tmp_path / "text", "rule-1")
    await index.upsert(entries(3), deadline())
    disk.free_bytes = 0
    await index.close()  # unflushed
    with pytest.raises(BackendUnavailable, match="the disk is full"):
        EdgeTextIndex.open(tmp_path / "text", "rule-1")
    disk.free_bytes = LEAST_FREE_BYTES
    again = EdgeTextIndex.open(tmp_path / "text", "rule-1")
    assert not again.recreated
    assert await again.count(deadline()) == 3
    await again.close()


def test_the_room_of_a_folder_that_is_not_there_yet_is_that_of_the_nearest_one(tmp_path: Path) -> None:
    assert DiskRoom(tmp_path / "not" / "yet", "text_index").is_enough()
