"""What a folder left behind becomes when it is opened again."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from dataplane.adapters.edge.requests import SLICE
from dataplane.adapters.edge.text import EdgeTextIndex
from dataplane.adapters.edge.vector import EdgeVectorIndex
from dataplane.errors import BackendUnavailable
from dataplane.model import EVERYTHING, IndexEntry, IndexKey, Pool, Scope

DIMENSION = 4
SCOPE = Scope(("a",))
UP = np.eye(DIMENSION, dtype=np.float32)[0]

KILLED_WRITER = """
import asyncio, os, signal, sys
from pathlib import Path
from tests.unit.dataplane.adapters.edge.test_shard import entries, open_vector, deadline

async def write():
    index = open_vector(Path(sys.argv[1]))
    await index.upsert(entries(50), deadline())
    await index.flush(deadline())
    await index.upsert(entries(80), deadline())
    os.kill(os.getpid(), signal.SIGKILL)

asyncio.run(write())
"""


def deadline() -> float:
    return asyncio.get_running_loop().time() + 60


def entries(count: int) -> list[IndexEntry]:
    return [IndexEntry(f"mem_{n}", 1, "a", Pool.PRIVATE, {"sequence": n}, UP, ("word",)) for n in range(count)]


def open_vector(folder: Path, dimension: int = DIMENSION, model: str = "model-1") -> EdgeVectorIndex:
    return EdgeVectorIndex.open(folder, dimension, model)


async def fill(folder: Path) -> None:
    index = open_vector(folder)
    assert index.recreated
    await index.upsert(entries(10), deadline())
    await index.close()


async def test_a_closed_index_opens_with_its_content(tmp_path: Path) -> None:
    await fill(tmp_path / "vector")
    index = open_vector(tmp_path / "vector")
    assert not index.recreated
    assert len(await index.search(SCOPE, UP, EVERYTHING, 100, 64, deadline())) == 10
    await index.close()


@pytest.mark.parametrize(("dimension", "model"), [(DIMENSION, "model-2"), (DIMENSION + 1, "model-1")])
async def test_an_index_of_another_model_is_emptied(tmp_path: Path, dimension: int, model: str) -> None:
    await fill(tmp_path / "vector")
    index = open_vector(tmp_path / "vector", dimension, model)
    assert index.recreated
    assert await index.versions(deadline()) == {}
    await index.close()


async def test_a_text_index_under_another_tokenizer_is_emptied(tmp_path: Path) -> None:
    index = EdgeTextIndex.open(tmp_path / "text", "rule-1")
    await index.upsert(entries(3), deadline())
    await index.close()
    same = EdgeTextIndex.open(tmp_path / "text", "rule-1")
    assert not same.recreated
    await same.close()
    other = EdgeTextIndex.open(tmp_path / "text", "rule-2")
    assert other.recreated
    await other.close()


async def test_a_killed_writer_leaves_an_index_that_opens(tmp_path: Path) -> None:
    folder = tmp_path / "vector"
    killed = await asyncio.to_thread(
        subprocess.run, [sys.executable, "-c", KILLED_WRITER, str(folder)], check=False, env={**os.environ}
    )
    assert killed.returncode == -signal.SIGKILL
    index = open_vector(folder)
    versions = await index.versions(deadline())
    assert index.recreated or len(versions) >= 50
    await index.upsert(entries(80), deadline())
    assert len(await index.search(SCOPE, UP, EVERYTHING, 100, 64, deadline())) == 80
    await index.close()


def _garble(path: Path) -> None:
    path.write_bytes(b"\xff" * max(16, path.stat().st_size // 2))


@pytest.mark.parametrize("name", ["edge_config.json", "segment.json", "identity.json"])
@pytest.mark.parametrize("damage", [Path.unlink, _garble], ids=["gone", "garbled"])
async def test_a_damaged_folder_is_made_anew(tmp_path: Path, name: str, damage: Callable[[Path], None]) -> None:
    await fill(tmp_path / "vector")
    damaged = sorted((tmp_path / "vector").rglob(name))
    assert damaged
    for path in damaged:
        damage(path)
    index = open_vector(tmp_path / "vector")
    assert index.recreated or len(await index.versions(deadline())) == 10
    await index.upsert(entries(10), deadline())
    assert len(await index.search(SCOPE, UP, EVERYTHING, 100, 64, deadline())) == 10
    await index.close()


async def test_a_closed_index_is_unavailable(tmp_path: Path) -> None:
    index = open_vector(tmp_path / "vector")
    await index.close()
    await index.close()
    with pytest.raises(BackendUnavailable, match="vector_index"):
        await index.versions(deadline())


async def test_a_folder_that_cannot_be_made_is_unavailable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(BackendUnavailable, match="vector_index"):
        open_vector(tmp_path / "file" / "vector")


async def test_waiting_behind_other_writers_ends_at_the_deadline(tmp_path: Path) -> None:
    index = open_vector(tmp_path / "vector")
    writing = asyncio.create_task(index.upsert(entries(20 * SLICE), deadline()))
    await asyncio.sleep(0)
    with pytest.raises(BackendUnavailable, match="behind other writes"):
        await index.delete([IndexKey("mem_1", "a")], asyncio.get_running_loop().time() + 0.0001)
    await writing
    assert len(await index.versions(deadline())) == 20 * SLICE
    await index.close()


async def test_a_large_write_gives_the_loop_its_turn(tmp_path: Path) -> None:
    index = open_vector(tmp_path / "vector")
    turns = 0
    writing = asyncio.create_task(index.upsert(entries(10 * SLICE), deadline()))
    while not writing.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns >= 10
    await index.close()
