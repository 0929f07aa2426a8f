"""Applies queued writes until it comes to a step, says so and hangs, to be killed. Run by test_queue_kill.

Arguments: port of Redis, file of the record store, and the step: `save` (of results) or `done` (removal from the
queue).
"""

import asyncio
import sys
from pathlib import Path
from typing import Any

from dataplane.adapters.redis.options import RedisOptions
from dataplane.adapters.redis.queue import RedisQueueOptions, RedisWriteQueue
from dataplane.adapters.sqlite.connection import SqliteOptions
from dataplane.adapters.sqlite.store import SqliteRecordStore
from dataplane.codec import fields_of
from tests.unit.dataplane.pipelines.queue_rig import in_time, rig_over


async def hang(*_arguments: Any) -> None:
    sys.stdout.write("there\n")
    sys.stdout.flush()
    await asyncio.Event().wait()


async def main(port: int, path: Path, step: str) -> None:
    options = RedisOptions(addresses=(("127.0.0.1", port),))
    queue = await RedisWriteQueue.open(options, RedisQueueOptions(claim_after_s=0.5), in_time())
    store = await SqliteRecordStore.open(path, options=SqliteOptions(), fields_of=fields_of)
    target, method = (queue, "done") if step == "done" else (store, "save_operations")
    setattr(target, method, hang)
    consumer = rig_over(queue, store).consumer("killed")
    consumer.start()
    await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]))
