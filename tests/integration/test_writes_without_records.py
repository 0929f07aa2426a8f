"""Writes of a data plane whose record store, cache or embedder is down, over gRPC. About 5 s."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest

from dataplane.adapters.inmemory.write_queue import InMemoryWriteQueue
from dataplane.adapters.inprocess_cache import InProcessCache
from dataplane.codec import fields_of
from dataplane.errors import BackendUnavailable
from memplane.process import SystemClock
from memplane.v1 import memory_pb2
from memplane.v1 import memory_service_pb2 as pb
from tests.deadline import eventually_async
from tests.integration.harness import CACHE_BYTES, Plane, as_user, running_plane, write
from tests.integration.test_degraded import FaultyEmbedder
from tests.unit.dataplane.pipelines.queue_rig import FlakyStore

QUEUED = memory_pb2.DECISION_ACTION_QUEUED
APPLIED_WITHIN_S = 10.0
"""It is 1 to 2 s on a quiet machine: a probe of the breaker, then a pause of the consumer."""


@pytest.fixture
async def plane() -> AsyncIterator[Plane]:
    async with running_plane(records=FlakyStore(fields_of), queue=InMemoryWriteQueue(SystemClock())) as made:
        yield made


def fall(plane: Plane, *, is_down: bool = True) -> None:
    records: Any = plane.stores.records
    records.is_down = is_down


async def listed(plane: Plane, namespace: str = "dept.sales") -> list[str]:
    request = pb.ListMemoriesRequest(namespace=namespace, page_size=100)
    return sorted(memory.content for memory in (await plane.stub.ListMemories(request, metadata=as_user())).memories)


async def test_a_write_is_queued_and_applied_soon_after_the_record_store_is_back(plane: Plane) -> None:
    before = await write(plane, "The ladder is behind the shed")
    fall(plane)
    for number in range(10):
        answer = await write(plane, f"Order {number} is late")
        assert answer.decision.action == QUEUED
        assert [(note.backend, note.reason) for note in answer.degraded] == [("record_store", "BACKEND_UNAVAILABLE")]
    fall(plane, is_down=False)

    async def all_there() -> int:
        try:
            return len(await listed(plane))
        except grpc.aio.AioRpcError:
            return 0

    await eventually_async(all_there, (11).__eq__, APPLIED_WITHIN_S)
    assert before.memory.content in await listed(plane)


async def test_of_a_batch_each_item_is_queued_or_refused_by_itself(plane: Plane) -> None:
    fall(plane)
    given: dict[str, Any] = {"namespace": "dept.sales", "session_id": "s1"}
    request = pb.BatchWriteMemoriesRequest(
        requests=[
            pb.WriteMemoryRequest(content="One", **given),
            pb.WriteMemoryRequest(content="", **given),
            pb.WriteMemoryRequest(content="Two", validate_only=True, **given),
            pb.WriteMemoryRequest(content="Three", delivery=pb.DELIVERY_QUEUED, **given),
        ]
    )
    response = await plane.stub.BatchWriteMemories(request, metadata=as_user())
    one, empty, trial, three = response.results
    assert (one.response.decision.action, three.response.decision.action) == (QUEUED, QUEUED)
    assert empty.error.code == grpc.StatusCode.INVALID_ARGUMENT.value[0]
    assert trial.error.code == grpc.StatusCode.UNAVAILABLE.value[0]
    assert [note.backend for note in response.degraded] == ["record_store"]


async def test_updates_and_forgets_are_never_queued(plane: Plane) -> None:
    memory = (await write(plane, "The ladder is behind the shed")).memory
    fall(plane)
    forget = pb.ForgetMemoryRequest(namespace="dept.sales", id=memory.id, mode=pb.FORGET_MODE_SOFT)
    update = pb.UpdateMemoryRequest(memory=memory_pb2.Memory(namespace="dept.sales", id=memory.id, content="Gone"))
    update.update_mask.paths.append("content")
    for call in (
        plane.stub.ForgetMemory(forget, metadata=as_user()),
        plane.stub.UpdateMemory(update, metadata=as_user()),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await call
        assert raised.value.code() is grpc.StatusCode.UNAVAILABLE
    assert plane.stores.queue is not None
    assert (await plane.stores.queue.depth(asyncio.get_running_loop().time() + 10)).waiting == 0


class DownCache(InProcessCache):
    """Answers nothing."""

    def __getattribute__(self, name: str) -> Any:
        if name in ("get", "put", "stamp", "drop", "bury", "unbury", "buried", "continuity", "vouch", "is_vouched"):
            return _unavailable
        return super().__getattribute__(name)


async def _unavailable(*_arguments: object, **_named: object) -> None:
    raise BackendUnavailable("cache", "down")


async def test_without_the_cache_writes_go_on() -> None:
    cache = DownCache(CACHE_BYTES, asyncio.get_running_loop().time)
    async with running_plane(cache=cache) as plane:
        answer = await write(plane, "The ladder is behind the shed")
        assert answer.memory.id
        assert await listed(plane) == ["The ladder is behind the shed"]


async def test_without_the_embedder_a_repeat_is_recognised_by_its_content() -> None:
    embedder = FaultyEmbedder()
    async with running_plane(embedder=embedder) as plane:
        embedder.off = True
        first = await write(plane, "The ladder is behind the shed")
        again = await write(plane, "The ladder is behind the shed")
        assert again.decision.action == memory_pb2.DECISION_ACTION_MERGED
        assert again.memory.id == first.memory.id
        assert {note.backend for note in again.degraded} == {"embedder"}
