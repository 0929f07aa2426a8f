"""kill -9 amid projection: after a restart every index holds what the record store says, and nothing erased."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from dataplane.adapters.sqlite.store import SqliteRecordStore
from dataplane.changes import IndexProgress
from dataplane.ports import Index
from tests.deadline import eventually_async
from tests.fault.projecting_child import following

ROUNDS = 2
SEED = 20261130


def run_and_kill(folder: Path, name: str, kind: str, after_lines: int) -> dict[str, int]:
    """Kills a process once it has acknowledged so much; the last version of each memory that it acknowledged."""
    command = [sys.executable, "-m", "tests.fault.projecting_child", str(folder), name, kind]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        lines = [child.stdout.readline() for _ in range(after_lines)]
        child.kill()
        lines += [line for line in child.stdout if line.endswith("\n")]
    assert child.returncode == -signal.SIGKILL
    return {memory_id: int(version) for memory_id, version in (line.split() for line in lines)}


async def versions_in(store: SqliteRecordStore) -> dict[str, int]:
    rows = await store.scan("", 100_000, soon(), "")
    return {row.memory_id: row.memory.version for row in rows if row.memory is not None}


async def versions_of(index: Index) -> dict[str, int]:
    return {memory_id: held.version for memory_id, held in (await index.versions(soon())).items()}


def soon() -> float:
    return asyncio.get_running_loop().time() + 30


@pytest.mark.parametrize("kind", ["OWN", "SERVER"])
async def test_after_kill_9_every_index_ends_where_the_record_store_is(tmp_path: Path, kind: str) -> None:
    draws = np.random.default_rng(SEED)
    acknowledged: dict[str, int] = {}
    for number in range(ROUNDS):
        after_lines = int(draws.integers(100, 400))
        acknowledged |= await asyncio.to_thread(run_and_kill, tmp_path, str(number), kind, after_lines)
        async with following(tmp_path, f"after-{number}", own=kind == "OWN") as (store, indexes):

            async def progress(store: SqliteRecordStore = store) -> list[IndexProgress]:
                return await store.progress(soon())

            await eventually_async(progress, lambda seen: not any(item.due_count for item in seen), 30)
            wanted = await versions_in(store)
            assert not any(item.dead_count for item in await progress())
            for index in indexes:
                assert await versions_of(index) == wanted
            erased = await store.tombstones(list(acknowledged), soon())
        # A change after the last acknowledged one may have been stored, too.
        assert all(wanted.get(each, 0) >= version or each in erased for each, version in acknowledged.items())
