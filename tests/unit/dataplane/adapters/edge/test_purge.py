"""What a purge leaves on disk, also when it fails or the process is killed on the way."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from dataplane.adapters.edge import shard
from dataplane.adapters.edge.active import folder_name
from dataplane.adapters.edge.engine import Engine
from dataplane.adapters.edge.folder import BLANK, ShardFolder
from dataplane.adapters.edge.requests import SLICE
from dataplane.adapters.edge.text import EdgeTextIndex
from dataplane.adapters.edge.vector import EdgeVectorIndex
from dataplane.errors import BackendUnavailable
from dataplane.model import EVERYTHING, FieldValue, IndexEntry, IndexKey, Pool, Scope
from tests.contract.row_traces import row_with, traces_of

DIMENSION = 64
SCOPE = Scope(("a",))
RNG = np.random.default_rng(5)
VECTORS = RNG.standard_normal((200, DIMENSION)).astype(np.float32)
VECTORS /= np.linalg.norm(VECTORS, axis=1, keepdims=True)
IN_ROW, IN_OLD_ROW = b"ROWSECRET-OF-A-DELETED-ONE", b"ROWSECRET-OF-A-REPLACED-ONE"
SECRETS = (b"METASECRET", b"SUBJECTSECRET", b"OLDSECRET")
ROW_SECRETS = traces_of(IN_ROW) | traces_of(IN_OLD_ROW)

KILLED_PURGE = """
import asyncio, os, signal, sys
from pathlib import Path
from dataplane.adapters.edge.active import folder_name
from dataplane.adapters.edge.folder import ShardFolder
from tests.unit.dataplane.adapters.edge.test_purge import deadline, fill, open_vector

def killed(_folder, *_):
    os.kill(os.getpid(), signal.SIGKILL)

async def purge():
    index = open_vector(Path(sys.argv[1]))
    await fill(index)
    await index.flush(deadline())
    setattr(ShardFolder, sys.argv[2], killed)
    await index.purge(deadline())

asyncio.run(purge())
"""


def deadline() -> float:
    return asyncio.get_running_loop().time() + 60


def open_vector(folder: Path) -> EdgeVectorIndex:
    return EdgeVectorIndex.open(folder, DIMENSION, "model-1")


def parts_of(folder: Path) -> list[Path]:
    """What lies in the folder of the model, but for the blank."""
    return [path for path in (folder / folder_name("model-1")).iterdir() if path.name != BLANK]


def entry(number: int, version: int = 1, **fields: str) -> IndexEntry:
    values = ("common", *fields.values())
    row = row_with(IN_ROW if "note" in fields else b"of a living one")
    return IndexEntry(f"mem_{number}", version, "a", Pool.PRIVATE, fields, VECTORS[number], values, row=row)


async def fill(index: EdgeVectorIndex | EdgeTextIndex) -> None:
    """A hundred entries; one was deleted after that, and one replaced."""
    await index.upsert([entry(number, subject_id="known") for number in range(100)], deadline())
    old: dict[str, FieldValue] = {"tags": ("OLDSECRET",)}
    replaced = IndexEntry("mem_0", 1, "a", Pool.PRIVATE, old, VECTORS[151], ("common",), row=row_with(IN_OLD_ROW))
    await index.upsert([entry(150, note="METASECRET", subject_id="SUBJECTSECRET"), replaced], deadline())
    await index.delete([IndexKey("mem_150", "a")], deadline())
    await index.upsert([entry(0, version=2)], deadline())


def contents(folder: Path) -> Iterator[bytes]:
    yield from (path.read_bytes() for path in folder.rglob("*") if path.is_file())


def leftovers(folder: Path) -> set[bytes]:
    """Which of the secrets, and of the vectors that are gone, are in a file."""
    gone = {*SECRETS, *ROW_SECRETS}
    for number in (150, 151):  # As in the pages of vectors, and as in a log of big-endian numbers.
        gone |= {VECTORS[number][4:8].tobytes(), VECTORS[number][4].astype(">f4").tobytes()}
    return {secret for content in contents(folder) for secret in gone if secret in content}


async def test_nothing_of_deleted_and_replaced_entries_is_in_a_file(tmp_path: Path) -> None:
    vectors, texts = open_vector(tmp_path / "vectors"), EdgeTextIndex.open(tmp_path / "texts", "rule-1")
    for index in (vectors, texts):
        await fill(index)
        await index.flush(deadline())
    shown = {secret for secret in ROW_SECRETS if any(secret in content for content in contents(tmp_path))}
    assert {word for word in (IN_ROW, IN_OLD_ROW) if traces_of(word) & shown} == {IN_ROW, IN_OLD_ROW}
    assert leftovers(tmp_path / "vectors") >= {*SECRETS, *shown, VECTORS[150][4:8].tobytes()}
    assert leftovers(tmp_path / "texts") == {*SECRETS, *shown}
    for index in (vectors, texts):
        await index.purge(deadline())
        assert len(await index.versions(deadline())) == 100
    assert leftovers(tmp_path) == set()
    assert any(b"known" in content for content in contents(tmp_path))
    assert len(parts_of(tmp_path / "vectors")) == 2
    found = await vectors.search(SCOPE, VECTORS[7], EVERYTHING, 1, 64, deadline())
    assert [hit.memory_id for hit in found] == ["mem_7"]
    assert found[0].score == pytest.approx(1.0)
    for index in (vectors, texts):
        await index.close()


async def test_a_purged_index_opens_with_its_content(tmp_path: Path) -> None:
    index = open_vector(tmp_path / "vectors")
    await fill(index)
    for _ in range(3):
        await index.purge(deadline())
    versions = await index.versions(deadline())
    await index.close()
    again = open_vector(tmp_path / "vectors")
    assert not again.recreated
    assert await again.versions(deadline()) == versions
    await again.close()


@pytest.mark.parametrize("step", ["announce", "switch", "remove_others"])
async def test_killed_during_a_purge_the_index_opens_whole_and_alone(tmp_path: Path, step: str) -> None:
    folder = tmp_path / "vectors"
    arguments = [sys.executable, "-c", KILLED_PURGE, str(folder), step]
    killed = await asyncio.to_thread(subprocess.run, arguments, check=False, env={**os.environ})
    assert killed.returncode == -signal.SIGKILL
    assert len([path for path in parts_of(folder) if path.is_dir()]) == 2
    index = open_vector(folder)
    assert not index.recreated
    assert len(await index.versions(deadline())) == 100
    assert len(parts_of(folder)) == 2
    assert bool(leftovers(folder)) == (step != "remove_others")
    await index.purge(deadline())
    assert leftovers(folder) == set()
    await index.close()


async def test_a_purge_that_fails_leaves_the_index_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "vectors"
    index = open_vector(folder)
    await fill(index)

    def full(_folder: ShardFolder, _shard: Path) -> None:
        raise OSError("no space left")

    with monkeypatch.context() as patched:
        patched.setattr(ShardFolder, "announce", full)
        with pytest.raises(BackendUnavailable, match="no space left"):
            await index.purge(deadline())
    assert len(parts_of(folder)) == 2
    await index.upsert([entry(101)], deadline())
    await index.purge(deadline())
    assert len(await index.versions(deadline())) == 101
    assert leftovers(folder) == set()
    await index.close()


async def test_a_purge_that_is_cancelled_leaves_the_index_as_it_was(tmp_path: Path) -> None:
    index = open_vector(tmp_path / "vectors")
    await fill(index)
    for turns in (1, 3):
        purging = asyncio.create_task(index.purge(deadline()))
        for _ in range(turns):
            await asyncio.sleep(0)
        purging.cancel()
        with pytest.raises(asyncio.CancelledError):
            await purging
        assert len(await index.versions(deadline())) == 100
    await index.close()
    again = open_vector(tmp_path / "vectors")
    assert not again.recreated
    assert len(parts_of(tmp_path / "vectors")) == 2
    await again.close()


async def test_a_purge_gives_the_loop_its_turn(tmp_path: Path) -> None:
    index = open_vector(tmp_path / "vectors")
    await fill(index)
    turns = 0
    purging = asyncio.create_task(index.purge(deadline()))
    while not purging.done():
        await asyncio.sleep(0)
        turns += 1
    await purging
    assert turns > 100 / SLICE
    await index.close()


async def test_a_purge_flushes_what_it_copies_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    index = open_vector(tmp_path / "vectors")
    await fill(index)
    flushes: list[Engine] = []
    flush = Engine.flush

    def counted(engine: Engine) -> None:
        flushes.append(engine)
        flush(engine)

    monkeypatch.setattr(Engine, "flush", counted)
    monkeypatch.setattr(shard, "FLUSH_AFTER", 2)
    await index.purge(deadline())
    assert len(flushes) == 100 // SLICE // 2 + 1
    assert len(await index.versions(deadline())) == 100
    assert leftovers(tmp_path) == set()
    await index.close()
