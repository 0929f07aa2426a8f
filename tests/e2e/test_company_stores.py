"""Both planes as processes on PostgreSQL, Redis, Elasticsearch and the Qdrant peer: one load on two data planes."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc
import pytest
from google.longrunning import operations_pb2, operations_pb2_grpc

from memplane.builtin import policies_folder
from memplane.v1 import memory_pb2
from memplane.v1 import memory_service_pb2 as pb
from memplane.v1.memory_service_pb2_grpc import MemoryServiceStub
from tests.deadline import eventually_async
from tests.e2e.commands import memplane
from tests.e2e.company import CompanyStores, configure_postgres_only
from tests.e2e.control_process import ADMIN, ControlProcess
from tests.e2e.customers import NAMESPACE, statement, write
from tests.e2e.data_process import DataProcess, stub_of
from tests.peers.qdrant.process import QdrantPeer
from tests.servers.elasticsearch import ElasticsearchServer
from tests.servers.postgres import PostgresServer
from tests.servers.redis import RedisServer

TIMEOUT_S = 60.0


@pytest.fixture
def company(
    postgres_server: PostgresServer,
    redis_server: RedisServer,
    elasticsearch_server: ElasticsearchServer,
    qdrant_peer: QdrantPeer,
) -> Iterator[CompanyStores]:
    yield CompanyStores(postgres_server, redis_server, elasticsearch_server, qdrant_peer)
    postgres_server.drop("company")


@dataclass
class Company:
    """A control plane and two data planes, with a stub of each."""

    control: ControlProcess
    planes: list[DataProcess]
    stubs: list[MemoryServiceStub]
    channels: list[grpc.aio.Channel]


@asynccontextmanager
async def running(company: CompanyStores, folder: Path) -> AsyncIterator[Company]:
    config = await company.configure(folder, "company")
    async with AsyncExitStack() as stack:
        shutil.copytree(policies_folder("examples/evaluation"), folder / "policies")
        control = ControlProcess(folder / "control", folder / "policies")
        await control.start()
        stack.push_async_callback(control.kill)
        planes = [
            DataProcess(
                folder / f"data-{number}",
                control.address,
                control.data_dir / "signing_key.pub",
                ("--config", str(config), "--node-id", f"data-{number}"),
            )
            for number in (1, 2)
        ]
        for plane in planes:
            await plane.start(60)
            stack.push_async_callback(plane.kill)
            await plane.wait_ready()
        channels = [await stack.enter_async_context(plane.channel()) for plane in planes]
        yield Company(control, planes, [stub_of(channel) for channel in channels], channels)


async def search(stub: MemoryServiceStub, query: str, **fields: object) -> pb.SearchMemoriesResponse:
    request = pb.SearchMemoriesRequest(namespace=NAMESPACE, query=query, top_k=5, **fields)  # type: ignore[arg-type]
    return await stub.SearchMemories(request, metadata=ADMIN, timeout=TIMEOUT_S)


@pytest.mark.slow
async def test_two_data_planes_serve_one_load_and_nothing_acknowledged_is_lost(
    company: CompanyStores, tmp_path: Path
) -> None:
    async with running(company, tmp_path) as both:
        await _each_sees_what_the_other_wrote(both)
        await _queued_writes_are_applied_once(both)
        await _what_one_forgets_the_other_does_not_find(both)
        await _the_fleet_tells_every_backend(both, tmp_path)
        await _a_killed_data_plane_loses_nothing(both)


async def _each_sees_what_the_other_wrote(both: Company) -> None:
    answers = await asyncio.gather(*(write(both.stubs[number % 2], number, TIMEOUT_S) for number in range(40)))
    assert len({answer.memory.id for answer in answers}) == 40
    for number, answer in enumerate(answers):
        other = both.stubs[(number + 1) % 2]
        found = await search(other, f"X-{1000 + number}", at_least_as_fresh=answer.consistency_token)
        assert found.hits[0].memory.id == answer.memory.id
        assert not found.degraded
    again = await asyncio.gather(*(write(both.stubs[(number + 1) % 2], number, TIMEOUT_S) for number in range(40)))
    assert [each.memory.id for each in again] == [each.memory.id for each in answers]


async def _queued_writes_are_applied_once(both: Company) -> None:
    async def enqueue(number: int) -> str:
        request = pb.WriteMemoryRequest(
            namespace=NAMESPACE,
            content=statement(number),
            session_id="s",
            request_id=f"request-{number}",
            delivery=pb.DELIVERY_QUEUED,
        )
        answer = await both.stubs[number % 2].WriteMemory(request, metadata=ADMIN, timeout=TIMEOUT_S)
        assert answer.decision.action == memory_pb2.DECISION_ACTION_QUEUED
        return answer.operation.name

    names = await asyncio.gather(*(enqueue(number) for number in range(100, 140)))
    assert await asyncio.gather(*(enqueue(number) for number in range(100, 140))) == names
    ids = set()
    for number, name in enumerate(names, start=100):
        operations = operations_pb2_grpc.OperationsStub(both.channels[(number + 1) % 2])
        wait = operations_pb2.WaitOperationRequest(name=name)
        done = await operations.WaitOperation(wait, metadata=ADMIN, timeout=TIMEOUT_S)
        assert done.done, done
        result = pb.WriteMemoryResponse()
        done.response.Unpack(result)
        ids.add(result.memory.id)
        found = await search(both.stubs[number % 2], f"X-{1000 + number}", at_least_as_fresh=result.consistency_token)
        assert found.hits[0].memory.id == result.memory.id
    assert len(ids) == 40


async def _what_one_forgets_the_other_does_not_find(both: Company) -> None:
    for number, mode in ((3, pb.FORGET_MODE_SOFT), (4, pb.FORGET_MODE_HARD)):
        query = f"X-{1000 + number}"
        found = (await search(both.stubs[1], query)).hits[0].memory  # may be kept in the cache from here on
        forget = pb.ForgetMemoryRequest(namespace=NAMESPACE, id=found.id, mode=mode)
        await both.stubs[0].ForgetMemory(forget, metadata=ADMIN, timeout=TIMEOUT_S)
        for stub in both.stubs:
            assert found.id not in [hit.memory.id for hit in (await search(stub, query)).hits]


async def _the_fleet_tells_every_backend(both: Company, folder: Path) -> None:
    async def told() -> set[tuple[str, str, bool]]:
        statuses = (await both.control.statuses()).values()
        return {
            (each.backend, each.server.partition(" ")[0], each.healthy)
            for status in statuses
            for each in status.report.backends
        }

    wanted = {
        ("record_store", "PostgreSQL", True),
        ("vector_index", "Qdrant", True),
        ("text_index", "Elasticsearch", True),
        ("cache", "Redis", True),
        ("queue", "Redis", True),
    }
    await eventually_async(told, lambda seen: wanted <= seen, 30)
    where = {"MEMPLANE_CONTROL": both.control.address, "MEMPLANE_TARGET": both.planes[0].address}
    doctor = await memplane("doctor", "--json", cwd=folder, env={**where, "MEMPLANE_API_KEY": "mpk_admin-key"})
    assert doctor.json, doctor.stderr


async def _a_killed_data_plane_loses_nothing(both: Company) -> None:
    acknowledged: list[int] = []

    async def writer(numbers: range) -> None:
        for number in numbers:
            try:
                await write(both.stubs[number % 2], number, TIMEOUT_S)
            except grpc.aio.AioRpcError as error:
                if error.code() not in {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED}:
                    raise
            else:
                acknowledged.append(number)

    writers = asyncio.gather(*(writer(range(start, 600, 8)) for start in range(200, 208)))
    await eventually_async(lambda: asyncio.sleep(0, len(acknowledged)), lambda seen: seen >= 100, 60)
    await both.planes[1].kill()
    await writers
    assert any(number % 2 for number in acknowledged)
    for number in acknowledged:
        found = await search(both.stubs[0], f"X-{1000 + number}")
        assert [hit.memory.content for hit in found.hits if hit.memory.content == statement(number)], number


@pytest.mark.slow
async def test_the_demo_holds_on_the_stores_of_a_company(company: CompanyStores, tmp_path: Path) -> None:
    config = await company.configure(tmp_path, "company")
    finished = await memplane("demo", "--config", str(config), "--json", cwd=tmp_path)
    assert finished.code == 0, finished.stdout + finished.stderr
    summary = {row["what"]: row["detail"] for row in finished.json["summary"]}
    assert summary["answers found"] == "14/14"


@pytest.mark.slow
async def test_the_demo_holds_on_postgresql_alone(postgres_server: PostgresServer, tmp_path: Path) -> None:
    config = await configure_postgres_only(postgres_server, tmp_path, "postgres_alone")
    finished = await memplane("demo", "--config", str(config), "--json", cwd=tmp_path)
    assert finished.code == 0, finished.stdout + finished.stderr
    summary = {row["what"]: row["detail"] for row in finished.json["summary"]}
    assert summary["answers found"] == "14/14"
    postgres_server.drop("postgres_alone")
