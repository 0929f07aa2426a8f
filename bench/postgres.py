"""Commits of new memories on PostgreSQL at the port: one by one, and in batches of 50 and 500.

`python -m bench.postgres DSN_OF_APP_ROLE OWNER_DSN [SECONDS]` against an empty, migrated database; nothing else should
use it. Each memory has an embedding of 384 dimensions, a decision and a request; rounds alternate, so that a noisy
machine slows all sizes alike. Printed: medians over the rounds, in memories a second, and their ratios.
"""

import asyncio
import statistics
import sys
import time
from dataclasses import replace
from typing import Final

from dataplane.adapters.postgres.options import PostgresOptions
from dataplane.adapters.postgres.store import PostgresRecordStore
from dataplane.changes import Commit, DecisionRecord, RequestRecord
from dataplane.model import Action
from memplane.process import SystemClock
from memplane.settings import Secret
from tests.contract.builders import commit_of, fields_of, memory_of, vector_of

SIZES: Final = (1, 50, 500)
ONE_BY_ONE: Final = 20
"""Single commits in a round."""
BODY: Final = b"x" * 300
VECTOR: Final = vector_of(1, 384)


def commits(first: int, count: int) -> list[Commit]:
    """New memories that nothing else is like."""
    return [_commit(f"mem_{number:012d}") for number in range(first, first + count)]


def _commit(memory_id: str) -> Commit:
    memory = replace(memory_of(memory_id), body=BODY, subject_id="user_1")
    return commit_of(
        memory,
        embedding=VECTOR,
        decision=DecisionRecord(Action.CREATED, 0.9, "v1", b"d" * 100),
        request=RequestRecord("bench", memory_id, "0" * 64, b"a" * 200, memory.create_time_us + 86_400_000_000),
    )


async def timed(store: PostgresRecordStore, batches: list[list[Commit]]) -> float:
    """Memories a second."""
    loop = asyncio.get_running_loop()
    start_s = time.perf_counter()
    for batch in batches:
        results = await store.commit(batch, loop.time() + 60)
        assert all(result.error is None for result in results)
    return sum(map(len, batches)) / (time.perf_counter() - start_s)


async def measure(options: PostgresOptions, seconds: float) -> dict[int, list[float]]:
    """Rates by batch size, one each round."""
    loop = asyncio.get_running_loop()
    store = await PostgresRecordStore.open(
        options, fields_of=fields_of, clock=SystemClock(), deadline_s=loop.time() + 30
    )
    await store.register_index("vector_index:bench", loop.time() + 30)
    await store.register_index("text_index:bench", loop.time() + 30)
    rates: dict[int, list[float]] = {size: [] for size in SIZES}
    number = int(time.monotonic() * 1_000_000)
    end_s = loop.time() + seconds
    while loop.time() < end_s:
        for size in SIZES:
            times = ONE_BY_ONE if size == 1 else 2
            batches = [commits(number + size * turn, size) for turn in range(times)]
            number += size * times
            rates[size].append(await timed(store, batches))
    await store.close()
    return rates


def main() -> None:
    """Prints the table."""
    options = PostgresOptions(Secret(sys.argv[1]), migrate_dsn=Secret(sys.argv[2]))
    rates = asyncio.run(measure(options, float(sys.argv[3]) if len(sys.argv) > 3 else 30.0))
    single = statistics.median(rates[1])
    for size, found in rates.items():
        median = statistics.median(found)
        print(f"batches of {size:>3}: {median:>8.0f} memories/s, {median / single:>5.1f} times ({len(found)} rounds)")


if __name__ == "__main__":
    main()
