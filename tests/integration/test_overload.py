"""More calls than a data plane takes on: who is refused, how it is told, and who is served all the same."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest

from dataplane.adapters.inmemory.embedder import HashEmbedder
from dataplane.model import Vector
from memplane.client import MemPlaneClient
from memplane.client.errors import from_call
from memplane.v1 import memory_service_pb2 as pb
from tests.deadline import eventually
from tests.integration.harness import ADMIN_KEY, KEEP_ALL, Plane, as_user, running_plane, search, write

CODE = grpc.StatusCode


class HeldEmbedder(HashEmbedder):
    """Embeds only while `open` is set."""

    def __init__(self) -> None:
        super().__init__()
        self.open = asyncio.Event()
        self.open.set()

    async def embed_queries(self, texts: Sequence[str], deadline_s: float) -> list[Vector]:
        await self.open.wait()
        return await super().embed_queries(texts, deadline_s)

    async def embed_passages(self, texts: Sequence[str], deadline_s: float) -> list[Vector]:
        await self.open.wait()
        return await super().embed_passages(texts, deadline_s)


def policy(**admission: float) -> dict[str, Any]:
    limits = {"concurrency": 1, "waiting": 2, "max_wait_s": 20.0, **admission}
    return {**KEEP_ALL, "degradation_policy": {"admission": limits, "embedder": {"timeout_s": 60.0}}}


@asynccontextmanager
async def busy_plane(**admission: float) -> AsyncIterator[tuple[Plane, HeldEmbedder, asyncio.Task[Any]]]:
    """A plane whose only place for reads is held by a search, until the embedder is opened."""
    embedder = HeldEmbedder()
    async with running_plane(policy=policy(**admission), embedder=embedder) as plane:
        await write(plane, "the pump of line four was repaired", "quiet")
        embedder.open.clear()
        held = asyncio.create_task(search(plane, "the press is shut down", "noisy"))
        await eventually(lambda: plane.line.running_count, lambda count: count == 1)
        yield plane, embedder, held
        embedder.open.set()
        await held


async def stand(plane: Plane, waiting: int, call: Awaitable[Any]) -> asyncio.Task[Any]:
    """The call, once so many wait."""
    task = asyncio.ensure_future(call)
    await eventually(lambda: plane.line.waiting_count, lambda count: count == waiting)
    assert isinstance(task, asyncio.Task)
    return task


async def refusal_of(call: Awaitable[Any]) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as refusal:
        await call
    return refusal.value


async def test_who_is_refused_is_told_when_to_come_again_in_both_ways() -> None:
    async with busy_plane(waiting=0) as (plane, _, _):
        error = await refusal_of(search(plane, "pump", "quiet"))
        assert error.code() is CODE.RESOURCE_EXHAUSTED
        told = from_call(error)
        assert told.reason == "OVERLOADED"
        pushback = dict(error.trailing_metadata() or ())["grpc-retry-pushback-ms"]
        assert told.retry_after_s == int(pushback) / 1000 > 0


async def test_a_full_line_serves_the_quiet_tenant_and_refuses_the_newest_of_the_noisy_one() -> None:
    async with busy_plane() as (plane, embedder, held):
        waits = await stand(plane, 1, search(plane, "press", "noisy.a"))
        surplus = await stand(plane, 2, search(plane, "press", "noisy.b"))
        quiet = asyncio.create_task(search(plane, "pump", "quiet"))
        assert (await refusal_of(surplus)).code() is CODE.RESOURCE_EXHAUSTED
        embedder.open.set()
        await held
        assert (await quiet).hits
        await waits


async def test_a_client_with_the_documented_retry_settings_does_not_see_a_short_overload() -> None:
    async with (
        busy_plane(waiting=0) as (plane, embedder, _),
        MemPlaneClient(plane.address, ADMIN_KEY, 20.0) as client,
    ):
        asking = asyncio.create_task(client.search("quiet", "pump", top_k=3))
        await eventually(lambda: plane.codes, lambda codes: CODE.RESOURCE_EXHAUSTED in codes)
        embedder.open.set()
        assert (await asking).hits


async def test_a_call_that_waits_too_long_is_refused_and_one_whose_deadline_passes_leaves_the_line() -> None:
    async with busy_plane(max_wait_s=0.2) as (plane, _, _):
        assert (await refusal_of(search(plane, "pump", "quiet"))).code() is CODE.RESOURCE_EXHAUSTED
        assert plane.line.waiting_count == 0
        plane.use(policy(), generation=2)
        request = pb.SearchMemoriesRequest(namespace="quiet", query="pump")
        late = await refusal_of(plane.stub.SearchMemories(request, metadata=as_user(), timeout=0.2))
        assert late.code() in (CODE.DEADLINE_EXCEEDED, CODE.RESOURCE_EXHAUSTED)  # whoever's clock is first
        await eventually(lambda: plane.line.waiting_count, lambda count: count == 0)


async def test_a_caller_who_hangs_up_leaves_the_line() -> None:
    async with busy_plane() as (plane, _, _):
        gone = await stand(plane, 1, search(plane, "pump", "quiet"))
        gone.cancel()
        await eventually(lambda: plane.line.waiting_count, lambda count: count == 0)


async def test_an_unknown_key_takes_no_place_in_the_line() -> None:
    async with busy_plane() as (plane, _, _):
        request = pb.SearchMemoriesRequest(namespace="quiet", query="pump")
        unknown = await refusal_of(plane.stub.SearchMemories(request, metadata=as_user("mpk_nobody")))
        assert unknown.code() is CODE.UNAUTHENTICATED
        assert plane.line.waiting_count == 0


async def test_more_places_in_a_new_policy_let_in_who_waits() -> None:
    async with busy_plane() as (plane, _, _):
        listing = pb.ListMemoriesRequest(namespace="quiet")
        waits = await stand(plane, 1, plane.stub.ListMemories(listing, metadata=as_user()))
        plane.use(policy(concurrency=8), generation=2)
        assert (await plane.stub.ListMemories(listing, metadata=as_user())).memories
        assert (await waits).memories


async def test_a_batch_lets_others_go_first_between_its_parts() -> None:
    async with running_plane(policy=policy(waiting=100)) as plane:
        drafts = [
            pb.WriteMemoryRequest(namespace="noisy", session_id="s", content=f"pump {number} was repaired")
            for number in range(200)
        ]
        batch = asyncio.ensure_future(
            plane.stub.BatchWriteMemories(pb.BatchWriteMemoriesRequest(requests=drafts), metadata=as_user())
        )
        await eventually(lambda: plane.write_line.running_count, lambda count: count == 1)
        await write(plane, "the oven was cleaned", "quiet")
        assert not batch.done()
        assert all(result.HasField("response") for result in (await batch).results)
        assert plane.write_line.running_count == 0


@pytest.mark.alone
async def test_a_noisy_tenant_in_a_closed_loop_takes_no_calls_from_a_quiet_one() -> None:
    seconds, rate, answered = 3.0, 10, 0
    async with running_plane(policy=policy(concurrency=4, waiting=4)) as plane:
        await write(plane, "the pump of line four was repaired", "quiet")
        drafts = [
            pb.WriteMemoryRequest(namespace="noisy", session_id="s", content=f"press {number}") for number in range(50)
        ]
        batch = pb.BatchWriteMemoriesRequest(requests=drafts)

        async def noise(number: int) -> None:
            while True:
                try:
                    if number % 4:
                        await search(plane, "press", f"noisy.n{number}")
                    else:
                        await plane.stub.BatchWriteMemories(batch, metadata=as_user())
                except grpc.aio.AioRpcError:
                    await asyncio.sleep(0.1)

        async def quiet() -> None:
            nonlocal answered
            assert (await search(plane, "pump", "quiet")).hits
            answered += 1

        noisy = [asyncio.create_task(noise(number)) for number in range(32)]
        asked = []
        for _ in range(int(seconds * rate)):
            asked.append(asyncio.create_task(quiet()))
            await asyncio.sleep(1 / rate)
        await asyncio.wait(asked, timeout=10.0)
        for task in noisy:
            task.cancel()
        await asyncio.gather(*noisy, return_exceptions=True)
        for task in asked:
            task.cancel()
    assert answered >= 0.8 * seconds * rate
    assert CODE.RESOURCE_EXHAUSTED in plane.codes
