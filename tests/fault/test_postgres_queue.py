"""The write queue on a PostgreSQL that is killed, and its turns that nobody heard of. Takes about 20 s."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from operator import lt
from typing import Any

import pytest

from dataplane.adapters.postgres.migrate import migrate
from dataplane.adapters.postgres.options import PostgresOptions
from dataplane.adapters.postgres.pool import Pool
from dataplane.adapters.postgres.queue import PostgresQueueOptions, PostgresWriteQueue
from dataplane.changes import QueuedWrite, QueueEntry
from dataplane.codec import fields_of
from dataplane.errors import BackendUnavailable
from memplane.v1 import memory_pb2
from tests.deadline import eventually, eventually_async
from tests.postgres import open_store, options_for
from tests.servers.postgres import PostgresServer
from tests.unit.dataplane.pipelines.queue_rig import KEEP_ALL, response_of, rig_over, running, snapshot_of

KEYS = 16
WRITES = 25
TAKERS = 3
APPLIED = 60


@pytest.fixture(scope="module")
def mortal_server() -> Iterator[PostgresServer]:
    """A server of this module's own, to be killed."""
    server = PostgresServer.create()
    yield server
    server.close()


@pytest.fixture
def options(mortal_server: PostgresServer) -> PostgresOptions:
    made = options_for(mortal_server.database("mortal_queue"))
    migrate(made)
    return replace(made, connect_timeout_s=2.0)


@pytest.fixture
async def queue(options: PostgresOptions) -> AsyncIterator[PostgresWriteQueue]:
    opened = await open_queue(options)
    yield opened
    await opened.close()


async def open_queue(options: PostgresOptions) -> PostgresWriteQueue:
    return await PostgresWriteQueue.open(options, PostgresQueueOptions(), in_time())


def in_time(seconds: float = 10) -> float:
    return asyncio.get_running_loop().time() + seconds


def write(key: int, number: int) -> QueuedWrite:
    return QueuedWrite(f"operations/{key}-{number}", "agent", "dept.sales", b"x" * 300, 1, str(key))


@dataclass
class Load:
    """What was accepted and what came out, over all that put and take."""

    accepted: list[str] = field(default_factory=list)
    refused: int = 0
    came: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    is_over: bool = False

    async def put(self, queue: PostgresWriteQueue, key: int) -> None:
        for number in range(WRITES):
            given = write(key, number)
            try:
                await queue.put(given, in_time(5))
            except BackendUnavailable:
                self.refused += 1  # whether it is in the queue nobody knows
                await asyncio.sleep(0.05)
            else:
                self.accepted.append(given.operation)

    async def take(self, queue: PostgresWriteQueue, owner: str) -> None:
        while True:
            try:
                entries = await queue.take(owner, 10, 0.05, in_time(2))
            except BackendUnavailable:
                await asyncio.sleep(0.05)
                continue
            for entry in entries:
                key, _, number = entry.write.operation.removeprefix("operations/").partition("-")
                self.came[key].append(int(number))
            await self._done(queue, entries)
            if self.is_over and not entries:
                return

    async def _done(self, queue: PostgresWriteQueue, entries: list[QueueEntry]) -> None:
        while True:
            try:
                return await queue.done(entries, in_time(2))
            except BackendUnavailable:
                await asyncio.sleep(0.05)


async def test_what_was_accepted_outlives_kill_9_once_and_in_order(
    options: PostgresOptions, mortal_server: PostgresServer
) -> None:
    queues = [await open_queue(options) for _ in range(TAKERS)]
    load = Load()
    putting = [asyncio.create_task(load.put(queues[key % TAKERS], key)) for key in range(KEYS)]
    taking = [asyncio.create_task(load.take(queue, f"owner {number}")) for number, queue in enumerate(queues)]
    for _ in range(2):
        await eventually(lambda: len(load.accepted), partial(lt, len(load.accepted) + 40))
        await asyncio.to_thread(mortal_server.kill)
        mortal_server.start()  # not in a thread, with which the server would end
    await asyncio.gather(*putting)
    load.is_over = True
    await asyncio.gather(*taking)
    depth = await queues[0].depth(in_time())
    for queue in queues:
        await queue.close()

    came = [f"operations/{key}-{number}" for key, numbers in load.came.items() for number in numbers]
    assert load.refused  # else no call met the killed server
    assert len(came) == len(set(came))
    assert set(load.accepted) <= set(came)
    assert [numbers for numbers in load.came.values() if numbers != sorted(numbers)] == []
    assert (depth.waiting, depth.taken) == (0, 0)


async def test_what_a_turn_took_whose_answer_was_lost_comes_first_in_the_next(
    queue: PostgresWriteQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        await queue.put(write(1, number), in_time())
    transact = Pool.transact

    async def answer_lost(*arguments: Any, **named: Any) -> None:
        await transact(*arguments, **named)
        raise BackendUnavailable("queue", "the connection failed")

    with monkeypatch.context() as patched:
        patched.setattr(Pool, "transact", answer_lost)
        with pytest.raises(BackendUnavailable):
            await queue.take("one", 2, 0, in_time())
    assert await queue.take("two", 2, 0, in_time()) == []  # one may have them
    entries = await queue.take("one", 3, 0, in_time())
    assert [(entry.write.operation, entry.deliveries) for entry in entries] == [
        ("operations/1-0", 1),
        ("operations/1-1", 1),
        ("operations/1-2", 1),
    ]


async def test_a_take_that_is_cancelled_keeps_nothing(queue: PostgresWriteQueue) -> None:
    for number in range(2):
        await queue.put(write(1, number), in_time())
    taking = asyncio.create_task(queue.take("one", 1, 0, in_time()))
    await asyncio.sleep(0.001)
    taking.cancel()
    with suppress(asyncio.CancelledError):
        await queue.done(await taking, in_time())
    first = await queue.take("one", 1, 0, in_time())
    assert first[0].deliveries == 1


async def test_queued_writes_are_applied_once_though_the_server_is_killed(
    options: PostgresOptions, mortal_server: PostgresServer
) -> None:
    store = await open_store(options, fields_of)
    queues = [await open_queue(options) for _ in range(2)]
    rig, other = (rig_over(queue, store) for queue in queues)
    accepted = [await rig.put(f"Note {number}", subject_id=f"s{number % 6}") for number in range(APPLIED)]

    async def waiting() -> int:
        try:
            depth = await queues[0].depth(in_time(2))
        except BackendUnavailable:
            return APPLIED
        return depth.waiting + depth.taken

    rig.snapshot = other.snapshot = snapshot_of(KEEP_ALL.model_copy(update={"batch_size": 5}))
    async with running(rig.consumer("one"), other.consumer("two")):
        await eventually_async(waiting, lambda count: count < APPLIED)
        await asyncio.to_thread(mortal_server.kill)
        mortal_server.start()
        await eventually_async(waiting, lambda count: count == 0, within_s=40)
    told = [response_of(await rig.ended(each)) for each in accepted]
    memories = await rig.memories()
    for queue in queues:
        await queue.close()
    await store.close()
    assert len(memories) == APPLIED
    assert {item.memory.id for item in told} == {memory.memory_id for memory in memories}
    # Applied twice, the second answer would be a merge into the first.
    assert {item.decision.action for item in told} == {memory_pb2.DECISION_ACTION_KEPT_SHORT_TERM}
