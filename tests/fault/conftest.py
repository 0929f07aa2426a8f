"""Servers that a test may kill, fill or restart."""

import contextlib
from collections.abc import Callable, Iterator

import pytest

from tests.servers.redis import RedisServer


@pytest.fixture
def make_server() -> Iterator[Callable[..., RedisServer]]:
    """Starts Redis servers with settings of one's own; they end with the test."""
    with contextlib.ExitStack() as stack:

        def make(**settings: str) -> RedisServer:
            server = RedisServer.create({name.replace("_", "-"): value for name, value in settings.items()})
            stack.callback(server.close)
            return server

        yield make
