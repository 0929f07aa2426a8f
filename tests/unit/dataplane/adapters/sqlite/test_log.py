"""No byte of what was erased stays in the file or its log: not in gaps of pages, nor by way of the writer's cache."""

import asyncio
import re
import shutil
import sqlite3
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pytest

from dataplane.adapters.sqlite.connection import SqliteOptions, open_writer
from dataplane.adapters.sqlite.log import WriteAheadLog
from dataplane.adapters.sqlite.store import SqliteRecordStore
from dataplane.changes import Erasure
from dataplane.errors import BackendUnavailable
from dataplane.model import Memory
from tests.contract.builders import NOW_US, commit_of, memory_of, scope_of
from tests.unit.dataplane.adapters.sqlite.full_disk import files_may_have

SECRET = "a sentence that must not stay"
SEED = 1
WORD = re.compile(rb"zq[0-9a-f]{16}")
TAILS = (0, 10, 50, 200, 400)


def files_of(path: Path) -> bytes:
    return b"".join(file.read_bytes() for file in path.parent.iterdir() if file.name.startswith(path.name))


def words_in(path: Path) -> set[str]:
    return {found.decode() for found in WORD.findall(files_of(path))}


def memories_of(seed: int, count: int) -> dict[str, Memory]:
    """Each by a word that stands in it alone; of various lengths, so that pages are split and joined unevenly."""
    draws = np.random.default_rng(seed)
    words = [f"zq{draws.integers(2**62):016x}" for _ in range(count)]
    tails = draws.choice(TAILS, size=(count, 2))
    return {
        word: memory_of(f"mem_{number}", content=word + "x" * tail, fact_key=word + "x" * other)
        for number, (word, (tail, other)) in enumerate(zip(words, tails, strict=True))
    }


async def erase(store: SqliteRecordStore, memories: Iterable[Memory], deadline_s: float) -> None:
    erasures = [
        Erasure(scope=scope_of(), memory_id=memory.memory_id, now_us=NOW_US, principal_id="alice")
        for memory in memories
    ]
    await asyncio.gather(*(store.erase(erasure, deadline_s) for erasure in erasures))


async def test_copies_that_sqlite_left_when_it_moved_rows_between_pages_go_with_an_erasure(
    store: SqliteRecordStore, path: Path, deadline_s: float
) -> None:
    memories = memories_of(seed=SEED, count=600)
    await asyncio.gather(*(store.commit([commit_of(memory)], deadline_s) for memory in memories.values()))
    kept = [word for number, word in enumerate(memories) if number % 2]
    await erase(store, (memory for word, memory in memories.items() if word not in kept), deadline_s)
    assert words_in(path) == set(kept)
    again = [commit_of(memories[word], expected_version=1) for word in kept]
    await store.commit(again, deadline_s)  # every page goes through the log once more
    assert words_in(path) == set(kept)
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    connection.close()


@pytest.fixture
def killed(tmp_path: Path) -> Path:
    """The files of a process that was killed after it had committed an erasure, before it moved the log."""
    living, killed = tmp_path / "living.db", tmp_path / "killed" / "records.db"
    connection = open_writer(living, SqliteOptions())
    connection.execute("CREATE TABLE note (words TEXT)")
    connection.execute("INSERT INTO note VALUES (?)", (SECRET,))
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.execute("DELETE FROM note")
    killed.parent.mkdir()
    for ending in ("", "-wal"):
        shutil.copyfile(f"{living}{ending}", f"{killed}{ending}")
    connection.close()
    return killed


def test_what_a_killed_process_had_erased_goes_when_the_log_is_next_emptied(killed: Path) -> None:
    assert SECRET.encode() in files_of(killed)
    connection = open_writer(killed, SqliteOptions())
    log = WriteAheadLog(connection, 1_000)
    assert log.empty(patient=False)
    assert SECRET.encode() not in files_of(killed)
    connection.close()
    log.close()


def test_a_log_that_a_read_holds_is_emptied_after_it_and_is_long_only_when_it_has_grown(path: Path) -> None:
    connection = open_writer(path, SqliteOptions(busy_timeout_ms=20))
    log = WriteAheadLog(connection, 4)
    assert not log.is_long
    connection.execute("CREATE TABLE note (words TEXT)")
    connection.execute("INSERT INTO note VALUES (?)", (SECRET * 2_000,))
    assert log.is_long
    reader = sqlite3.connect(path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM note").fetchone()
    connection.execute("DELETE FROM note")
    assert not log.empty(patient=True)
    assert not log.is_long
    assert SECRET.encode() in files_of(path)
    reader.execute("ROLLBACK")
    assert log.empty(patient=False)
    assert SECRET.encode() not in files_of(path)
    reader.close()
    connection.close()
    log.close()


def test_a_log_that_sqlite_moves_by_itself_at_the_end_after_a_full_disk_leaves_nothing(path: Path) -> None:
    connection = open_writer(path, SqliteOptions())
    log = WriteAheadLog(connection, 4)
    connection.execute("CREATE TABLE note (words TEXT PRIMARY KEY) WITHOUT ROWID")
    notes = [(memory.fact_key,) for memory in memories_of(seed=SEED, count=3_000).values()]
    connection.execute("BEGIN")
    connection.executemany("INSERT INTO note VALUES (?)", notes)
    connection.execute("COMMIT")
    connection.executemany("DELETE FROM note WHERE words = ?", notes[::2])
    with files_may_have(8192), pytest.raises(sqlite3.OperationalError):
        log.empty(patient=False)
    assert not log.is_long  # it is not tried again with every write
    connection.close()
    assert len(words_in(path)) > len(notes[1::2])
    log.close()
    assert len(words_in(path)) == len(notes[1::2])


def test_a_file_whose_pages_sqlite_moves_by_itself_is_not_opened(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA auto_vacuum = FULL")
    connection.execute("CREATE TABLE note (words TEXT)")
    connection.close()
    with pytest.raises(BackendUnavailable, match="auto_vacuum"):
        open_writer(path, SqliteOptions())
