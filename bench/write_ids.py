"""`python -m bench.write_ids`: what it costs that every write that may be queued has an id. About a minute.

Whole writes without a request_id on SQLite, embeddings by hash: by `WriteOrQueue` with a queue (an id each) and without
one. Rounds alternate within one run: ratios count, times are this machine's.
"""

import asyncio
import tempfile
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import Any, cast

import uvloop

from bench.queue import Plane, caller, deadline, plane_over, rate
from dataplane.adapters.inmemory.embedder import HashEmbedder
from dataplane.adapters.sqlite.connection import SqliteOptions
from dataplane.adapters.sqlite.store import SqliteRecordStore
from dataplane.adapters.system import Ids
from dataplane.codec import fields_of
from dataplane.pipelines.enqueue import Proposal
from dataplane.pipelines.write_or_queue import WriteOrQueue
from memplane.process import SystemClock
from memplane.v1 import memory_service_pb2 as pb

ROUNDS = 9
WRITES = 400
BATCH = 100
CALLERS = 16


def main() -> None:
    """Measures and prints a table."""
    uvloop.run(_measure())


async def _measure() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records.sqlite3"
        store = await SqliteRecordStore.open(path, options=SqliteOptions(), fields_of=fields_of)
        async with plane_over(store, HashEmbedder()) as plane:
            unused = cast("Any", object())  # asked for nothing while the record store is well
            ways = {
                "no ids": WriteOrQueue(plane.write, None, str),
                "ids": WriteOrQueue(plane.write, unused, Ids(SystemClock()).request_id),
            }
            rates: dict[tuple[str, str], list[float]] = {}
            for _ in range(ROUNDS):
                for name, way in ways.items():
                    for kind, work in (("16 callers", _side_by_side), (f"batches of {BATCH}", _in_batches)):
                        measured = await rate(lambda way=way, work=work: work(plane, way), WRITES)  # type: ignore[misc]
                        rates.setdefault((kind, name), []).append(measured)
            for kind in dict.fromkeys(kind for kind, _ in rates):
                without, with_ids = rates[kind, "no ids"], rates[kind, "ids"]
                ratio = median(a / b for a, b in zip(without, with_ids, strict=True))
                print(f"{kind}: {median(without):,.0f} a second without ids, {median(with_ids):,.0f} with, {ratio:.2f}")


def _proposals(plane: Plane, count: int) -> list[Proposal]:
    made = plane.drafts(count, pb.DELIVERY_SYNC)
    return [replace(item, draft=replace(item.draft, request_id="")) for item in made]


async def _side_by_side(plane: Plane, way: WriteOrQueue) -> None:
    proposals = _proposals(plane, WRITES)

    async def call() -> None:
        while proposals:
            await way.write(proposals.pop(), caller(50), deadline())

    await asyncio.gather(*(call() for _ in range(CALLERS)))


async def _in_batches(plane: Plane, way: WriteOrQueue) -> None:
    for _ in range(WRITES // BATCH):
        await way.write_batch(_proposals(plane, BATCH), caller(50), deadline())


if __name__ == "__main__":
    main()
