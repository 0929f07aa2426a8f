"""Texts a second through EndpointEmbedder, beside a bare httpx loop over the same server.

    .venv/bin/python -m bench.embedder [DIMENSION]

The server runs in a process of its own and answers at once with one and the same vector, so that what is measured is
the client's side: preparing texts, the call, reading and checking the answer. One request at a time, 32 texts each; the
two take turns, medians are shown.
"""

import asyncio
import json
import multiprocessing
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from multiprocessing.queues import Queue
from statistics import median

import httpx
import numpy as np
from aiohttp import web

from dataplane.adapters.embedder.endpoint import EndpointEmbedder
from dataplane.adapters.embedder.endpoint_options import EndpointOptions
from dataplane.model import Vector

BATCH = 32
TEXTS = [f"the user said in meeting {number} that tea is better than coffee in the morning" for number in range(640)]
Embed = Callable[[Sequence[str]], Awaitable[list[Vector]]]


def serve(dimension: int, port: "Queue[int]") -> None:
    """Serves until the process ends; the port goes to the queue."""
    asyncio.run(_serve(dimension, port))


async def _serve(dimension: int, port: "Queue[int]") -> None:
    numbers = np.random.default_rng(1).normal(size=dimension).astype(np.float32).tolist()
    rows = [{"object": "embedding", "index": index, "embedding": numbers} for index in range(BATCH)]
    answers = {count: json.dumps({"data": rows[:count]}).encode() for count in (1, BATCH)}

    async def answer(request: web.Request) -> web.Response:
        count = len((await request.json())["input"])
        return web.Response(body=answers[count], content_type="application/json")

    app = web.Application()
    app.router.add_post("/v1/embeddings", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    port.put(runner.addresses[0][1])
    await asyncio.Event().wait()


async def measure(url: str, dimension: int) -> None:
    """Prints both rates and their ratio, for many texts and for one."""
    options = EndpointOptions(url, "bench", dimension, batch_size=BATCH, concurrency=1)
    embedder = EndpointEmbedder.open(options)
    deadline_s = asyncio.get_running_loop().time() + 600
    async with httpx.AsyncClient(base_url=f"{url}/", trust_env=False) as client:
        for texts, rounds in ((TEXTS, 11), (TEXTS[:1], 201)):
            seconds = await _alternate(
                (lambda some: _bare(client, some), lambda some: embedder.embed_passages(some, deadline_s)),
                texts,
                rounds,
            )
            bare, ours = (len(texts) / each for each in seconds)
            print(
                f"{dimension} dimensions, {len(texts)} texts: bare {bare:.0f}/s, ours {ours:.0f}/s,"
                f" {1000 * seconds[1]:.2f} ms a call, ratio of times {seconds[1] / seconds[0]:.2f}"
            )
    await embedder.close()


async def _alternate(ways: Sequence[Embed], texts: Sequence[str], rounds: int) -> list[float]:
    """Median seconds of each way; the first round is not counted."""
    seconds: list[list[float]] = [[] for _ in ways]
    for _ in range(rounds):
        for taken, embed in zip(seconds, ways, strict=True):
            start = time.perf_counter()
            await embed(texts)
            taken.append(time.perf_counter() - start)
    return [median(taken[1:]) for taken in seconds]


async def _bare(client: httpx.AsyncClient, texts: Sequence[str]) -> list[Vector]:
    found: list[Vector] = []
    for start in range(0, len(texts), BATCH):
        body = {"model": "bench", "input": list(texts[start : start + BATCH])}
        response = await client.post("embeddings", json=body)
        found += [np.asarray(row["embedding"], dtype=np.float32) for row in response.json()["data"]]
    return found


def main() -> None:
    """Runs the measurement."""
    dimension = int(sys.argv[1]) if len(sys.argv) > 1 else 1024
    port: Queue[int] = multiprocessing.Queue()
    server = multiprocessing.Process(target=serve, args=(dimension, port), daemon=True)
    server.start()
    try:
        asyncio.run(measure(f"http://127.0.0.1:{port.get()}/v1", dimension))
    finally:
        server.terminate()


if __name__ == "__main__":
    main()
