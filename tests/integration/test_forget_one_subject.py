"""Everything of one subject is forgotten, more than one page of it; what others said stays."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from memplane.v1 import memory_service_pb2 as pb
from tests.integration.harness import KEEP_ALL, Plane, as_user, running_plane, search

NAMESPACE = "dept.sales"
COUNTS = {"u1": 1_200, "u2": 10}
AT_ONCE = 32
KEEP_ALL_APART = {"write_policy": {**KEEP_ALL["write_policy"], "dedup": False}}


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[Plane]:
    async with running_plane(tmp_path, KEEP_ALL_APART) as running:
        requests = [
            pb.WriteMemoryRequest(namespace=NAMESPACE, session_id="s", subject_id=subject, content=content(subject, k))
            for subject, count in COUNTS.items()
            for k in range(count)
        ]
        for start in range(0, len(requests), 1000):
            batch = pb.BatchWriteMemoriesRequest(requests=requests[start : start + 1000])
            written = await running.stub.BatchWriteMemories(batch, metadata=as_user())
            assert all(result.response.memory.id for result in written.results)
        yield running


def content(subject: str, number: int) -> str:
    return f"Parcel {number} of {subject} weighs {number * 17} grams"


async def listed(plane: Plane, subject: str) -> list[str]:
    """Ids of all active memories about a subject, page by page."""
    request = pb.ListMemoriesRequest(namespace=NAMESPACE, subject_id=subject, page_size=1000)
    found: list[str] = []
    while True:
        page = await plane.stub.ListMemories(request, metadata=as_user())
        found += [memory.id for memory in page.memories]
        if not page.next_page_token:
            return found
        request.page_token = page.next_page_token


@pytest.mark.slow
async def test_1200_memories_of_one_subject_go_and_ten_of_another_stay(plane: Plane) -> None:
    doomed, kept = await listed(plane, "u1"), await listed(plane, "u2")
    assert (len(doomed), len(kept)) == (COUNTS["u1"], COUNTS["u2"])
    waiting = list(doomed)

    async def forget() -> None:
        while waiting:
            request = pb.ForgetMemoryRequest(namespace=NAMESPACE, id=waiting.pop())
            await plane.stub.ForgetMemory(request, metadata=as_user())

    await asyncio.gather(*(forget() for _ in range(AT_ONCE)))
    assert (await listed(plane, "u1"), await listed(plane, "u2")) == ([], kept)
    found = await search(plane, content("u1", 7), top_k=50)
    assert {hit.memory.subject_id for hit in found.hits} == {"u2"}
    in_10_s = asyncio.get_running_loop().time() + 10
    for index in (plane.vectors, plane.stores.texts):
        assert set(await index.versions(in_10_s)) == set(kept)


@pytest.mark.parametrize("given", [{}, {"namespace": NAMESPACE}, {"id": "mem_1"}, {"namespace": "*", "id": "*"}])
async def test_a_forget_that_does_not_say_what_is_refused(given: dict[str, Any]) -> None:
    async with running_plane() as plane:
        await plane.stub.WriteMemory(
            pb.WriteMemoryRequest(namespace=NAMESPACE, session_id="s", content="The ladder"), metadata=as_user()
        )
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await plane.stub.ForgetMemory(pb.ForgetMemoryRequest(**given), metadata=as_user())
        assert failed.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        assert len((await search(plane, "ladder")).hits) == 1
