import secrets
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from dataplane.adapters.qdrant.options import QdrantOptions
from dataplane.adapters.qdrant.vector import QdrantVectorIndex
from tests.contract.index_suite import DIMENSION
from tests.peers.qdrant.process import QdrantPeer

Opening = Callable[..., Awaitable[QdrantVectorIndex]]


@pytest.fixture
def options(qdrant_peer: QdrantPeer) -> QdrantOptions:
    return QdrantOptions(url=qdrant_peer.url, prefix=f"t{secrets.token_hex(6)}", partition_refresh_s=0.05)


@pytest.fixture
async def open_index(options: QdrantOptions) -> AsyncIterator[Opening]:
    """Opens the index of a model under the test's prefix, once or as often as there are data planes."""
    opened: list[QdrantVectorIndex] = []

    async def open_one(model: str = "model-1", dimension: int = DIMENSION) -> QdrantVectorIndex:
        opened.append(await QdrantVectorIndex.open(options, model, dimension))
        return opened[-1]

    yield open_one
    for index in opened:
        await index.close()
