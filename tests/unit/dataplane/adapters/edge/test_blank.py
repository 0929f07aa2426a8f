"""Further shards are laid out from the blank that was taken of the first one. About 1 s."""

import os
from pathlib import Path

import pytest

from dataplane.adapters.edge.blank import PAGE_BYTES, lay_out, taken_from
from dataplane.adapters.edge.engine import Engine, ShardSpec
from dataplane.adapters.edge.folder import BLANK
from dataplane.errors import BackendUnavailable
from tests.unit.dataplane.adapters.edge.test_blocks import refuse, with_holes
from tests.unit.dataplane.adapters.edge.test_shard import deadline, entries, open_vector


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The folders of shards that Edge made."""
    folders: list[Path] = []
    create = Engine.create

    def counted(path: Path, spec: ShardSpec) -> Engine:
        folders.append(path)
        return create(path, spec)

    monkeypatch.setattr(Engine, "create", counted)
    return folders


def test_files_are_laid_out_as_they_were_and_without_holes(tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "target"
    (source / "segments" / "one").mkdir(parents=True)
    (source / "empty").touch()
    (source / "small.json").write_bytes(b"{}")
    with (source / "segments" / "one" / "page_0").open("wb") as file:
        os.pwrite(file.fileno(), b"early", 3)
        os.pwrite(file.fileno(), b"late", 9 * PAGE_BYTES + 7)
        file.truncate(64 * PAGE_BYTES)
    lay_out(taken_from(source), target)
    assert contents(target) == contents(source)
    assert with_holes(target) == set()


async def test_a_purge_lays_its_shard_out_also_after_a_restart(tmp_path: Path, made: list[Path]) -> None:
    index = open_vector(tmp_path / "vectors")
    await index.upsert(entries(20), deadline())
    await index.purge(deadline())
    await index.close()
    again = open_vector(tmp_path / "vectors")
    await again.purge(deadline())
    assert await again.count(deadline()) == 20
    assert len(made) == 1
    await again.close()


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"segment.json": []}', b'{"segment.json": [["x", ""]]}', b"{}"])
async def test_a_blank_that_is_no_good_is_taken_anew(tmp_path: Path, made: list[Path], damage: bytes) -> None:
    index = open_vector(tmp_path / "vectors")
    await index.upsert(entries(20), deadline())
    kept = next((tmp_path / "vectors").rglob(BLANK))
    whole = kept.read_bytes()
    kept.write_bytes(damage)
    for _ in range(2):
        await index.purge(deadline())
    assert await index.count(deadline()) == 20
    assert len(made) == 2
    assert len(kept.read_bytes()) > len(whole) // 2
    await index.close()


async def test_a_blank_for_which_the_disk_has_no_room_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = open_vector(tmp_path / "vectors")
    await index.upsert(entries(3), deadline())
    kept = next((tmp_path / "vectors").rglob(BLANK))
    whole = kept.read_bytes()
    with monkeypatch.context() as patched:
        patched.setattr(os, "posix_fallocate", refuse)
        with pytest.raises(BackendUnavailable, match="No space left"):
            await index.purge(deadline())
    assert kept.read_bytes() == whole
    await index.close()
