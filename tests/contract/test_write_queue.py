"""The contract of `ports.WriteQueue`, held by every adapter. Takes about 10 s."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from dataplane.adapters.inmemory.write_queue import InMemoryWriteQueue
from dataplane.adapters.postgres.options import PostgresOptions
from dataplane.adapters.postgres.queue import PostgresQueueOptions, PostgresWriteQueue
from dataplane.adapters.redis.options import RedisMode, RedisOptions
from dataplane.adapters.redis.queue import RedisQueueOptions, RedisWriteQueue
from dataplane.adapters.sqlite.queue import SqliteQueueOptions, SqliteWriteQueue
from dataplane.changes import QueuedWrite, QueueEntry
from dataplane.errors import BackendUnavailable, QueueFull
from dataplane.ports import WriteQueue
from memplane.process import SystemClock
from tests.deadline import eventually_async
from tests.servers.redis import RedisCluster

MAX_ENTRIES = 20
CLAIM_AFTER_S = 1.0


@dataclass
class Bench:
    """Opens the same queue again and again, as processes do."""

    open: Callable[[], Awaitable[WriteQueue]]
    claim_after_s: float = CLAIM_AFTER_S
    opened: list[WriteQueue] = field(default_factory=list)

    async def reopen(self, queue: WriteQueue) -> WriteQueue:
        """The queue as the next process finds it."""
        await queue.close()
        return await self.open()


@pytest.fixture(params=["inmemory", "sqlite", "redis", "redis-cluster", "postgres"])
async def bench(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Bench]:
    async with AsyncExitStack() as stack:
        yield Bench(_opener(request, tmp_path, stack))


def _opener(request: pytest.FixtureRequest, folder: Path, stack: AsyncExitStack) -> Callable[[], Awaitable[WriteQueue]]:
    kept = InMemoryWriteQueue(SystemClock(), MAX_ENTRIES, CLAIM_AFTER_S)

    async def open_queue() -> WriteQueue:
        queue = await make()
        stack.push_async_callback(queue.close)
        return queue

    async def make() -> WriteQueue:
        if request.param == "inmemory":
            return kept
        if request.param == "sqlite":
            options = SqliteQueueOptions(max_entries=MAX_ENTRIES, claim_after_s=CLAIM_AFTER_S)
            return await SqliteWriteQueue.open(folder / "queue.sqlite3", options, SystemClock())
        if request.param == "postgres":
            bounds = PostgresQueueOptions(max_entries=MAX_ENTRIES, claim_after_s=CLAIM_AFTER_S)
            return await PostgresWriteQueue.open(at, bounds, in_time())
        limits = RedisQueueOptions(max_entries=MAX_ENTRIES, claim_after_s=CLAIM_AFTER_S)
        return await RedisWriteQueue.open(_redis_options(request), limits, in_time())

    if request.param == "postgres":
        at: PostgresOptions = request.getfixturevalue("postgres_options")
    if request.param.startswith("redis"):
        request.getfixturevalue("redis_cluster_url" if "cluster" in request.param else "redis_url")
    return open_queue


def _redis_options(request: pytest.FixtureRequest) -> RedisOptions:
    if request.param == "redis":
        return RedisOptions(addresses=(request.getfixturevalue("redis_server").address,))
    cluster: RedisCluster = request.getfixturevalue("redis_cluster")
    return RedisOptions(mode=RedisMode.CLUSTER, addresses=tuple(node.address for node in cluster.nodes))


@pytest.fixture
async def queue(bench: Bench) -> WriteQueue:
    return await bench.open()


def in_time() -> float:
    return asyncio.get_running_loop().time() + 10


def write(number: int, key: str = "", request: bytes = b"request") -> QueuedWrite:
    return QueuedWrite(
        operation=f"operations/{number}",
        principal_id="agent",
        namespace="dept.sales",
        request=request,
        time_us=1_000 + number,
        order_key=key or str(number),
    )


async def take(queue: WriteQueue, owner: str = "one", page_size: int = 50, wait_s: float = 0.0) -> list[QueueEntry]:
    return await queue.take(owner, page_size, wait_s, in_time())


async def fill(queue: WriteQueue, count: int, key: str = "") -> list[QueuedWrite]:
    writes = [write(number, key) for number in range(count)]
    for each in writes:
        await queue.put(each, in_time())
    return writes


def operations(entries: list[QueueEntry]) -> list[str]:
    return [entry.write.operation for entry in entries]


async def test_what_was_put_comes_out_whole(queue: WriteQueue) -> None:
    given = QueuedWrite(
        "operations/x", "agent-甲", "dept.sales", bytes(range(256)), 1_760_000_000_000_001, "dept\x00甲"
    )
    await queue.put(given, in_time())
    [entry] = await take(queue)
    assert entry.write == given
    assert entry.deliveries == 1


async def test_an_accepted_write_is_there_after_a_restart(bench: Bench, queue: WriteQueue) -> None:
    await fill(queue, 3, "k")
    queue = await bench.reopen(queue)
    assert operations(await take(queue)) == ["operations/0", "operations/1", "operations/2"]


async def test_writes_of_one_key_come_oldest_first_over_pages(queue: WriteQueue) -> None:
    await fill(queue, 7, "k")
    pages = [await take(queue, page_size=3) for _ in range(3)]
    assert [operations(page) for page in pages] == [
        ["operations/0", "operations/1", "operations/2"],
        ["operations/3", "operations/4", "operations/5"],
        ["operations/6"],
    ]


async def test_a_page_is_no_larger_than_asked(queue: WriteQueue) -> None:
    await fill(queue, 10)
    assert len(await take(queue, page_size=4)) == 4


async def test_no_write_is_in_two_hands(queue: WriteQueue) -> None:
    await fill(queue, MAX_ENTRIES)

    async def drain(owner: str) -> list[str]:
        taken: list[str] = []
        while page := await take(queue, owner, page_size=3):
            taken += operations(page)
            await queue.done(page, in_time())
        return taken

    drained = await asyncio.gather(drain("one"), drain("two"), drain("three"))
    seen = [operation for taken in drained for operation in taken]
    assert len(seen) == len(set(seen))
    rest = await drain("one")  # lanes that another held when somebody looked
    assert len(seen) + len(rest) == MAX_ENTRIES


async def test_a_key_that_somebody_holds_is_given_to_nobody_else(queue: WriteQueue) -> None:
    await fill(queue, 4, "k")
    first = await take(queue, "one", page_size=2)
    assert await take(queue, "two") == []
    await queue.done(first, in_time())
    assert operations(await take(queue, "two")) == ["operations/2", "operations/3"]


async def test_every_key_gets_its_turn(queue: WriteQueue) -> None:
    await fill(queue, 16)
    seen: set[str] = set()
    for _ in range(16):
        page = await take(queue, page_size=1)
        seen |= set(operations(page))
        await queue.done(page, in_time())
    assert len(seen) == 16


async def test_abandoned_writes_come_again_and_are_counted(queue: WriteQueue) -> None:
    await fill(queue, 2, "k")
    assert len(await take(queue, "dead")) == 2
    await queue.put(write(7, "k"), in_time())
    assert await take(queue, "alive") == []

    again = await eventually_async(lambda: take(queue, "alive"), bool)
    assert operations(again) == ["operations/0", "operations/1", "operations/7"]
    assert [entry.deliveries for entry in again] == [2, 2, 1]


async def test_one_s_own_unfinished_writes_come_again_too(queue: WriteQueue) -> None:
    await fill(queue, 1)
    await take(queue, "one")
    assert await take(queue, "one") == []
    [again] = await eventually_async(lambda: take(queue, "one"), bool)
    assert again.deliveries == 2


@pytest.mark.alone  # within CLAIM_AFTER_S, or what was taken comes again
@pytest.mark.parametrize("steps", [1, 2, 3, 5, 8, 13])
async def test_what_a_taker_was_never_told_of_comes_again_at_once_and_in_order(queue: WriteQueue, steps: int) -> None:
    await fill(queue, 4, "k")
    [first] = await take(queue, page_size=1)
    given_up = asyncio.create_task(take(queue, page_size=2))
    for _ in range(steps):
        await asyncio.sleep(0)
    given_up.cancel()
    [told] = await asyncio.gather(given_up, return_exceptions=True)
    known = [first, *(told if isinstance(told, list) else [])]

    rest = await take(queue)
    assert operations([*known, *rest]) == [f"operations/{number}" for number in range(4)]
    assert {entry.deliveries for entry in rest} == {1}
    assert await take(queue) == []
    await queue.done([*known, *rest], in_time())
    depth = await queue.depth(in_time())
    assert (depth.waiting, depth.taken) == (0, 0)


async def test_renewed_writes_stay_in_their_hands(queue: WriteQueue) -> None:
    await fill(queue, 2, "k")
    held = await take(queue, "one")
    loop = asyncio.get_running_loop()
    until_s = loop.time() + 2 * CLAIM_AFTER_S
    while loop.time() < until_s:
        await queue.renew("one", held, in_time())
        assert await take(queue, "two") == []
        await asyncio.sleep(CLAIM_AFTER_S / 8)
    [first, _] = await eventually_async(lambda: take(queue, "two"), bool)
    assert first.deliveries == 2


async def test_renewing_does_not_take_back_what_was_lost(queue: WriteQueue) -> None:
    await fill(queue, 1)
    lost = await take(queue, "one")
    held = await eventually_async(lambda: take(queue, "two"), bool)
    await queue.renew("one", lost, in_time())
    await queue.done(held, in_time())
    await queue.renew("one", lost, in_time())
    assert (await queue.depth(in_time())).taken == 0


async def test_done_is_idempotent_and_final(bench: Bench, queue: WriteQueue) -> None:
    await fill(queue, 2)
    page = await take(queue)
    await queue.done(page, in_time())
    await queue.done(page, in_time())
    await queue.done([], in_time())
    queue = await bench.reopen(queue)
    assert await take(queue) == []
    assert (await queue.depth(in_time())).waiting == 0


async def test_a_write_is_found_while_it_waits_or_is_taken(queue: WriteQueue) -> None:
    [given] = await fill(queue, 1)
    assert await queue.find(given.operation, in_time()) == given
    page = await take(queue)
    assert await queue.find(given.operation, in_time()) == given
    await queue.done(page, in_time())
    assert await queue.find(given.operation, in_time()) is None
    assert await queue.find("operations/none", in_time()) is None


async def test_an_operation_is_put_once(queue: WriteQueue) -> None:
    await queue.put(write(1), in_time())
    await queue.put(write(1, request=b"another"), in_time())
    [entry] = await take(queue)
    await queue.put(write(1), in_time())
    assert entry.write.request == b"request"
    await queue.done([entry], in_time())
    await queue.put(write(1), in_time())
    assert len(await take(queue)) == 1


async def test_the_depth_tells_what_waits_and_what_is_taken(queue: WriteQueue) -> None:
    empty = await queue.depth(in_time())
    assert (empty.waiting, empty.taken, empty.oldest_time_us, empty.set_aside) == (0, 0, None, 0)
    await fill(queue, 5, "k")
    await take(queue, page_size=2)
    depth = await queue.depth(in_time())
    assert (depth.waiting, depth.taken) == (3, 2)
    assert depth.oldest_time_us is not None


async def test_a_full_queue_says_when_to_try_again(queue: WriteQueue) -> None:
    await fill(queue, MAX_ENTRIES)
    with pytest.raises(QueueFull) as raised:
        await queue.put(write(99), in_time())
    assert raised.value.retry_after_s > 0
    await queue.put(write(0), in_time())  # it is in there already
    await queue.done((await take(queue))[:1], in_time())
    await queue.put(write(99), in_time())


async def test_what_is_set_aside_is_counted_and_gone(bench: Bench, queue: WriteQueue) -> None:
    await fill(queue, 2, "k")
    page = await take(queue, page_size=1)
    await queue.set_aside(page, in_time())
    await queue.set_aside(page, in_time())
    assert await queue.find("operations/0", in_time()) is None
    queue = await bench.reopen(queue)
    depth = await queue.depth(in_time())
    assert (depth.waiting, depth.taken, depth.set_aside) == (1, 0, 1)
    assert operations(await take(queue)) == ["operations/1"]


async def set_aside(queue: WriteQueue, count: int, key: str = "") -> list[QueuedWrite]:
    """Puts writes, and has all of them set aside."""
    writes = await fill(queue, count, key)
    await queue.set_aside(await take(queue), in_time())
    return writes


async def test_what_is_set_aside_is_listed_page_by_page(bench: Bench, queue: WriteQueue) -> None:
    writes = await set_aside(queue, 5)
    queue = await bench.reopen(queue)
    found, after_id = [], ""
    while page := await queue.set_aside_writes(after_id, 2, in_time()):
        assert len(page) <= 2
        found += [each.write for each in page]
        after_id = page[-1].entry_id
    assert sorted(found, key=lambda each: each.time_us if each else 0) == writes
    assert len(await queue.set_aside_writes("no id of this queue", 50, in_time())) == 5


async def test_what_is_replayed_comes_again_whole_behind_what_waits(bench: Bench, queue: WriteQueue) -> None:
    writes = await set_aside(queue, 3, "k")
    await queue.put(write(7, "k"), in_time())
    _, second, _ = await queue.set_aside_writes("", 50, in_time())
    assert await queue.replay_set_aside([second.entry_id, "99999", "no id"], in_time()) == 1
    assert await queue.replay_set_aside([second.entry_id], in_time()) == 0
    queue = await bench.reopen(queue)
    assert await queue.find(writes[1].operation, in_time()) == writes[1]
    page = await take(queue)
    assert [(entry.write, entry.deliveries) for entry in page] == [(write(7, "k"), 1), (writes[1], 1)]
    assert await queue.replay_set_aside([], in_time()) == 2
    await queue.done(page, in_time())
    assert operations(await take(queue)) == ["operations/0", "operations/2"]
    assert (await queue.depth(in_time())).set_aside == 0


async def test_what_is_replayed_finds_room_and_may_be_set_aside_again(queue: WriteQueue) -> None:
    await set_aside(queue, 2, "k")
    for number in range(10, 10 + MAX_ENTRIES):
        await queue.put(write(number), in_time())
    assert await queue.replay_set_aside([], in_time()) == 2
    assert (await queue.depth(in_time())).waiting == MAX_ENTRIES + 2
    await queue.set_aside(await take(queue), in_time())
    assert (await queue.depth(in_time())).set_aside == MAX_ENTRIES + 2


async def test_what_was_put_again_meanwhile_is_not_queued_twice(queue: WriteQueue) -> None:
    await set_aside(queue, 1)
    await queue.put(write(0), in_time())
    assert await queue.replay_set_aside([], in_time()) == 1
    depth = await queue.depth(in_time())
    assert (depth.waiting, depth.set_aside) == (1, 0)


async def test_a_taker_that_waits_gets_what_comes(queue: WriteQueue) -> None:
    waiting = asyncio.create_task(take(queue, wait_s=5))
    await asyncio.sleep(0)
    await queue.put(write(1), in_time())
    started_s = asyncio.get_running_loop().time()
    assert operations(await waiting) == ["operations/1"]
    assert asyncio.get_running_loop().time() - started_s < 2


async def test_a_taker_waits_no_longer_than_it_said(queue: WriteQueue) -> None:
    started_s = asyncio.get_running_loop().time()
    assert await take(queue, wait_s=0.1) == []
    assert 0.09 < asyncio.get_running_loop().time() - started_s < 3


async def test_a_write_may_have_a_megabyte(queue: WriteQueue) -> None:
    given = write(1, request=b"\xff" * 1_000_000)
    await queue.put(given, in_time())
    [entry] = await take(queue)
    assert entry.write == given


async def test_a_deadline_that_passed_is_told(queue: WriteQueue) -> None:
    passed = asyncio.get_running_loop().time() - 1
    with pytest.raises(BackendUnavailable) as raised:
        await queue.put(write(1), passed)
    assert raised.value.backend == "queue"
    for call in (queue.take("one", 1, 0, passed), queue.find("operations/1", passed), queue.depth(passed)):
        with pytest.raises(BackendUnavailable):
            await call


async def test_a_healthy_queue_has_no_problems(queue: WriteQueue) -> None:
    found = await queue.examine(in_time())
    assert found.server
    assert found.problems == ()
