"""What a queue on SQLite leaves in its files."""

import asyncio
from pathlib import Path

import pytest

from dataplane.adapters.sqlite.queue import SqliteQueueOptions, SqliteWriteQueue
from dataplane.changes import QueuedWrite
from dataplane.errors import BackendUnavailable
from memplane.process import SystemClock
from tests.unit.dataplane.adapters.sqlite.full_disk import files_may_have


async def test_a_write_that_is_done_is_in_none_of_the_files(tmp_path: Path) -> None:
    deadline_s = asyncio.get_running_loop().time() + 10
    queue = await SqliteWriteQueue.open(tmp_path / "queue.sqlite3", SqliteQueueOptions(), SystemClock())
    await queue.put(QueuedWrite("operations/1", "agent", "dept", b"the secret word", 1, "key"), deadline_s)
    entries = await queue.take("one", 10, 0.0, deadline_s)
    assert _holds(tmp_path, b"the secret word")
    await queue.done(entries, deadline_s)
    assert not _holds(tmp_path, b"the secret word")
    await queue.close()


async def test_a_full_disk_lets_it_be_opened_and_what_a_dead_taker_held_comes_free_when_there_is_room(
    tmp_path: Path,
) -> None:
    deadline_s = asyncio.get_running_loop().time() + 10
    queue = await SqliteWriteQueue.open(tmp_path / "queue.sqlite3", SqliteQueueOptions(), SystemClock())
    await queue.put(QueuedWrite("operations/1", "agent", "dept", b"x", 1, "key"), deadline_s)
    assert await queue.take("dead", 10, 0.0, deadline_s)
    await queue.close()
    with files_may_have(0):
        queue = await SqliteWriteQueue.open(tmp_path / "queue.sqlite3", SqliteQueueOptions(), SystemClock())
        assert (await queue.depth(deadline_s)).taken == 1
        with pytest.raises(BackendUnavailable):
            await queue.take("next", 10, 0.0, deadline_s)
    [entry] = await queue.take("next", 10, 0.0, deadline_s)
    assert entry.write.operation == "operations/1"
    await queue.close()


def _holds(folder: Path, words: bytes) -> bool:
    return any(words in path.read_bytes() for path in folder.iterdir() if path.is_file())
