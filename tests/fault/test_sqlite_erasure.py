"""What was erased leaves the files by itself, with no further write: after a kill, and after a long read."""

import asyncio
import sqlite3
from pathlib import Path

from dataplane.adapters.sqlite.connection import SqliteOptions, open_writer
from dataplane.adapters.sqlite.store import SqliteRecordStore
from dataplane.changes import Erasure
from tests.contract.builders import NOW_US, commit_of, fields_of, memory_of, scope_of
from tests.deadline import eventually

SECRET = "a sentence that must not stay"
ERASURE = Erasure(scope=scope_of(), memory_id="mem_1", now_us=NOW_US, principal_id="alice")
OPTIONS = SqliteOptions(busy_timeout_ms=50)


def holds_secret(path: Path) -> bool:
    files = [file for file in path.parent.iterdir() if file.name.startswith(path.name)]
    return any(SECRET.encode() in file.read_bytes() for file in files)


def delete_and_die(path: Path) -> None:
    """Leaves the files as a process does that is killed after a commit, before it has moved the log."""
    connection = open_writer(path, OPTIONS)
    connection.execute("DELETE FROM memories")
    connection.execute("DELETE FROM memory_versions")
    left = {ending: Path(f"{path}{ending}").read_bytes() for ending in ("", "-wal")}
    connection.close()
    for ending, content in left.items():
        Path(f"{path}{ending}").write_bytes(content)


async def opened(path: Path) -> SqliteRecordStore:
    return await SqliteRecordStore.open(path, options=OPTIONS, fields_of=fields_of)


async def test_an_erasure_behind_a_long_read_is_finished_when_that_ends(tmp_path: Path) -> None:
    path, deadline_s = tmp_path / "records.db", asyncio.get_running_loop().time() + 30
    store = await opened(path)
    await store.commit([commit_of(memory_of("mem_1", content=SECRET))], deadline_s)
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM memories").fetchone()
    await store.erase(ERASURE, deadline_s)
    assert holds_secret(path)
    reader.execute("ROLLBACK")
    await eventually(lambda: holds_secret(path), lambda held: not held)
    reader.close()
    await store.close()


async def test_an_erasure_that_a_killed_process_committed_is_finished_by_the_next_one(tmp_path: Path) -> None:
    path, deadline_s = tmp_path / "records.db", asyncio.get_running_loop().time() + 30
    store = await opened(path)
    await store.commit([commit_of(memory_of("mem_1", content=SECRET))], deadline_s)
    await store.close()
    delete_and_die(path)
    assert holds_secret(path)
    store = await opened(path)
    await eventually(lambda: holds_secret(path), lambda held: not held)
    await store.close()
