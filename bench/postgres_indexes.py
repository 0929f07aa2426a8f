"""`python -m bench.postgres_indexes`: vector and text index on PostgreSQL alone, as Markdown.

It starts the server of the tests. Vectors are drawn around 200 centres: uniform noise in 384 dimensions has no
neighbours worth the name.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from statistics import median

import numpy as np
import psycopg
from numpy.typing import NDArray

from bench.corpus import NAMESPACE, corpus
from dataplane.adapters.inmemory.text_index import InMemoryTextIndex
from dataplane.adapters.postgres.migrate import migrate
from dataplane.adapters.postgres.options import PostgresOptions
from dataplane.adapters.postgres.text import PostgresTextIndex
from dataplane.adapters.postgres.vector import PostgresVectorIndex
from dataplane.logic.tokens import query_tokens, tokens
from dataplane.model import EVERYTHING, Condition, Filter, IndexEntry, Operator, Pool, Scope
from tests.contract.pgvector import with_pgvector
from tests.postgres import options_for
from tests.servers.postgres import PostgresServer

TEXTS = 100_000
VECTORS = 20_000
DIMENSION = 384
CENTRES = 200
QUESTIONS = 60
BATCH = 500
EF = 64
SCOPE = Scope((NAMESPACE,))
RARE = Condition("sequence", Operator.EQUALS, (7,))
"""One memory in 500 passes."""
Matrix = NDArray[np.float32]


async def main(options: PostgresOptions) -> None:
    """Measures both."""
    print("| measure | figure |\n|---|---|")
    texts = await PostgresTextIndex.open(options, "bench", later())
    vectors = await PostgresVectorIndex.open(options, "bench", DIMENSION, later())
    try:
        await measure_texts(texts, options)
        await measure_vectors(vectors, options)
    finally:
        await texts.close()
        await vectors.close()


async def measure_texts(index: PostgresTextIndex, options: PostgresOptions) -> None:
    """Load, search and agreement of the text index."""
    made = corpus(TEXTS, QUESTIONS, 1)
    entries = [
        IndexEntry(f"mem_{number}", 1, NAMESPACE, Pool.PRIVATE, {"sequence": number % 500}, None, tokens(text))
        for number, text in enumerate(made.texts)
    ]
    print(f"| text upserts a second, batches of {BATCH} | {await load(index.upsert, entries):,.0f} |")
    analyse(options)
    broad = [query_tokens(question) for question in made.questions]
    rare = [query_tokens(f"ticket T-{number * 7:05d}") for number in range(QUESTIONS)]

    async def ask(asked: Sequence[str]) -> list[str]:
        found = await index.search(SCOPE, asked, EVERYTHING, 12, later())
        return [each.memory_id for each in found]

    for name, queries in (("words that 6 to 17 % hold", broad), ("a rare identifier and a common word", rare)):
        times = [await milliseconds(lambda asked=asked: ask(asked)) for asked in queries]  # type: ignore[misc]
        print(f"| text search at {TEXTS:,}, {name}, p50 in ms | {median(times):.1f} |")
    reference = InMemoryTextIndex()
    await reference.upsert(entries, later())
    shares = []
    for asked in broad[:5]:
        exact = await reference.search(SCOPE, asked, EVERYTHING, TEXTS, later())
        scores = {each.memory_id: each.score for each in exact}
        shares.append(sum(scores[each] for each in await ask(asked)) / sum(each.score for each in exact[:12]))
    print(f"| exact scores of our twelve ÷ those of the exact twelve, least | {min(shares):.4f} |")


async def measure_vectors(index: PostgresVectorIndex, options: PostgresOptions) -> None:
    """Load, search and recall of the vector index."""
    dice = np.random.default_rng(11)
    centres = dice.standard_normal((CENTRES, DIMENSION))
    points = unit(centres[dice.integers(CENTRES, size=VECTORS)] + 0.7 * dice.standard_normal((VECTORS, DIMENSION)))
    queries = unit(points[:QUESTIONS] + 0.02 * dice.standard_normal((QUESTIONS, DIMENSION)))
    entries = [
        IndexEntry(f"mem_{number}", 1, NAMESPACE, Pool.PRIVATE, {"sequence": number % 500}, point)
        for number, point in enumerate(points)
    ]
    print(f"| vector upserts a second, batches of {BATCH} | {await load(index.upsert, entries):,.0f} |")
    analyse(options)
    everything = np.arange(VECTORS)
    for name, filter, passing in (("", EVERYTHING, everything), (", 1 in 500 passes", RARE, everything[7::500])):
        recall, p50_ms = await recall_of(index, filter, (points, queries, passing))
        print(f"| vector search at {VECTORS:,}{name}, p50 in ms | {p50_ms:.1f} |")
        print(f"| recall@10 of exact search{name}, ef {EF} | {recall:.3f} |")


async def recall_of(
    index: PostgresVectorIndex, filter: Filter, data: tuple[Matrix, Matrix, NDArray[np.int64]]
) -> tuple[float, float]:
    """Recall of the ten best among the points that pass, and the median time."""
    points, queries, passing = data
    times, right = [], 0
    for query in queries:
        begun = time.perf_counter()
        found = await index.search(SCOPE, query, filter, 10, EF, later())
        times.append((time.perf_counter() - begun) * 1000)
        best = passing[np.argsort(-(points[passing] @ query))[:10]]
        right += len({f"mem_{number}" for number in best} & {each.memory_id for each in found})
    return right / (10 * len(queries)), median(times)


async def load(upsert: Callable[[Sequence[IndexEntry], float], Awaitable[None]], entries: list[IndexEntry]) -> float:
    """Entries a second."""
    begun = time.perf_counter()
    for start in range(0, len(entries), BATCH):
        await upsert(entries[start : start + BATCH], later())
    return len(entries) / (time.perf_counter() - begun)


async def milliseconds(step: Callable[[], Awaitable[object]]) -> float:
    """How long a step takes."""
    begun = time.perf_counter()
    await step()
    return (time.perf_counter() - begun) * 1000


def analyse(options: PostgresOptions) -> None:
    """What autovacuum would do in time."""
    assert options.migrate_dsn
    with psycopg.connect(options.migrate_dsn, autocommit=True) as connection:
        connection.execute("VACUUM ANALYZE")


def unit(rows: NDArray[np.float64]) -> Matrix:
    """Rows of length 1."""
    normed: Matrix = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return normed


def later() -> float:
    """A deadline that does not matter here."""
    return asyncio.get_running_loop().time() + 120


if __name__ == "__main__":
    server = PostgresServer.create({"maintenance_work_mem": "256MB"})
    try:
        made_options = options_for(server.database("bench"))
        migrate(made_options)
        asyncio.run(main(with_pgvector(made_options)))
    finally:
        server.close()
