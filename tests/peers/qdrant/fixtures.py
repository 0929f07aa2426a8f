"""Fixtures of the Qdrant peer: it starts with the first test that asks for it, once in a test process."""

from collections.abc import Iterator

import pytest

from tests.peers.qdrant.process import QdrantPeer


@pytest.fixture(scope="session")
def qdrant_peer() -> Iterator[QdrantPeer]:
    """A peer that tests share, each under a prefix of its own; one that stops or kills it makes its own."""
    peer = QdrantPeer.create()
    yield peer
    peer.kill()  # in good order it would flush every collection first
    peer.close()
