"""EXPLAIN (ANALYZE, BUFFERS) of each hot query of the record store at a million memories.

`python -m bench.postgres_plans OWNER_DSN APP_DSN` against an empty, migrated database; some minutes and 3 GB. The
statements are those that the store sends, caught on their way, run as the app role with row-level security in force:
one namespace holds a tenth of all memories, the scope of a caller is that one, or it and 19 others, and a million
outbox rows are due. Embeddings are short (their size does not change a plan). Printed: Markdown.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

import psycopg

from dataplane.adapters.postgres.options import PostgresOptions
from dataplane.adapters.postgres.pool import Parameters, Pool, Row
from dataplane.adapters.postgres.store import PostgresRecordStore
from dataplane.changes import AccessRecord, Lease
from dataplane.model import EVERYTHING, Condition, Kind, Operator, Scope, State
from dataplane.ports import ListQuery
from memplane.process import SystemClock
from memplane.settings import Secret
from tests.contract.builders import fields_of

ROWS: Final = 1_000_000
BIG: Final = Scope(("tenant.big",))
MANY: Final = Scope(("tenant.big", *(f"tenant.n{number}" for number in range(19))), ("tenant.n100",))
INDEX: Final = "vector_index:bench"
FILL: Final = (
    """
INSERT INTO memplane.memories
SELECT 'mem_' || lpad(n::text, 9, '0'), CASE WHEN n % 10 = 0 THEN 'tenant.big' ELSE 'tenant.n' || n % 997 END,
    'user_' || n % 50, 's' || n % 1000, 1, 3, CASE WHEN n % 20 = 1 THEN 5 ELSE 1 END, 1 + (n % 7 = 0)::int, 'c',
    CASE WHEN n % 5 = 0 THEN 'fact_' || n ELSE '' END, 3, 0.7, md5(n::text), md5(n::text), 1, n * 1000, n * 1000,
    NULL, NULL, NULL, NULL, '', 1, n * 1000, 0, NULL, convert_to(repeat(md5(n::text), 10), 'UTF8'), '',
    jsonb_build_object('category', 'c' || n / 10 % 10, 'confidence', 0.7, 'create_time', n * 1000)
FROM generate_series(1, {rows}) AS n""",
    """
INSERT INTO memplane.memory_versions
SELECT memory_id, namespace, subject_id, session_id, kind, layer, state, pool, category, fact_key, source_type,
    confidence, content_hash, statement_key, version, create_time_us, update_time_us, event_time_us, valid_from_us,
    valid_to_us, expire_time_us, superseded_by_id, strength, strength_time_us, access_count, last_access_time_us, body,
    key_id, create_time_us, 'alice', 'CREATED', '' FROM memplane.memories""",
    """
INSERT INTO memplane.embeddings SELECT memory_id, 1, 'bench', namespace, pool, decode(md5(memory_id), 'hex')
FROM memplane.memories""",
    "INSERT INTO memplane.indexes (name, seen_time_us) VALUES ('vector_index:bench', memplane.now_us())",
    """
INSERT INTO memplane.outbox (index_id, position, memory_id, namespace, time_us)
SELECT i.index_id, row_number() OVER (ORDER BY m.memory_id), m.memory_id, m.namespace, 0
FROM memplane.memories AS m, memplane.indexes AS i""",
    "UPDATE memplane.last_position SET position = {rows}",
    """
INSERT INTO memplane.access_buckets SELECT memory_id, 20000 + n, namespace, 2
FROM memplane.memories, generate_series(1, 2) AS n WHERE pool = 2""",
    "VACUUM ANALYZE",
)


class Recorder(Pool):
    """A pool that keeps what went through it."""

    seen: list[tuple[Scope, Sequence[tuple[str, Parameters]]]]

    async def transact(
        self,
        scope: Scope,
        queries: Sequence[tuple[str, Parameters]],
        deadline_s: float,
        *,
        is_repeatable: bool = True,
    ) -> list[Row]:
        """As Pool's."""
        if "make_partitions" not in queries[-1][0]:  # which the store calls by itself
            self.seen = [*getattr(self, "seen", []), (scope, queries)]
        return await super().transact(scope, queries, deadline_s, is_repeatable=is_repeatable)


def fill(owner_dsn: str) -> str:
    """Fills the database; the server's version."""
    with psycopg.connect(owner_dsn, autocommit=True) as connection:
        connection.execute("SET synchronous_commit = off")
        for statement in FILL:
            connection.execute(statement.format(rows=ROWS).encode())
        [(version,)] = connection.execute("SHOW server_version").fetchall()
    return str(version)


Call = Callable[[PostgresRecordStore, float], Awaitable[Any]]


def calls() -> dict[str, Call]:
    """The hot queries by name."""
    ids = [f"mem_{number:09d}" for number in range(10, 310, 10)]
    confident = Condition("category", Operator.EQUALS, ("c3",))
    digest = "d3d9446802a44259755d38e6d163e820"  # md5 of 10
    access = [AccessRecord(memory_id, "tenant.big", 1, 0.1, 2.0, 0.1) for memory_id in ids]
    listing = ListQuery((State.ACTIVE,), EVERYTHING, 50)
    filtered = ListQuery((State.ACTIVE,), confident, 50)
    lease = Lease("bench", 30.0)
    return {
        "get": lambda store, until: store.get(BIG, ids[0], until),
        "fetch of 30, one namespace": lambda store, until: store.fetch(BIG, ids, "bench", 0, until),
        "fetch of 30, 20 namespaces and a shared one": lambda store, until: store.fetch(MANY, ids, "bench", 0, until),
        "list, newest 50": lambda store, until: store.list_memories(BIG, listing, until),
        "list, newest 50 of 20 namespaces": lambda store, until: store.list_memories(MANY, listing, until),
        "list, newest 50 by a filter": lambda store, until: store.list_memories(BIG, filtered, until),
        "find_same_content": lambda store, until: store.find_same_content(BIG, "user_10", Kind.FACT, digest, until),
        "find_fact": lambda store, until: store.find_fact(BIG, "user_10", "fact_10", until),
        "pending, 100 newest": lambda store, until: store.pending(BIG, {INDEX: ROWS - 1_000}, "bench", 0, 100, until),
        "history, 100 newest": lambda store, until: store.history(BIG, ROWS * 500, "bench", 100, until),
        "scan of 500": lambda store, until: store.scan(ids[-1], 500, until, "bench"),
        "lease of 100 among a million due": lambda store, until: store.lease_outbox(INDEX, lease, 100, "bench", until),
        "record_accesses of 30": lambda store, until: store.record_accesses(access, until),
        "progress over a million due": lambda store, until: store.progress(until),
        "last_position": lambda store, until: store.last_position(until),
    }


async def explain(pool: Pool, scope: Scope, query: tuple[str, Parameters]) -> str:
    """The plan of a statement as it runs; undone afterwards."""
    deadline_s = asyncio.get_running_loop().time() + 120
    async with pool.lend(deadline_s) as connection, connection.transaction(force_rollback=True):
        await pool.enter(connection, scope, deadline_s)
        for _ in range(2):  # the first one warms the cache
            explained = await connection.execute(
                f"EXPLAIN (ANALYZE, BUFFERS, COSTS OFF, SUMMARY ON) {query[0]}", query[1]
            )
            plan = "\n".join(row[0] for row in await explained.fetchall())
        return plan


async def print_plans(options: PostgresOptions, version: str) -> None:
    """Prints each hot query's plan."""
    pool = await Recorder.open(options.dsn, options)
    assert isinstance(pool, Recorder)
    store = await PostgresRecordStore.open(
        options, fields_of=fields_of, clock=SystemClock(), deadline_s=asyncio.get_running_loop().time() + 30
    )
    store._pool, plain = pool, store._pool
    print(f"PostgreSQL {version}, {ROWS:,} memories.\n")
    for name, call in calls().items():
        pool.seen = []
        await call(store, asyncio.get_running_loop().time() + 120)
        scope, queries = pool.seen[-1]
        print(f"### {name}\n\n```\n{await explain(plain, scope, queries[-1])}\n```\n")
    await pool.close()
    store._pool = plain
    await store.close()


def main() -> None:
    """Fills and prints."""
    version = fill(sys.argv[1])
    asyncio.run(print_plans(PostgresOptions(Secret(sys.argv[2])), version))


if __name__ == "__main__":
    main()
