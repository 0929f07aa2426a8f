"""Fixtures of Qdrant: the peer starts with the first test that asks for it, once in a test process."""

import os
from collections.abc import Iterator

import pytest
from qdrant_client import QdrantClient

from dataplane.adapters.qdrant.options import QdrantOptions
from tests.peers.qdrant.process import QdrantPeer


@pytest.fixture(scope="session")
def qdrant_peer() -> Iterator[QdrantPeer]:
    """A peer that tests share, each under a prefix of its own; one that stops or kills it makes its own."""
    peer = QdrantPeer.create()
    yield peer
    peer.kill()  # in good order it would flush every collection first
    peer.close()


@pytest.fixture
def qdrant_peer_url(qdrant_peer: QdrantPeer) -> str:
    """For QdrantOptions."""
    return qdrant_peer.url


@pytest.fixture
def qdrant_server_url() -> Iterator[str]:
    """A real server's gRPC address; what the test made there is removed afterwards."""
    url = os.environ.get("MEMPLANE_TEST_QDRANT_URL", "")
    if not url:
        pytest.skip("no real Qdrant: set MEMPLANE_TEST_QDRANT_URL to its gRPC address, such as http://127.0.0.1:6334")
    options = QdrantOptions(url)
    client = QdrantClient(
        host=options.host, grpc_port=options.port, https=options.tls, prefer_grpc=True, check_compatibility=False
    )
    before = {each.name for each in client.get_collections().collections}
    yield url
    for made in {each.name for each in client.get_collections().collections} - before:
        client.delete_collection(made)
    client.close()
