"""PostgreSQL stopped under real data planes: searches go on, nothing forgotten comes back, nobody is restarted."""

import asyncio
import shutil
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import psycopg
import pytest

from memplane.builtin import policies_folder
from memplane.v1 import memory_pb2
from memplane.v1 import memory_service_pb2 as pb
from memplane.v1.memory_service_pb2_grpc import MemoryServiceStub
from tests.deadline import eventually_async
from tests.e2e.company import CompanyStores
from tests.e2e.control_process import ADMIN, ControlProcess
from tests.e2e.customers import NAMESPACE, statement, write
from tests.e2e.data_process import READS, WRITES, DataProcess, stub_of
from tests.peers.qdrant.process import QdrantPeer
from tests.servers.elasticsearch import ElasticsearchServer
from tests.servers.postgres import PostgresServer
from tests.servers.redis import RedisServer

ALIVE = ""
TIMEOUT_S = 10.0
OUTAGE_S = 5.0
"""Longer than anything that looks after health waits."""
PATIENT = "degradation_policy:\n" + "".join(
    f"  {backend}: {{timeout_s: 5.0}}\n" for backend in ("cache", "vector_index", "text_index", "embedder")
)
"""What is there may be slow on a busy machine; what is not is refused at once."""
BACK_WITHIN_S = 5.0
"""It takes less than 2 s where nothing else runs; other tests share the processors."""


@dataclass
class Running:
    """A data plane that only answers (its projector is paused), one that projects, and the stores below them."""

    answering: DataProcess
    projecting: DataProcess
    stub: MemoryServiceStub
    postgres: PostgresServer
    redis: RedisServer


@asynccontextmanager
async def running(company: CompanyStores, folder: Path) -> AsyncIterator[Running]:
    config = await company.configure(folder, "outage")
    async with AsyncExitStack() as stack:
        shutil.copytree(policies_folder("examples/evaluation"), folder / "policies")
        (folder / "policies" / "degradation.yaml").write_text(PATIENT)
        control = ControlProcess(folder / "control", folder / "policies")
        await control.start()
        stack.push_async_callback(control.kill)
        planes = []
        for name, projector in (("projecting", "on"), ("answering", "paused")):
            flags = ("--config", str(config), "--node-id", name, "--projector", projector)
            plane = DataProcess(folder / name, control.address, control.data_dir / "signing_key.pub", flags)
            await plane.start(60)
            stack.push_async_callback(plane.kill)
            await plane.wait_ready()
            planes.append(plane)
        channel = await stack.enter_async_context(planes[1].channel())
        yield Running(planes[1], planes[0], stub_of(channel), company.postgres, company.redis)


async def search(stub: MemoryServiceStub, number: int, words: str = "orders") -> pb.SearchMemoriesResponse:
    request = pb.SearchMemoriesRequest(namespace=NAMESPACE, query=f"{words} X-{1000 + number}", top_k=5)
    return await stub.SearchMemories(request, metadata=ADMIN, timeout=TIMEOUT_S)


def notes(response: pb.SearchMemoriesResponse) -> list[str]:
    return [note.backend for note in response.degraded]


def ids(response: pb.SearchMemoriesResponse) -> list[str]:
    return [hit.memory.id for hit in response.hits]


async def forget(stub: MemoryServiceStub, memory_id: str, mode: pb.ForgetMode.ValueType) -> list[str]:
    request = pb.ForgetMemoryRequest(namespace=NAMESPACE, id=memory_id, mode=mode)
    return list((await stub.ForgetMemory(request, metadata=ADMIN, timeout=TIMEOUT_S)).pending_backends)


@pytest.mark.slow
async def test_searches_go_on_without_postgresql_and_nothing_forgotten_comes_back(
    redis_server: RedisServer, elasticsearch_server: ElasticsearchServer, qdrant_peer: QdrantPeer, tmp_path: Path
) -> None:
    postgres = PostgresServer.create()
    try:
        company = CompanyStores(postgres, redis_server, elasticsearch_server, qdrant_peer)
        async with running(company, tmp_path) as system:
            memory_ids = await _written_and_indexed(system)
            await _forgotten_and_not_projected(system, memory_ids)
            await asyncio.to_thread(postgres.stop)
            await _searches_answer_from_the_indexes(system, memory_ids)
            await _writes_are_queued(system)
            await _without_tombstones_nothing_is_answered(system)
            await asyncio.to_thread(postgres.start)
            await _all_is_well_again(system, memory_ids)
    finally:
        postgres.close()


async def _written_and_indexed(system: Running) -> list[str]:
    answers = await asyncio.gather(*(write(system.stub, number, TIMEOUT_S) for number in range(12)))
    memory_ids = [answer.memory.id for answer in answers]
    assert len(set(memory_ids)) == 12
    await eventually_async(lambda: asyncio.to_thread(_not_applied, system.postgres), lambda rows: rows == 0, 20)
    return memory_ids


def _not_applied(postgres: PostgresServer) -> int:
    with psycopg.connect(postgres.dsn_of("outage")) as connection:
        row = connection.execute("SELECT count(*) FROM memplane.outbox").fetchone()
    assert row is not None
    return int(row[0])


async def _forgotten_and_not_projected(system: Running, memory_ids: list[str]) -> None:
    await system.projecting.kill()
    for number, mode in ((1, pb.FORGET_MODE_SOFT), (2, pb.FORGET_MODE_HARD)):
        pending = await forget(system.stub, memory_ids[number], mode)
        assert {"vector_index", "text_index"} <= set(pending)
        assert "cache" not in pending


async def _searches_answer_from_the_indexes(system: Running, memory_ids: list[str]) -> None:
    now_s = asyncio.get_running_loop().time
    until_s = now_s() + OUTAGE_S
    while now_s() < until_s:
        for number in range(12):
            found = await search(system.stub, number)
            assert notes(found) == ["record_store"]
            assert found.consistency_token == ""
            assert not {memory_ids[1], memory_ids[2]} & set(ids(found))
            if number not in (1, 2):
                assert found.hits[0].memory.id == memory_ids[number]
                assert found.hits[0].memory.content == statement(number)
    assert [await system.answering.serves(name) for name in (ALIVE, READS, WRITES)] == [True, True, True]
    assert system.answering.process is not None
    assert system.answering.process.returncode is None


async def _writes_are_queued(system: Running) -> None:
    written = await write(system.stub, 50, TIMEOUT_S)
    assert written.decision.action == memory_pb2.DECISION_ACTION_QUEUED
    assert [note.backend for note in written.degraded] == ["record_store"]


async def _without_tombstones_nothing_is_answered(system: Running) -> None:
    system.redis.call("DEL", "outage:t")
    for number in range(12):
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await search(system.stub, number, "what became of")
        assert failed.value.code() is grpc.StatusCode.UNAVAILABLE
    await eventually_async(lambda: system.answering.serves(READS), lambda serving: not serving)
    assert await system.answering.serves(ALIVE)


async def _all_is_well_again(system: Running, memory_ids: list[str]) -> None:
    now_s = asyncio.get_running_loop().time
    began_s = now_s()

    async def whole(number: int, words: str) -> bool:
        try:
            found = await search(system.stub, number, words)
        except grpc.aio.AioRpcError:
            return False
        assert not {memory_ids[1], memory_ids[2]} & set(ids(found))
        return not found.degraded and found.hits[0].memory.id == memory_ids[number]

    await eventually_async(lambda: whole(3, f"after {now_s()}"), bool)
    assert now_s() - began_s < BACK_WITHIN_S
    for number in (0, *range(4, 12)):
        assert await whole(number, "at last")
    await eventually_async(lambda: system.answering.serves(READS), bool)
    await eventually_async(lambda: search(system.stub, 50, f"queued {now_s()}"), _has_the_queued_one, 20)


def _has_the_queued_one(found: pb.SearchMemoriesResponse) -> bool:
    return statement(50) in [hit.memory.content for hit in found.hits]
