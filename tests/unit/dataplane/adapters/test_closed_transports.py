"""What drivers pass on, untold, of connections that uvloop or their own client has closed."""

import asyncio

import httpx
import pytest
from elasticsearch import AsyncElasticsearch
from grpc.aio import UsageError
from qdrant_client import AsyncQdrantClient

from dataplane.adapters.elasticsearch.connection import Connection as ElasticsearchConnection
from dataplane.adapters.elasticsearch.options import ElasticsearchOptions
from dataplane.adapters.embedder.endpoint_wire import TryAgain, post_embeddings
from dataplane.adapters.postgres.faults import translated
from dataplane.adapters.qdrant.calls import Connection as QdrantConnection
from dataplane.errors import BackendUnavailable

CLOSED = "unable to perform operation on <TCPTransport closed=True reading=False>; the handler is closed"
OTHERS_SOCKET = "File descriptor 23 is used by transport <TCPTransport closed=False>"


def in_s(seconds: float) -> float:
    return asyncio.get_running_loop().time() + seconds


async def test_elasticsearch_is_unavailable() -> None:
    connection = ElasticsearchConnection.create(ElasticsearchOptions(hosts=("http://127.0.0.1:1",)))

    async def call(_client: AsyncElasticsearch) -> None:
        raise RuntimeError(CLOSED)

    with pytest.raises(BackendUnavailable, match="closed"):
        await connection.ask(call, in_s(1))
    await connection.close()


async def test_qdrant_is_unavailable() -> None:
    client = AsyncQdrantClient(location=":memory:")
    connection = QdrantConnection(client, 1.0)

    async def call(_client: AsyncQdrantClient) -> None:
        raise UsageError("Channel is closed.")

    with pytest.raises(BackendUnavailable, match="closed"):
        await connection.call(call, in_s(1))
    await connection.close()


async def test_the_embedder_s_endpoint_is_tried_again() -> None:
    def send(_request: httpx.Request) -> httpx.Response:
        raise RuntimeError(CLOSED)

    async with httpx.AsyncClient(transport=httpx.MockTransport(send), base_url="http://127.0.0.1:1") as client:
        with pytest.raises(TryAgain):
            await post_embeddings(client, "m", ["word"], None)


async def test_postgresql_is_unavailable_and_our_own_errors_stay_what_they_are() -> None:
    with pytest.raises(BackendUnavailable, match="closed"), translated():
        raise RuntimeError(OTHERS_SOCKET)
    with pytest.raises(RuntimeError, match="a defect"), translated():
        raise RuntimeError("a defect")
