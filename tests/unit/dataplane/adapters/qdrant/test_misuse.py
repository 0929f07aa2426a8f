"""What the index says of servers and collections that cannot be used as configured."""

import asyncio
from typing import Any

import numpy as np
import pytest
from grpc import StatusCode
from qdrant_client import grpc as wire

from dataplane.adapters.qdrant.options import QdrantOptions
from dataplane.adapters.qdrant.vector import QdrantVectorIndex
from dataplane.errors import BackendUnavailable, EntriesRefused, Misconfigured
from dataplane.model import EVERYTHING, IndexKey
from memplane.settings import Secret
from tests.contract.index_suite import DIMENSION, A, deadline, entry
from tests.peers.qdrant.process import QdrantPeer
from tests.servers.process import free_port
from tests.unit.dataplane.adapters.qdrant.scripted import SECRET, Answer, collection, healthy, scripted_server

QUESTION = np.eye(DIMENSION, dtype=np.float32)[0]


async def open_at(url: str, **options: Any) -> QdrantVectorIndex:
    return await QdrantVectorIndex.open(QdrantOptions(url, timeout_s=1, **options), "model-1", DIMENSION)


def test_a_wrong_key_is_told_when_opening() -> None:
    peer = QdrantPeer.create(api_key="right")
    try:
        asyncio.run(_open_with_keys(peer))
    finally:
        peer.kill()
        peer.close()


async def _open_with_keys(peer: QdrantPeer) -> None:
    for key in (None, Secret("wrong")):
        with pytest.raises(Misconfigured, match=r"refuses the API key; set vector_index\.api_key"):
            await open_at(peer.url, api_key=key)
    index = await open_at(peer.url, api_key=Secret("right"))
    await index.activate(deadline())
    problems = (await index.examine(deadline())).problems
    assert [problem.code for problem in problems] == ["KEY_IN_CLEAR"]
    await index.close()


async def test_a_server_that_is_not_there_is_unavailable_and_the_port_is_questioned() -> None:
    with pytest.raises(BackendUnavailable, match="6334"):
        await open_at(f"http://127.0.0.1:{free_port()}")


@pytest.mark.parametrize("version", ["1.15.5", "0.11.0", "dev"])
async def test_an_old_server_is_refused(version: str) -> None:
    answers = {**healthy(), "HealthCheck": lambda _: wire.HealthCheckReply(version=version)}
    async with scripted_server(answers) as url:
        with pytest.raises(Misconfigured, match=rf"Qdrant {version}; 1\.16 or newer"):
            await open_at(url)


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"size": 384}, r"dimension 384, the embedding model makes 8"),
        ({"distance": wire.Distance.Euclid}, "Euclid, not Cosine"),
    ],
)
async def test_a_collection_of_another_shape_is_refused(changes: dict[str, Any], told: str) -> None:
    async with scripted_server({**healthy(), "qdrant.Collections/Get": lambda _: collection(**changes)}) as url:
        with pytest.raises(Misconfigured, match=told):
            await open_at(url)


async def test_a_collection_that_cannot_be_made_is_told() -> None:
    absent = wire.CollectionExistsResponse(result=wire.CollectionExists(exists=False))
    answers = {**healthy(), "CollectionExists": lambda _: absent, "Create": StatusCode.INVALID_ARGUMENT}
    async with scripted_server(answers) as url:
        with pytest.raises(Misconfigured, match="shards and replicas") as caught:
            await open_at(url)
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"status": wire.CollectionStatus.Red}, "COLLECTION_STATUS"),
        ({"status": wire.CollectionStatus.Yellow}, "COLLECTION_STATUS"),
        ({"status": wire.CollectionStatus.Grey}, "COLLECTION_STATUS"),
        ({"fields": ("namespace", "shared")}, "PAYLOAD_INDEX_MISSING"),
        ({"size": 9}, "COLLECTION_SHAPE"),
        ({"replicas": 1}, "TOO_FEW_REPLICAS"),
    ],
)
async def test_an_examination_names_what_is_wrong(changes: dict[str, Any], code: str) -> None:
    answers: dict[str, Answer] = {**healthy(), "qdrant.Collections/Get": lambda _: collection(replicas=2)}
    async with scripted_server(answers) as url:
        index = await open_at(url, replicas=2)
        answers["qdrant.Collections/Get"] = lambda _: collection(**{"replicas": 2, **changes})
        examination = await index.examine(deadline())
        await index.close()
    assert examination.server == "Qdrant 1.17.0"
    assert [problem.code for problem in examination.problems] == [code, "ALIAS_MISSING"]


async def test_a_collection_that_vanished_is_told() -> None:
    answers = healthy()
    async with scripted_server(answers) as url:
        index = await open_at(url)
        answers |= {
            "qdrant.Collections/Get": StatusCode.NOT_FOUND,
            "Query": StatusCode.NOT_FOUND,
            "Upsert": StatusCode.NOT_FOUND,
        }
        assert (await index.examine(deadline())).problems[0].code == "COLLECTION_MISSING"
        with pytest.raises(BackendUnavailable, match="gone"):
            await index.search(A, QUESTION, EVERYTHING, 10, 64, deadline())
        with pytest.raises(BackendUnavailable, match="gone"):
            await index.upsert([entry("mem_1")], deadline())
        await index.close()


@pytest.mark.parametrize(
    ("code", "told"),
    [
        (StatusCode.RESOURCE_EXHAUSTED, "takes no more for now"),
        (StatusCode.UNAUTHENTICATED, "refuses the API key"),
        (StatusCode.INTERNAL, "failed with INTERNAL"),
        (StatusCode.UNAVAILABLE, "does not answer"),
    ],
)
async def test_failures_are_told_in_our_words(code: StatusCode, told: str) -> None:
    answers = healthy()
    async with scripted_server(answers) as url:
        index = await open_at(url)
        answers |= {"Query": code, "Upsert": code}
        for call in (
            index.search(A, QUESTION, EVERYTHING, 10, 64, deadline()),
            index.upsert([entry("mem_1")], deadline()),
        ):
            with pytest.raises(BackendUnavailable, match=told) as caught:
                await call
            assert SECRET not in str(caught.value)
        await index.close()


async def test_what_the_server_calls_invalid_is_refused_alone_and_the_rest_is_taken() -> None:
    taken: list[str] = []

    def upsert(request: wire.UpsertPoints) -> wire.PointsOperationResponse | StatusCode:
        ids = [point.payload["memory_id"].string_value for point in request.points]
        if "mem_13" in ids:
            return StatusCode.INVALID_ARGUMENT
        taken.extend(ids)
        return wire.PointsOperationResponse(result=wire.UpdateResult(status=wire.UpdateStatus.Completed))

    answers = healthy()
    async with scripted_server(answers) as url:
        index = await open_at(url)
        answers["Upsert"] = upsert
        with pytest.raises(EntriesRefused) as caught:
            await index.upsert([entry(f"mem_{number}") for number in range(30)], deadline())
        await index.close()
    assert list(caught.value.reasons) == ["mem_13"]
    assert sorted(taken) == sorted(f"mem_{number}" for number in range(30) if number != 13)


async def test_a_deletion_that_left_something_is_not_believed() -> None:
    answers = healthy()
    async with scripted_server(answers) as url:
        index = await open_at(url)
        left = wire.RetrievedPoint(id=wire.PointId(num=1))
        answers["qdrant.Points/Get"] = lambda _: wire.GetResponse(result=[left])
        with pytest.raises(BackendUnavailable, match="1 deleted points are still in"):
            await index.delete([IndexKey("mem_1", "dept.a")], deadline())
        await index.close()


async def test_a_slow_server_is_given_up_in_time() -> None:
    answers = healthy()
    async with scripted_server(answers) as url:
        index = await open_at(url)
        soon = asyncio.get_running_loop().time() + 0.05
        answers["Query"] = StatusCode.DEADLINE_EXCEEDED
        with pytest.raises(BackendUnavailable, match="in time"):
            await index.search(A, QUESTION, EVERYTHING, 10, 64, soon)
        await index.close()


def test_a_killed_server_comes_back_with_everything() -> None:
    peer = QdrantPeer.create()
    try:
        asyncio.run(_fill_kill_and_read(peer))
    finally:
        peer.kill()
        peer.close()


async def _fill_kill_and_read(peer: QdrantPeer) -> None:
    index = await open_at(peer.url)
    await index.upsert([entry(f"mem_{number}") for number in range(300)], deadline())
    await index.activate(deadline())
    peer.kill()
    with pytest.raises(BackendUnavailable):
        await index.count(deadline())
    peer.start()
    await _until_it_answers(index)
    assert await index.count(deadline()) == 300
    assert await index.active_model(deadline()) == "model-1"
    await index.close()


async def _until_it_answers(index: QdrantVectorIndex) -> None:
    """The channel knocks again after a while."""
    async with asyncio.timeout(20):
        while True:
            try:
                await index.count(deadline())
            except BackendUnavailable:
                await asyncio.sleep(0.05)
            else:
                return
