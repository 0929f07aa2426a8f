"""kill -9 of a process that applies queued writes: each has its effect exactly once. Takes about 10 s."""

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from dataplane.adapters.redis.options import RedisOptions
from dataplane.adapters.redis.queue import RedisQueueOptions, RedisWriteQueue
from dataplane.adapters.sqlite.connection import SqliteOptions
from dataplane.adapters.sqlite.queue import SqliteQueueOptions, SqliteWriteQueue
from dataplane.adapters.sqlite.store import SqliteRecordStore
from dataplane.changes import QueuedWrite
from dataplane.codec import fields_of
from memplane.process import SystemClock
from memplane.v1 import memory_pb2
from tests.servers.redis import RedisServer
from tests.unit.dataplane.pipelines.queue_rig import in_time, response_of, rig_over, running

WRITES = 20


def apply_and_kill(port: int, path: Path, step: str) -> None:
    command = [sys.executable, "-m", "tests.fault.applying_child", str(port), str(path), step]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "there\n"
        child.kill()


@pytest.mark.parametrize("step", ["save", "done"])
async def test_a_process_killed_after_its_commits_leaves_each_write_once(
    redis_server: RedisServer, redis_url: str, tmp_path: Path, step: str
) -> None:
    assert redis_url
    options = RedisOptions(addresses=(redis_server.address,))
    queue = await RedisWriteQueue.open(options, RedisQueueOptions(claim_after_s=0.5), in_time())
    accepting = rig_over(queue)
    accepted = [await accepting.put(f"Note {number}", subject_id=f"s{number % 3}") for number in range(WRITES)]

    path = tmp_path / "records.sqlite3"
    await asyncio.to_thread(apply_and_kill, redis_server.port, path, step)

    store = await SqliteRecordStore.open(path, options=SqliteOptions(), fields_of=fields_of)
    rig = rig_over(queue, store)
    assert len(await rig.memories()) > 0  # it was killed after commits
    async with running(rig.consumer("next")):
        told = [response_of(await rig.ended(each)) for each in accepted]
    memories = await rig.memories()
    assert len(memories) == WRITES
    assert {item.memory.id for item in told} == {memory.memory_id for memory in memories}
    # Applied twice, the second answer would be a merge into the first.
    assert {item.decision.action for item in told} == {memory_pb2.DECISION_ACTION_KEPT_SHORT_TERM}
    await store.close()
    await queue.close()


PUTTING = """
import asyncio, sys
from pathlib import Path
from tests.fault.test_queue_kill import put_for_ever
asyncio.run(put_for_ever(Path(sys.argv[1])))
"""


async def open_file(path: Path) -> SqliteWriteQueue:
    return await SqliteWriteQueue.open(path, SqliteQueueOptions(), SystemClock())


async def put_for_ever(path: Path) -> None:
    """Run by a child: prints each operation once it is accepted, and takes some on the way."""
    queue = await open_file(path)
    for number in range(1_000_000):
        operation = f"operations/{number}"
        await queue.put(QueuedWrite(operation, "agent", "dept.sales", b"x" * 500, 1, str(number)), in_time())
        if number % 10 == 0:
            await queue.take("killed", 1, 0, in_time())
        sys.stdout.write(f"{operation}\n")
        sys.stdout.flush()


def put_and_kill(path: Path) -> set[str]:
    with subprocess.Popen([sys.executable, "-c", PUTTING, str(path)], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        accepted = [child.stdout.readline().strip() for _ in range(500)]
        child.kill()
        accepted += [line.strip() for line in child.stdout if line.endswith("\n")]
    return set(accepted)


async def test_what_the_file_accepted_survives_kill_9_and_is_free_at_once(tmp_path: Path) -> None:
    path = tmp_path / "queue.sqlite3"
    accepted = await asyncio.to_thread(put_and_kill, path)
    queue = await open_file(path)
    entries = await queue.take("next", 10_000, 0, in_time())
    assert accepted <= {entry.write.operation for entry in entries}
    assert max(entry.deliveries for entry in entries) == 2
    await queue.close()
