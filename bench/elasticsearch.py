"""`python -m bench.elasticsearch [URL]`: the text index on Elasticsearch against the bare client, as Markdown.

Without a URL it starts the server of the tests. "The same requests" are those of our search, their bodies prepared
beforehand. "Plain BM25" is one `terms`-like query of the engine's own scoring over a second index of the same tokens:
less work, and every namespace's words count in everybody's scores.
"""

import asyncio
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from statistics import median
from typing import Any

from elasticsearch import AsyncElasticsearch

from bench.corpus import NAMESPACE, corpus
from bench.raw import timed
from dataplane.adapters.elasticsearch import text
from dataplane.adapters.elasticsearch.bulk import indexing
from dataplane.adapters.elasticsearch.filters import translate_scope
from dataplane.adapters.elasticsearch.options import ElasticsearchOptions
from dataplane.adapters.elasticsearch.terms import best_matches, holding
from dataplane.adapters.elasticsearch.text import ElasticsearchTextIndex
from dataplane.adapters.inmemory.text_index import InMemoryTextIndex
from dataplane.logic.bm25 import inverse_frequency
from dataplane.logic.tokens import query_tokens, tokens
from dataplane.model import EVERYTHING, IndexEntry, Pool, Scope
from tests.servers.elasticsearch import ElasticsearchServer

SIZES = (10_000, 50_000)
SCOPE = Scope((NAMESPACE,))
ROUNDS = 5
QUESTIONS_A_ROUND = 60
TOP_K = 12
BATCH = 500
TOKENIZER = "bench"
PLAIN = "bench-plain"
SETTINGS: dict[str, Any] = {"number_of_shards": 1, "number_of_replicas": 0, "refresh_interval": "-1"}
MAPPINGS: dict[str, Any] = {
    "properties": {
        "tokens": {"type": "text", "analyzer": "whitespace"},
        "namespace": {"type": "keyword"},
        "memory_id": {"type": "keyword", "index": False},
        "version": {"type": "long", "index": False},
    }
}
Bodies = dict[str, tuple[dict[str, Any], dict[str, Any], dict[str, Any]]]


async def main(url: str) -> None:
    """Measures at each size and prints the table."""
    options = ElasticsearchOptions(hosts=(url,), prefix="bench", replicas=0)
    print("| measure | " + " | ".join(f"{size:,} memories" for size in SIZES) + " |\n|---|" + "---|" * len(SIZES))
    columns = [await measure(url, options, size) for size in SIZES]
    for name in columns[0]:
        print(f"| {name} | " + " | ".join(column[name] for column in columns) + " |")


async def measure(url: str, options: ElasticsearchOptions, size: int) -> dict[str, str]:
    """The figures at one size."""
    made = corpus(size, ROUNDS * QUESTIONS_A_ROUND, 1)
    entries = [
        IndexEntry(f"mem_{number}", 1, NAMESPACE, Pool.PRIVATE, {"kind": "FACT", "create_time": number}, None, words)
        for number, words in enumerate(map(tokens, made.texts))
    ]
    index = await ElasticsearchTextIndex.open(options, TOKENIZER)
    async with AsyncElasticsearch([url], request_timeout=120) as client, closing(index):
        await index.clear(later())
        await client.indices.delete(index=PLAIN, ignore_unavailable=True)
        await client.indices.create(index=PLAIN, settings=SETTINGS, mappings=MAPPINGS)
        figures = await writes(index, client, entries)
        await asyncio.gather(index.flush(later()), client.indices.refresh(index=PLAIN))
        figures |= await searches(index, client, made.questions)
        figures |= await agreement(index, entries, made.questions[:100])
        await client.indices.delete(index=PLAIN)
    return figures


async def writes(
    index: ElasticsearchTextIndex, client: AsyncElasticsearch, entries: Sequence[IndexEntry]
) -> dict[str, str]:
    """Entries a second through us, through the bare client with our documents, and with plain ones."""
    ours, same, plain = [], [], []
    for start in range(0, len(entries), BATCH):
        batch = entries[start : start + BATCH]
        ours.append(await seconds(lambda batch=batch: index.upsert(batch, later())))  # type: ignore[misc]
        ready: list[Any] = [line for entry in batch for line in indexing(entry).lines]
        same.append(await seconds(lambda ready=ready: client.bulk(index=alias(), operations=ready)))  # type: ignore[misc]
        lines = [line for entry in batch for line in plain_lines(entry)]
        plain.append(await seconds(lambda lines=lines: client.bulk(index=PLAIN, operations=lines)))  # type: ignore[misc]
    return {
        f"upserts a second, batches of {BATCH}": f"{BATCH / median(ours):,.0f}",
        "upsert ÷ the same requests by the bare client": f"{median(ours) / median(same):.2f}",
        "upsert ÷ plain documents by the bare client": f"{median(ours) / median(plain):.2f}",
    }


async def searches(
    index: ElasticsearchTextIndex, client: AsyncElasticsearch, questions: Sequence[str]
) -> dict[str, str]:
    """Medians of rounds that alternate."""
    bodies: Bodies = {question: await prepared(client, question) for question in questions}

    async def ours(question: str) -> None:
        await index.search(SCOPE, query_tokens(question), EVERYTHING, TOP_K, later())

    async def same(question: str) -> None:
        counting, search, _ = bodies[question]
        await client.search(index=alias(), routing=NAMESPACE, **counting)
        await client.search(index=alias(), routing=NAMESPACE, **search)

    async def plain(question: str) -> None:
        await client.search(index=PLAIN, routing=NAMESPACE, **bodies[question][2])

    steps = {"ours": ours, "same": same, "plain": plain}
    times: dict[str, list[float]] = {name: [] for name in steps}
    for number in range(ROUNDS):
        some = list(questions[number * QUESTIONS_A_ROUND : (number + 1) * QUESTIONS_A_ROUND])
        for name, step in steps.items():
            await timed(step, some[:10])
            times[name].append(await timed(step, some))
    p50 = {name: median(found) for name, found in times.items()}
    return {
        "search, p50 in ms": f"{p50['ours']:.2f}",
        "search ÷ the same requests by the bare client": f"{p50['ours'] / p50['same']:.2f}",
        "search ÷ plain BM25 by the bare client": f"{p50['ours'] / p50['plain']:.2f}",
    }


async def agreement(
    index: ElasticsearchTextIndex, entries: Sequence[IndexEntry], questions: Sequence[str]
) -> dict[str, str]:
    """How much of the exact score of the reference's best ten our ten have."""
    reference = InMemoryTextIndex()
    await reference.upsert(entries, later())
    shares = []
    for question in questions:
        asked = query_tokens(question)
        exact = await reference.search(SCOPE, asked, EVERYTHING, len(entries), later())
        scores = {candidate.memory_id: candidate.score for candidate in exact}
        found = await index.search(SCOPE, asked, EVERYTHING, 10, later())
        shares.append(sum(scores[each.memory_id] for each in found) / sum(each.score for each in exact[:10]))
    return {"exact scores of our ten ÷ those of the exact ten, least": f"{min(shares):.4f}"}


async def prepared(client: AsyncElasticsearch, question: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """The bodies of our two requests, and that of the plain one."""
    asked = query_tokens(question)
    scope = translate_scope(SCOPE)
    counting: dict[str, Any] = {
        "query": {"bool": {"filter": scope}},
        "size": 0,
        "track_total_hits": True,
        "aggs": {"holding": {"filters": {"filters": [holding(token) for token in asked]}}},
    }
    answer = await client.search(index=alias(), routing=NAMESPACE, **counting)
    counts = [bucket["doc_count"] for bucket in answer["aggregations"]["holding"]["buckets"]]
    memories = answer["hits"]["total"]["value"]
    telling = {token: inverse_frequency(memories, count) for token, count in zip(asked, counts, strict=True)}
    wanted: dict[str, Any] = {"size": TOP_K, "track_total_hits": False, **text.LEAN}
    own: dict[str, Any] = {"bool": {"must": {"match": {"tokens": " ".join(asked)}}, "filter": scope}}
    return counting, {"query": best_matches(telling, asked, scope), **wanted}, {"query": own, **wanted}


def plain_lines(entry: IndexEntry) -> list[dict[str, Any]]:
    """A document as one would index it without us."""
    document = {
        "tokens": " ".join(entry.tokens),
        "namespace": entry.namespace,
        "memory_id": entry.memory_id,
        "version": entry.version,
    }
    return [{"index": {"_id": entry.memory_id, "routing": entry.namespace}}, document]


async def seconds(step: Callable[[], Awaitable[object]]) -> float:
    """How long a step takes."""
    begun = time.perf_counter()
    await step()
    return time.perf_counter() - begun


@asynccontextmanager
async def closing(index: ElasticsearchTextIndex) -> AsyncIterator[None]:
    """Closes the index in the end."""
    try:
        yield
    finally:
        await index.close()


def alias() -> str:
    """The index that ours is."""
    return f"bench-text-{TOKENIZER}"


def later() -> float:
    """A deadline that does not matter here."""
    return asyncio.get_running_loop().time() + 120


if __name__ == "__main__":
    if len(sys.argv) > 1:
        asyncio.run(main(sys.argv[1]))
    else:
        own_server = ElasticsearchServer.create()
        try:
            asyncio.run(main(own_server.url))
        finally:
            own_server.close()
