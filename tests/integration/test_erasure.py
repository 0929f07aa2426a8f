"""What is left on disk of a memory that was forgotten HARD."""

import asyncio
from pathlib import Path

import numpy as np

from memplane.v1 import memory_service_pb2 as pb
from tests.deadline import eventually
from tests.integration.harness import Plane, as_user, contents, running_plane, search, write

SECRETS = (b"PLATYPUS", b"SUBJECTSECRET", b"METASECRET", b"TAGSECRET", b"SESSIONSECRET")


def embedding(seed: int, dimension: int) -> list[float]:
    vector = np.random.default_rng(seed).standard_normal(dimension)
    return [float(value) for value in vector / np.linalg.norm(vector)]


async def write_secret(plane: Plane) -> str:
    """A memory full of secrets beside one that stays; the id of the first."""
    await write(plane, "The canteen opens at noon")
    written = await write(
        plane,
        "The launch word is PLATYPUS",
        subject_id="SUBJECTSECRET",
        session_id="SESSIONSECRET",
        metadata={"note": "METASECRET"},
        tags=["TAGSECRET"],
        embedding=embedding(1, plane.embedder.dimension),
    )
    for projector in plane.projectors:
        assert await projector.wait_for({written.memory.id: 2}, 10)
    await asyncio.gather(plane.vectors.flush(in_10_s()), plane.stores.texts.flush(in_10_s()))
    return written.memory.id


async def erase(plane: Plane, memory_id: str) -> list[str]:
    request = pb.ForgetMemoryRequest(
        namespace="dept.sales", id=memory_id, mode=pb.FORGET_MODE_HARD, request_id="the-erasure"
    )
    return sorted((await plane.stub.ForgetMemory(request, metadata=as_user())).pending_backends)


async def purged(plane: Plane) -> None:
    await eventually(lambda: [item.name for item in plane.projectors if item.purge_due], lambda due: not due, 30)


def in_10_s() -> float:
    return asyncio.get_running_loop().time() + 10


def on_disk(folder: Path, dimension: int) -> set[bytes]:
    """Which of the secrets, and of the embedding, some file holds."""
    vector = np.array(embedding(1, dimension), dtype=np.float32)
    sought = {*SECRETS, vector[4:8].tobytes()}
    files = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    return {secret for secret in sought if any(secret in content for content in files)}


async def test_once_purged_no_file_holds_anything_of_an_erased_memory(tmp_path: Path) -> None:
    async with running_plane(tmp_path) as plane:
        memory_id = await write_secret(plane)
        dimension = plane.embedder.dimension
        assert len(on_disk(tmp_path, dimension)) == len(SECRETS) + 1
        assert await erase(plane, memory_id) == ["text_index", "vector_index"]
        await purged(plane)
        assert on_disk(tmp_path, dimension) == set()
        assert await erase(plane, memory_id) == []
        assert contents(await search(plane, "when does the canteen open")) == ["The canteen opens at noon"]
    assert on_disk(tmp_path, dimension) == set()


async def test_a_purge_that_a_restart_came_before_is_done_after_it(tmp_path: Path) -> None:
    async with running_plane(tmp_path, purge_delay_s=600.0) as plane:
        dimension = plane.embedder.dimension
        assert await erase(plane, await write_secret(plane)) == ["text_index", "vector_index"]
    assert on_disk(tmp_path, dimension)
    async with running_plane(tmp_path, purge_delay_s=600.0) as plane:
        assert [projector.purge_due for projector in plane.projectors] == [True, True]
    async with running_plane(tmp_path, purge_delay_s=0.0) as plane:
        await purged(plane)
        assert on_disk(tmp_path, dimension) == set()
        assert contents(await search(plane, "when does the canteen open")) == ["The canteen opens at noon"]


async def test_forgetting_softly_leaves_nothing_to_be_purged(tmp_path: Path) -> None:
    async with running_plane(tmp_path) as plane:
        written = await write(plane, "The canteen opens at noon")
        request = pb.ForgetMemoryRequest(namespace="dept.sales", id=written.memory.id)
        forgotten = await plane.stub.ForgetMemory(request, metadata=as_user())
        assert not forgotten.pending_backends
        assert not any(projector.purge_due for projector in plane.projectors)
