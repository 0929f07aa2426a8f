"""What is PostgreSQL's own in the write queue: several processes at once. Takes about 3 s."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from dataplane.adapters.postgres.options import PostgresOptions
from dataplane.adapters.postgres.queue import PostgresQueueOptions, PostgresWriteQueue
from dataplane.changes import QueuedWrite, QueueEntry
from dataplane.errors import Misconfigured
from memplane.settings import Secret
from tests.deadline import eventually_async

CLAIM_AFTER_S = 0.3
Queues = tuple[PostgresWriteQueue, PostgresWriteQueue]


@pytest.fixture
async def queues(postgres_options: PostgresOptions) -> AsyncIterator[Queues]:
    """Those of two processes, with leases that last."""
    opened = [await open_queue(postgres_options) for _ in range(2)]
    yield opened[0], opened[1]
    for queue in opened:
        await queue.close()


async def open_queue(options: PostgresOptions, claim_after_s: float = 30) -> PostgresWriteQueue:
    bounds = PostgresQueueOptions(claim_after_s=claim_after_s)
    return await PostgresWriteQueue.open(options, bounds, in_time())


def in_time() -> float:
    return asyncio.get_running_loop().time() + 10


def write(number: int, key: str) -> QueuedWrite:
    return QueuedWrite(f"operations/{number}", "agent", "dept.sales", b"request", 1, key)


def operations(entries: list[QueueEntry]) -> list[str]:
    return [entry.write.operation for entry in entries]


async def test_no_key_is_in_two_hands_whoever_takes_at_once(queues: Queues) -> None:
    for number in range(120):
        await queues[0].put(write(number, str(number % 7)), in_time())
    holders: dict[str, str] = {}
    came: dict[str, list[int]] = {}

    async def drain(owner: str, queue: PostgresWriteQueue) -> None:
        while entries := await queue.take(owner, 5, 0.2, in_time()):
            keys = {entry.write.order_key for entry in entries}
            assert {holders.get(key, owner) for key in keys} == {owner}
            holders.update(dict.fromkeys(keys, owner))
            for entry in entries:
                came.setdefault(entry.write.order_key, []).append(int(entry.write.operation.partition("/")[2]))
            await queue.renew(owner, entries, in_time())
            for key in keys:
                del holders[key]
            await queue.done(entries, in_time())

    await asyncio.gather(*(drain(f"owner {number}", queues[number % 2]) for number in range(6)))
    assert came == {str(key): list(range(key, 120, 7)) for key in range(7)}


async def test_a_taker_that_waits_finds_what_another_process_put(queues: Queues) -> None:
    waiting = asyncio.create_task(queues[0].take("one", 5, 8, in_time()))
    assert await queues[1].take("two", 5, 0.3, in_time()) == []
    await queues[1].put(write(1, "k"), in_time())
    assert operations(await waiting) == ["operations/1"]


async def test_an_operation_that_two_processes_put_at_once_is_in_the_queue_once(queues: Queues) -> None:
    for number in range(20):
        await asyncio.gather(*(queue.put(write(number, "k"), in_time()) for queue in queues))
    assert len(await queues[0].take("one", 50, 0, in_time())) == 20
    assert (await queues[0].depth(in_time())).taken == 20


async def test_renewing_what_expired_leaves_its_key_to_who_took_it(postgres_options: PostgresOptions) -> None:
    queue = await open_queue(postgres_options, CLAIM_AFTER_S)
    for number in range(2):
        await queue.put(write(number, "k"), in_time())
    lost = await queue.take("one", 2, 0, in_time())
    [first] = await eventually_async(lambda: queue.take("two", 1, 0, in_time()), bool)
    await queue.renew("one", lost, in_time())
    assert operations(await queue.take("two", 5, 0, in_time())) == ["operations/1"]
    assert first.write.operation == "operations/0"
    await queue.close()


async def test_the_newest_that_were_set_aside_are_kept(queues: Queues, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dataplane.adapters.postgres.queue_statements.SET_ASIDE_KEPT", 3)
    for number in range(5):
        await queues[0].put(write(number, "k"), in_time())
    await queues[0].set_aside(await queues[0].take("one", 5, 0, in_time()), in_time())
    assert (await queues[1].depth(in_time())).set_aside == 3


async def test_a_database_without_the_schema_is_told(postgres_options: PostgresOptions) -> None:
    elsewhere = Secret(postgres_options.dsn.replace("memplane_of_the_tests", "template1"))
    with pytest.raises(Misconfigured, match="run memplane migrate") as raised:
        await PostgresWriteQueue.open(PostgresOptions(elsewhere), PostgresQueueOptions(), in_time())
    assert raised.value.backend == "queue"
