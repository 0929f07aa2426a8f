"""Answers from the cache in Redis, with two data planes over one record store."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest

from dataplane.adapters.inmemory.embedder import HashEmbedder
from dataplane.adapters.inmemory.record_store import InMemoryRecordStore
from dataplane.adapters.inmemory.text_index import InMemoryTextIndex
from dataplane.adapters.inmemory.vector_index import InMemoryVectorIndex
from dataplane.adapters.redis.cache import RedisCache
from dataplane.adapters.redis.connection import RedisConnection
from dataplane.adapters.redis.counters import RedisAccessCounters
from dataplane.adapters.redis.options import RedisCacheOptions, RedisOptions
from dataplane.codec import fields_of
from dataplane.model import Candidate
from memplane.process import SystemClock
from memplane.v1 import memory_service_pb2 as pb
from tests.deadline import eventually_async
from tests.integration.harness import Plane, as_user, contents, running_plane, search, write
from tests.servers.redis import RedisServer

QUESTION = "where is the pump?"
NAMESPACE = "dept.sales"


async def forget(plane: Plane, memory_id: str, mode: Any = pb.FORGET_MODE_SOFT) -> pb.ForgetMemoryResponse:
    """Forgets as the administrator."""
    request = pb.ForgetMemoryRequest(namespace=NAMESPACE, id=memory_id, mode=mode)
    stub: Any = plane.stub
    response: pb.ForgetMemoryResponse = await stub.ForgetMemory(request, metadata=as_user())
    return response


class CountingVectors(InMemoryVectorIndex):
    """A vector index that counts how often it is asked."""

    def __init__(self) -> None:
        embedder = HashEmbedder()
        super().__init__(embedder.dimension, embedder.model)
        self.asked = 0

    async def search(self, *arguments: Any, **named: Any) -> list[Candidate]:
        self.asked += 1
        return await super().search(*arguments, **named)


class Planes:
    def __init__(self, one: Plane, two: Plane, vectors: CountingVectors) -> None:
        self.one = one
        self.two = two
        self.vectors = vectors

    async def ask(self, **fields: Any) -> list[list[str]]:
        """What each plane answers."""
        return [contents(await search(plane, QUESTION, **fields)) for plane in (self.one, self.two)]

    async def asked_by(self, *calls: Any) -> int:
        """How often the index was asked for what is awaited."""
        before = self.vectors.asked
        for call in calls:
            await call
        return self.vectors.asked - before


@pytest.fixture
def own_redis() -> Iterator[RedisServer]:
    server = RedisServer.create()
    yield server
    server.close()


@asynccontextmanager
async def two_planes(server: RedisServer, *, is_full: bool = False) -> AsyncIterator[Planes]:
    """Two data planes over one record store and one Redis; `is_full`: with rows and access counts in Redis, too."""
    vectors = CountingVectors()
    shared: dict[str, Any] = {
        "records": InMemoryRecordStore(fields_of),
        "vectors": vectors,
        "texts": InMemoryTextIndex(),
    }
    async with AsyncExitStack() as stack:
        planes = []
        for _ in range(2):
            deadline_s = asyncio.get_running_loop().time() + 10
            options = RedisCacheOptions(timeout_s=1)
            cache = await RedisCache.open(RedisOptions(addresses=(server.address,)), options, SystemClock(), deadline_s)
            stack.push_async_callback(cache.close)
            if is_full:
                counters = RedisAccessCounters(RedisConnection(RedisOptions(addresses=(server.address,)), "cache"))
                shared |= {"hot_memories": True, "counters": counters}
            planes.append(await stack.enter_async_context(running_plane(cache=cache, **shared)))
        yield Planes(planes[0], planes[1], vectors)


@pytest.fixture(params=["answers", "answers, rows and counts"])
async def planes(redis_server: RedisServer, request: pytest.FixtureRequest) -> AsyncIterator[Planes]:
    redis_server.call("FLUSHALL")
    async with two_planes(redis_server, is_full=request.param != "answers") as made:
        await write(made.one, "The pump is in hall one")
        yield made


async def test_a_repeated_question_is_answered_from_the_cache_by_every_plane(planes: Planes) -> None:
    found = await search(planes.one, QUESTION)
    again = await planes.asked_by(search(planes.one, QUESTION), search(planes.two, QUESTION))
    assert again == 0
    repeated = await search(planes.two, QUESTION)
    assert contents(repeated) == contents(found) == ["The pump is in hall one"]
    assert [hit.score for hit in repeated.hits] == [hit.score for hit in found.hits]
    assert repeated.search_id != found.search_id
    assert repeated.consistency_token == found.consistency_token


async def test_what_the_answer_depends_on_is_asked_anew(planes: Planes) -> None:
    await search(planes.one, QUESTION)
    others = [
        search(planes.one, QUESTION, top_k=3),
        search(planes.one, QUESTION, subject_id="ann"),
        search(planes.one, QUESTION, context_turns=["the red one"]),
        search(planes.one, "where is the press?"),
        search(planes.one, QUESTION, include_shared=True),
    ]
    assert await planes.asked_by(*others) == len(others)
    assert await planes.asked_by(search(planes.one, QUESTION, explain=True, record_access=False)) == 0


@pytest.mark.parametrize("change", ["write", "update", "soft", "hard"])
async def test_a_change_by_one_plane_is_in_the_next_answer_of_the_other(planes: Planes, change: str) -> None:
    first = await search(planes.one, QUESTION)
    await planes.ask()
    changed = first.hits[0].memory
    if change == "write":
        await write(planes.two, "The pump was moved to hall two", kind="KIND_EPISODE")
        assert all(len(answer) == 2 for answer in await planes.ask())
        return
    if change == "update":
        changed.content = "The pump is in hall nine"
        request = pb.UpdateMemoryRequest(memory=changed)
        request.update_mask.paths.append("content")
        stub: Any = planes.two.stub
        await stub.UpdateMemory(request, metadata=as_user())
        assert await planes.ask() == [["The pump is in hall nine"]] * 2
        return
    mode = pb.FORGET_MODE_SOFT if change == "soft" else pb.FORGET_MODE_HARD
    await forget(planes.two, changed.id, mode)
    assert await planes.ask() == [[], []]


async def test_a_change_elsewhere_leaves_the_answer_cached(planes: Planes) -> None:
    await search(planes.one, QUESTION)
    await write(planes.two, "The press is in hall two", namespace="dept.hr")
    assert await planes.asked_by(search(planes.one, QUESTION)) == 0


async def test_a_token_above_the_cached_position_is_honoured(planes: Planes) -> None:
    await search(planes.one, QUESTION)
    elsewhere = await write(planes.two, "The press is in hall two", namespace="dept.hr")
    fresh = search(planes.one, QUESTION, at_least_as_fresh=elsewhere.consistency_token)
    assert await planes.asked_by(fresh) == 1


async def test_a_new_policy_is_obeyed_at_once(planes: Planes) -> None:
    await search(planes.one, QUESTION)
    planes.one.use({"retrieve_policy": {"min_confidence": 1.0}}, generation=2)
    assert contents(await search(planes.one, QUESTION)) == []
    assert contents(await search(planes.two, QUESTION)) == ["The pump is in hall one"]


async def test_a_time_to_live_of_0_turns_it_off(planes: Planes) -> None:
    planes.one.use({"retrieve_policy": {"query_cache_ttl_s": 0}}, generation=2)
    assert await planes.asked_by(search(planes.one, QUESTION), search(planes.one, QUESTION)) == 2


async def test_an_answer_from_the_cache_counts_as_use(planes: Planes) -> None:
    for _ in range(3):
        found = await search(planes.one, QUESTION)
    await search(planes.one, QUESTION, record_access=False)
    await planes.one.recorder.flush()
    request = pb.GetMemoryRequest(namespace=NAMESPACE, id=found.hits[0].memory.id)
    stub: Any = planes.two.stub

    async def count() -> int:
        memory = (await stub.GetMemory(request, metadata=as_user())).memory
        return int(memory.access_count)

    await eventually_async(count, lambda seen: seen == 3)


async def test_redis_killed_flushed_and_started_again_gives_no_error_and_nothing_stale(own_redis: RedisServer) -> None:
    async with two_planes(own_redis) as planes:
        memory = (await write(planes.one, "The pump is in hall one")).memory
        assert await planes.ask() == [["The pump is in hall one"]] * 2
        own_redis.kill()
        assert await planes.ask() == [["The pump is in hall one"]] * 2
        assert "cache" in (await forget(planes.one, memory.id)).pending_backends
        assert await planes.ask() == [[], []]
        own_redis.start()
        await eventually_async(planes.ask, lambda answers: answers == [[], []])
        await write(planes.two, "The pump is gone")
        assert await planes.ask() == [["The pump is gone"]] * 2
        own_redis.call("FLUSHALL")
        assert await planes.ask() == [["The pump is gone"]] * 2


async def test_many_equal_questions_at_once_are_found_once(planes: Planes) -> None:
    questions = [search(planes.one, "what is in hall one?") for _ in range(20)]
    assert await planes.asked_by(asyncio.gather(*questions)) <= 2
