"""What a queue on SQLite leaves in its files."""

import asyncio
from pathlib import Path

from dataplane.adapters.sqlite.queue import SqliteQueueOptions, SqliteWriteQueue
from dataplane.changes import QueuedWrite
from memplane.process import SystemClock


async def test_a_write_that_is_done_is_in_none_of_the_files(tmp_path: Path) -> None:
    deadline_s = asyncio.get_running_loop().time() + 10
    queue = await SqliteWriteQueue.open(tmp_path / "queue.sqlite3", SqliteQueueOptions(), SystemClock())
    await queue.put(QueuedWrite("operations/1", "agent", "dept", b"the secret word", 1, "key"), deadline_s)
    entries = await queue.take("one", 10, 0.0, deadline_s)
    assert _holds(tmp_path, b"the secret word")
    await queue.done(entries, deadline_s)
    assert not _holds(tmp_path, b"the secret word")
    await queue.close()


def _holds(folder: Path, words: bytes) -> bool:
    return any(words in path.read_bytes() for path in folder.iterdir() if path.is_file())
