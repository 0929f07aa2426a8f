"""The peer answers as a server does, and says so where it does not."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import grpc
import pytest
from qdrant_client import AsyncQdrantClient, models

from tests.peers.qdrant.process import QdrantPeer

Calling = Callable[[AsyncQdrantClient], Awaitable[Any]]
VECTORS = models.VectorParams(size=4, distance=models.Distance.COSINE)
ONE = [1.0, 0.0, 0.0, 0.0]
FEW = models.MinShould(conditions=[models.HasIdCondition(has_id=[1])], min_count=1)


@pytest.fixture
async def client(qdrant_peer: QdrantPeer) -> AsyncIterator[AsyncQdrantClient]:
    opened = AsyncQdrantClient(
        host="127.0.0.1", grpc_port=qdrant_peer.port, prefer_grpc=True, check_compatibility=False
    )
    await opened.create_collection("here", vectors_config=VECTORS)
    yield opened
    await opened.delete_collection("here")
    await opened.close()


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda client: client.count("absent"), grpc.StatusCode.NOT_FOUND),
        (lambda client: client.get_collection("absent"), grpc.StatusCode.NOT_FOUND),
        (lambda client: client.create_collection("here", vectors_config=VECTORS), grpc.StatusCode.ALREADY_EXISTS),
        (
            lambda client: client.upsert("here", [models.PointStruct(id=1, vector=ONE[:3])]),
            grpc.StatusCode.INVALID_ARGUMENT,
        ),
        (lambda client: client.query_points("here", query=ONE[:3]), grpc.StatusCode.INVALID_ARGUMENT),
        (lambda client: client.upsert("here", []), grpc.StatusCode.INVALID_ARGUMENT),
        (
            lambda client: client.update_collection_aliases(
                [models.DeleteAliasOperation(delete_alias=models.DeleteAlias(alias_name="absent"))]
            ),
            grpc.StatusCode.NOT_FOUND,
        ),
        (lambda client: client.query_points("here", query=1), grpc.StatusCode.UNIMPLEMENTED),
        (lambda client: client.facet("here", "key"), grpc.StatusCode.UNIMPLEMENTED),
        (
            lambda client: client.scroll("here", scroll_filter=models.Filter(min_should=FEW)),
            grpc.StatusCode.UNIMPLEMENTED,
        ),
    ],
)
async def test_errors_carry_a_server_s_codes(client: AsyncQdrantClient, call: Calling, code: grpc.StatusCode) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await call(client)
    assert caught.value.code() is code


async def test_a_condition_spares_what_does_not_meet_it_and_lets_new_points_in(client: AsyncQdrantClient) -> None:
    await client.upsert("here", [models.PointStruct(id=1, vector=ONE, payload={"version": 2})])
    points = [models.PointStruct(id=number, vector=ONE, payload={"version": 1}) for number in (1, 2)]
    older = models.Filter(must=[models.FieldCondition(key="version", range=models.Range(lte=1))])
    await client.upsert("here", points, update_filter=older)
    kept, _ = await client.scroll("here")
    assert {point.id: (point.payload or {})["version"] for point in kept} == {1: 2, 2: 1}


async def test_an_alias_names_its_collection_and_ends_with_it(client: AsyncQdrantClient) -> None:
    await client.create_collection("other", vectors_config=VECTORS)
    alias = models.CreateAlias(alias_name="alias", collection_name="other")
    await client.update_collection_aliases([models.CreateAliasOperation(create_alias=alias)])
    await client.upsert("alias", [models.PointStruct(id=1, vector=ONE)])
    assert (await client.count("other")).count == 1
    await client.delete_collection("other")
    assert "alias" not in {each.alias_name for each in (await client.get_aliases()).aliases}
