"""`python -m bench.servers`: one SearchMemories path behind three gRPC servers, for docs/adr/0003-aio-or-threads.md.

Each server is a process of its own over the same embedded stores; the client is this process. Rounds alternate.
"""

import asyncio
import json
import platform
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from statistics import median
from typing import Any

import grpc
import uvloop

from bench.corpus import NAMESPACE, Corpus, corpus
from dataplane.adapters.edge.text import EdgeTextIndex
from dataplane.adapters.edge.vector import EdgeVectorIndex
from dataplane.adapters.inmemory.embedder import HashEmbedder
from dataplane.adapters.inprocess_cache import InProcessCache
from dataplane.adapters.sqlite.connection import SqliteOptions
from dataplane.adapters.sqlite.store import SqliteRecordStore
from dataplane.codec import fields_of
from dataplane.logic.tokens import TOKENIZER
from dataplane.pipelines.spaces import Spaces, VectorSpace
from dataplane.server.callers import Callers
from dataplane.server.memory_service import MemoryService
from dataplane.stores import Stores
from dataplane.wiring import Surroundings, wire
from memplane.authentication.authenticator import Authenticator
from memplane.authentication.steady_clock import SteadyClock
from memplane.policy.access import AccessIndex, hash_api_key
from memplane.policy.effective import EffectivePolicies
from memplane.policy.model import PolicySet
from memplane.policy.snapshot import PolicySnapshot
from memplane.process import SystemClock
from memplane.v1 import memory_service_pb2 as pb
from memplane.v1.memory_service_pb2_grpc import MemoryServiceStub, add_MemoryServiceServicer_to_server

MODES = ("aio on uvloop", "aio on asyncio", "threads before one loop")
IN_FLIGHT = (1, 16)
ROUNDS = 5
MEMORIES = 2_000
CALLS = 400
CACHE_BYTES = 64 * 1024 * 1024
KEY = "mpk_00000000_key-of-the-benchmark"
METADATA = (("authorization", f"Bearer {KEY}"),)


async def open_service(folder: Path, stack: AsyncExitStack) -> tuple[MemoryService, Stores]:
    """The service over the embedded stores, with a policy that keeps everything."""
    embedder = HashEmbedder()
    records = await SqliteRecordStore.open(folder / "records.sqlite3", options=SqliteOptions(), fields_of=fields_of)
    stack.push_async_callback(records.close)
    vectors = EdgeVectorIndex.open(folder / "vectors", embedder.dimension, embedder.model)
    texts = EdgeTextIndex.open(folder / "texts", TOKENIZER)
    cache = InProcessCache(CACHE_BYTES, asyncio.get_running_loop().time)
    stores = Stores(records, Spaces([VectorSpace(embedder, vectors, None)]), texts, cache)
    policy = PolicySet.model_validate_json(
        '{"write_policy": {"threshold": 0, "short_term_threshold": 0, "dedup": false}}'
    )
    snapshot = PolicySnapshot("v", 1, 0, EffectivePolicies(policy), AccessIndex(None, hash_api_key(KEY)))
    wired = wire(stores, Surroundings(lambda: snapshot, SystemClock(), "bench"))
    await wired.start(paused=False)
    stack.push_async_callback(wired.stop)
    callers = Callers(lambda: snapshot, Authenticator(SteadyClock(SystemClock(), time.monotonic)))
    return MemoryService(wired.pipelines, callers, SystemClock(), lambda: embedder.dimension), stores


async def serve_aio(folder: Path, ready: Callable[[int], None]) -> None:
    """Serves on the running loop."""
    async with AsyncExitStack() as stack:
        service, _ = await open_service(folder, stack)
        server = grpc.aio.server()
        add_MemoryServiceServicer_to_server(service, server)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        ready(port)
        await server.wait_for_termination()


async def serve_threads(folder: Path, ready: Callable[[int], None]) -> None:
    """Serves in 16 threads that hand every call to the running loop and wait."""
    async with AsyncExitStack() as stack:
        service, _ = await open_service(folder, stack)
        loop = asyncio.get_running_loop()
        server = grpc.server(ThreadPoolExecutor(16))
        add_MemoryServiceServicer_to_server(_Bridge(service, loop), server)  # type: ignore[arg-type]  # sync face
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        ready(port)
        await asyncio.Event().wait()


class _Bridge:
    """The service as sync handlers."""

    def __init__(self, service: MemoryService, loop: asyncio.AbstractEventLoop):
        self._service = service
        self._loop = loop

    def __getattr__(self, method: str) -> Callable[[Any, Any], Any]:
        behaviour: Callable[[Any, Any], Awaitable[Any]] = getattr(self._service, method)

        def handle(request: Any, context: Any) -> Any:
            return asyncio.run_coroutine_threadsafe(behaviour(request, context), self._loop).result()  # type: ignore[arg-type]

        return handle


def child(mode: str, folder: str) -> None:
    """Runs one server until it is killed; its first line of output is its port."""

    def ready(port: int) -> None:
        sys.stdout.write(json.dumps({"port": port}) + "\n")
        sys.stdout.flush()

    serve = serve_threads if mode.startswith("threads") else serve_aio
    run = asyncio.run if mode == "aio on asyncio" else uvloop.run
    run(serve(Path(folder), ready))


async def fill(stub: Any, made: Corpus) -> None:
    """Writes the corpus."""
    for start in range(0, MEMORIES, 500):
        requests = [
            pb.WriteMemoryRequest(namespace=NAMESPACE, session_id="s", content=text)
            for text in made.texts[start : start + 500]
        ]
        await stub.BatchWriteMemories(pb.BatchWriteMemoriesRequest(requests=requests), metadata=METADATA)


async def rate(stub: Any, questions: tuple[str, ...], in_flight: int) -> float:
    """Searches a second with so many in flight."""
    waiting = iter([questions[number % len(questions)] for number in range(CALLS)])

    async def caller() -> None:
        for question in waiting:
            request = pb.SearchMemoriesRequest(namespace=NAMESPACE, query=question, record_access=False)
            await stub.SearchMemories(request, metadata=METADATA)

    begun = time.perf_counter()
    await asyncio.gather(*(caller() for _ in range(in_flight)))
    return CALLS / (time.perf_counter() - begun)


async def main() -> None:
    """Starts the three servers, alternates rounds, prints a table."""
    made = corpus(MEMORIES, 50, 8)
    async with AsyncExitStack() as stack:
        stubs = {mode: await _start(mode, stack) for mode in MODES}
        for stub in stubs.values():
            await fill(stub, made)
            await rate(stub, made.questions, 4)
        seen: dict[tuple[str, int], list[float]] = {}
        for _ in range(ROUNDS):
            for mode, stub in stubs.items():
                for in_flight in IN_FLIGHT:
                    seen.setdefault((mode, in_flight), []).append(await rate(stub, made.questions, in_flight))
    print(f"SearchMemories a second, {MEMORIES} memories, cached embedding, median of {ROUNDS} rounds, ", end="")
    print(f"{platform.machine()}, Python {platform.python_version()}\n")
    print("| server | " + " | ".join(f"{number} in flight" for number in IN_FLIGHT) + " |\n|---|---|---|")
    for mode in MODES:
        print(f"| {mode} | " + " | ".join(f"{median(seen[mode, number]):.0f}" for number in IN_FLIGHT) + " |")


async def _start(mode: str, stack: AsyncExitStack) -> Any:
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.servers", mode, folder, stdout=asyncio.subprocess.PIPE
    )

    async def end() -> None:
        process.kill()
        await process.wait()

    stack.push_async_callback(end)
    assert process.stdout is not None
    port = json.loads(await process.stdout.readline())["port"]
    channel = await stack.enter_async_context(grpc.aio.insecure_channel(f"127.0.0.1:{port}"))
    return MemoryServiceStub(channel)


if __name__ == "__main__":
    if len(sys.argv) == 3:
        child(*sys.argv[1:])
    else:
        asyncio.run(main())
