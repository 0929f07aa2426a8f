"""The files of an index have blocks for all of their bytes, or nothing is written into them. About 1 s."""

import errno
import os
from pathlib import Path

import pytest

from dataplane.adapters.edge.blocks import LOOK_EVERY, FileBlocks
from dataplane.adapters.edge.text import EdgeTextIndex
from dataplane.adapters.edge.vector import EdgeVectorIndex
from dataplane.errors import BackendUnavailable
from tests.unit.dataplane.adapters.edge.test_shard import deadline, entries, open_vector

SIZE = 1024 * 1024


def with_holes(folder: Path) -> set[str]:
    """The files that have fewer blocks than bytes."""
    found = ((path, path.stat()) for path in folder.rglob("*") if path.is_file())
    return {path.name for path, stat in found if stat.st_blocks * 512 < stat.st_size}


def shards(folder: Path) -> set[Path]:
    return {log.parent for log in folder.rglob("wal")}


def sparse(path: Path, size_bytes: int = SIZE) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        file.truncate(size_bytes)
    return path


def refuse(_descriptor: int, _offset: int, _size_bytes: int) -> None:
    """What `os.posix_fallocate` does on a full disk."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


async def test_no_file_of_an_index_has_a_hole_when_it_was_written_opened_or_purged(tmp_path: Path) -> None:
    opened: list[EdgeVectorIndex | EdgeTextIndex] = [
        open_vector(tmp_path / "vectors"),
        EdgeTextIndex.open(tmp_path / "texts", "rule-1"),
    ]
    for index in opened:
        await index.upsert(entries(20), deadline())
        await index.flush(deadline())
    assert with_holes(tmp_path) == set()
    for index in opened:
        await index.purge(deadline())
        await index.flush(deadline())
    assert with_holes(tmp_path) == set()
    for index in opened:
        await index.close()


async def test_a_hole_that_cannot_be_filled_refuses_writes_before_anything_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = open_vector(tmp_path / "vectors")
    await index.upsert(entries(3), deadline())
    sparse(next((tmp_path / "vectors").rglob("wal")) / "came")
    with monkeypatch.context() as patched:
        patched.setattr(os, "posix_fallocate", refuse)
        for _ in range(2):
            with pytest.raises(BackendUnavailable, match="vector_index: no room for its files: No space left"):
                await index.upsert(entries(5), deadline())
        assert await index.count(deadline()) == 3
    await index.upsert(entries(5), deadline())
    assert await index.count(deadline()) == 5
    await index.close()


async def test_an_index_whose_holes_cannot_be_filled_is_neither_opened_nor_thrown_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = open_vector(tmp_path / "vectors")
    await index.upsert(entries(3), deadline())
    await index.close()
    sparse(next((tmp_path / "vectors").rglob("segments")) / "came")
    with monkeypatch.context() as patched:
        patched.setattr(os, "posix_fallocate", refuse)
        with pytest.raises(BackendUnavailable, match="no room for its files"):
            open_vector(tmp_path / "vectors")
    again = open_vector(tmp_path / "vectors")
    assert not again.recreated
    assert await again.count(deadline()) == 3
    await again.close()


async def test_a_purge_on_a_disk_without_room_leaves_nothing_and_the_index_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = open_vector(tmp_path / "vectors")
    await index.upsert(entries(3), deadline())
    before = shards(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr(os, "posix_fallocate", refuse)
        with pytest.raises(BackendUnavailable, match="no room for its files"):
            await index.purge(deadline())
    assert shards(tmp_path) == before
    await index.purge(deadline())
    assert await index.count(deadline()) == 3
    await index.close()


def test_a_file_that_comes_is_found_at_the_next_look(tmp_path: Path) -> None:
    blocks = FileBlocks(tmp_path, "vector_index")
    sparse(tmp_path / "pages" / "page_0")
    blocks.fill()
    sparse(tmp_path / "pages" / "page_1")
    assert with_holes(tmp_path) == {"page_1"}
    blocks.fill()
    assert with_holes(tmp_path) == set()


def test_a_file_that_grows_is_found_some_looks_later(tmp_path: Path) -> None:
    blocks = FileBlocks(tmp_path, "vector_index")
    page = sparse(tmp_path / "page_0")
    blocks.fill()
    sparse(page, 2 * SIZE)
    for _ in range(LOOK_EVERY + 1):
        blocks.fill()
    assert with_holes(tmp_path) == set()


def test_a_folder_that_went_has_no_holes(tmp_path: Path) -> None:
    blocks = FileBlocks(tmp_path / "shard", "vector_index")
    page = sparse(tmp_path / "shard" / "page_0")
    blocks.fill()
    page.unlink()
    page.parent.rmdir()
    blocks.fill()
