"""What clients of a company's stores see while one or several of them cannot be reached. About 25 s."""

import asyncio
from pathlib import Path
from typing import Any

import grpc
import httpx
import pytest

from memplane.v1 import memory_pb2
from memplane.v1 import memory_service_pb2 as pb
from tests.chaos.leftovers import leftovers
from tests.deadline import eventually_async
from tests.e2e.company import CompanyStores
from tests.integration.company_planes import NAMES, company_planes
from tests.integration.harness import Plane, as_user, contents, search, write
from tests.peers.qdrant.process import QdrantPeer
from tests.servers.elasticsearch import ElasticsearchServer
from tests.servers.postgres import PostgresServer
from tests.servers.redis import RedisServer

MERGED = memory_pb2.DECISION_ACTION_MERGED
CHINESE = "我们最近配置的rerank精排模型是bge"
ERASED = "mk-77-01-000001"
"""A word that nothing else in the stores holds."""

PATHS: dict[tuple[str, ...], set[str]] = {
    (): set(),
    ("qdrant",): {"vector_index"},
    ("elasticsearch",): {"text_index"},
    ("qdrant", "elasticsearch"): {"vector_index", "text_index"},
    ("redis",): set(),
    ("postgres",): {"record_store"},
    ("postgres", "qdrant"): {"record_store", "vector_index"},
    ("postgres", "elasticsearch"): {"record_store", "text_index"},
}
"""Which servers are down, and what a search says was missing."""


@pytest.fixture
def company(
    postgres_server: PostgresServer,
    redis_server: RedisServer,
    elasticsearch_server: ElasticsearchServer,
    qdrant_peer: QdrantPeer,
) -> CompanyStores:
    return CompanyStores(postgres_server, redis_server, elasticsearch_server, qdrant_peer)


async def delivered(plane: Plane) -> None:
    """Waits until both indexes have everything."""
    in_s = asyncio.get_running_loop().time() + 30

    async def due() -> int:
        return sum(each.due_count for each in await plane.stores.records.progress(in_s))

    await eventually_async(due, (0).__eq__, 30)


async def code_of(call: Any) -> grpc.StatusCode:
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await call
    return failed.value.code()


async def fifty_identical(planes: list[Plane], content: str) -> list[pb.WriteMemoryResponse]:
    return await asyncio.gather(*(write(planes[number % 2], content) for number in range(50)))


async def test_50_identical_writes_at_once_are_one_memory_also_without_redis(
    company: CompanyStores, tmp_path: Path
) -> None:
    async with company_planes(company, tmp_path, "identical", 2) as system:
        for content, down in (("My manager is Dana", ()), ("My deputy is Ole", ("redis",))):
            await system.cut_off(*down)
            answers = await fifty_identical(list(system.planes), content)
            assert len({answer.memory.id for answer in answers}) == 1
            assert [answer.decision.action for answer in answers].count(MERGED) == 49
        listed = pb.ListMemoriesRequest(namespace="dept.sales")
        for plane in system.planes:
            found = await plane.stub.ListMemories(listed, metadata=as_user())
            assert sorted(memory.content for memory in found.memories) == ["My deputy is Ole", "My manager is Dana"]


async def test_every_path_gives_fifty_hits_and_says_what_was_missing(company: CompanyStores, tmp_path: Path) -> None:
    async with company_planes(company, tmp_path, "paths") as system:
        (plane,) = system.planes
        given: dict[str, Any] = {"namespace": "dept.sales", "session_id": "s"}
        items = [pb.WriteMemoryRequest(content=f"Parcel number {number} arrived", **given) for number in range(200)]
        written = await plane.stub.BatchWriteMemories(pb.BatchWriteMemoriesRequest(requests=items), metadata=as_user())
        assert len({result.response.memory.id for result in written.results}) == 200
        await delivered(plane)
        for number, (down, missing) in enumerate(PATHS.items()):
            await system.cut_off(*down)
            found = await search(plane, f"which parcel arrived on day {number}", top_k=50, record_access=False)
            assert (len(found.hits), {note.backend for note in found.degraded}) == (50, missing), (down, found.degraded)
            await system.mend()


async def test_chinese_words_are_found_by_elasticsearch_alone(company: CompanyStores, tmp_path: Path) -> None:
    async with company_planes(company, tmp_path, "chinese") as system:
        (plane,) = system.planes
        await write(plane, CHINESE)
        await write(plane, "今天食堂的红烧肉很好吃")
        await delivered(plane)
        await system.cut_off("qdrant")
        for query in ("精排", "精排模型", "rerank"):
            found = await search(plane, query)
            assert [note.backend for note in found.degraded] == ["vector_index"]
            best, *others = found.hits
            assert (best.memory.content, best.signals.text) == (CHINESE, 1.0)
            assert all(other.signals.text == 0.0 for other in others), "what is recent, and not by its words"


async def test_without_redis_writes_commit_and_a_forget_tells_what_it_owes(
    company: CompanyStores, tmp_path: Path
) -> None:
    async with company_planes(company, tmp_path, "redisless") as system:
        (plane,) = system.planes
        ladder = (await write(plane, "The ladder is behind the shed")).memory
        await system.cut_off("redis")
        torch = await write(plane, "The torch is in the hall")
        assert (bool(torch.memory.id), list(torch.degraded)) == (True, [])
        queued = write(plane, "The axe is in the cellar", delivery=pb.DELIVERY_QUEUED)
        assert await code_of(queued) is grpc.StatusCode.UNAVAILABLE
        forget = pb.ForgetMemoryRequest(namespace="dept.sales", id=ladder.id, request_id="once")

        async def pending() -> list[str]:
            return list((await plane.stub.ForgetMemory(forget, metadata=as_user())).pending_backends)

        assert "cache" in await pending()
        assert contents(await search(plane, "ladder torch")) == ["The torch is in the hall"]
        await system.mend()
        await eventually_async(pending, [].__eq__, 10)


async def test_an_outage_of_everything_is_no_empty_answer_and_is_over_by_itself(
    company: CompanyStores, tmp_path: Path
) -> None:
    async with company_planes(company, tmp_path, "everything") as system:
        (plane,) = system.planes
        await write(plane, "The ladder is behind the shed")
        await delivered(plane)
        await system.cut_off("postgres")
        queued = await write(plane, "The spare fuses are in drawer three")
        assert queued.decision.action == memory_pb2.DECISION_ACTION_QUEUED
        assert [note.backend for note in queued.degraded] == ["record_store"]
        await system.cut_off("qdrant", "elasticsearch")
        assert (await write(plane, "The torch is in the hall")).decision.action == memory_pb2.DECISION_ACTION_QUEUED
        assert await code_of(search(plane, "ladder")) is grpc.StatusCode.UNAVAILABLE
        await system.cut_off(*NAMES)
        for call in (search(plane, "ladder"), search(plane, "anything", "dept.empty"), write(plane, "Lost words")):
            assert await code_of(call) is grpc.StatusCode.UNAVAILABLE
        await system.mend()
        assert contents(await search(plane, "where is the ladder"))[0] == "The ladder is behind the shed"

        async def fuses() -> list[str]:
            return contents(await search(plane, "where are the spare fuses"))

        await eventually_async(fuses, lambda found: "The spare fuses are in drawer three" in found, 20)


async def test_what_is_forgotten_while_elasticsearch_is_away_leaves_no_trace_once_it_is_back(
    company: CompanyStores, tmp_path: Path
) -> None:
    async with company_planes(company, tmp_path, "deletes") as system:
        (plane,) = system.planes
        secret = f"The word of the day is {ERASED}"
        memory = (await write(plane, secret, tags=[ERASED], metadata={"note": ERASED})).memory
        kept = (await write(plane, "The canteen opens at noon")).memory
        await delivered(plane)
        assert contents(await search(plane, secret))[0] == secret
        assert await _in_elasticsearch(company, [memory.id, kept.id]) == [memory.id, kept.id]
        await system.cut_off("elasticsearch")
        forget = pb.ForgetMemoryRequest(namespace="dept.sales", id=memory.id, mode=pb.FORGET_MODE_HARD)
        receipt = await plane.stub.ForgetMemory(forget, metadata=as_user())
        assert "text_index" in receipt.pending_backends
        assert contents(await search(plane, secret)) == ["The canteen opens at noon"]
        assert await _in_elasticsearch(company, [memory.id, kept.id]) == [memory.id, kept.id]
        await system.cut_off("postgres")
        found = await search(plane, f"what is {ERASED}")
        assert memory.id not in [hit.memory.id for hit in found.hits]
        await system.mend()
        await delivered(plane)
        assert await _in_elasticsearch(company, [memory.id, kept.id]) == [kept.id]
        assert await leftovers(system.places, [ERASED]) == ()
        assert contents(await search(plane, secret)) == ["The canteen opens at noon"]


async def _in_elasticsearch(company: CompanyStores, memory_ids: list[str]) -> list[str]:
    """Which of the memories Elasticsearch holds, asked past the proxy."""
    async with httpx.AsyncClient(base_url=company.elasticsearch.url, timeout=30) as client:
        await client.post("/_refresh")
        found = (await client.get("/deletes-text-*/_search", params={"size": 100})).text
    return [memory_id for memory_id in memory_ids if memory_id in found]
