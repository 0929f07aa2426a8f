"""Calls to the server: each within its deadline, each failure in our words, never in the server's."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from grpc import StatusCode
from grpc.aio import AioRpcError, UsageError
from qdrant_client import AsyncQdrantClient
from qdrant_client.common.client_exceptions import ResourceExhaustedResponse

from dataplane.adapters.qdrant.options import QdrantOptions
from dataplane.errors import BackendUnavailable

BACKEND = "vector_index"
Result = TypeVar("Result")


class CollectionMissing(BackendUnavailable):
    """The server has no such collection."""


class RequestRefused(BackendUnavailable):
    """The server calls the request invalid; the same request is refused again."""


class AccessRefused(BackendUnavailable):
    """The API key is missing or wrong, or may not do this."""


class Connection:
    """One client and its limits."""

    def __init__(self, client: AsyncQdrantClient, timeout_s: float) -> None:
        self._client = client
        self._timeout_s = timeout_s
        self._open = True

    async def call(self, work: Callable[[AsyncQdrantClient], Awaitable[Result]], deadline_s: float) -> Result:
        """The result of one call.

        Raises BackendUnavailable, or the sort of it that says what is wrong: CollectionMissing, RequestRefused,
        AccessRefused.
        """
        self.check(deadline_s)
        now = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout_at(min(deadline_s, now + self._timeout_s)):
                return await work(self._client)
        except TimeoutError as error:
            raise BackendUnavailable(BACKEND, "did not answer in time") from error
        except ResourceExhaustedResponse as error:
            raise BackendUnavailable(BACKEND, f"takes no more for {error.retry_after_s} s") from error
        except AioRpcError as error:
            raise _meaning(error.code()) from error
        except UsageError as error:  # what gRPC says of a channel that was closed meanwhile
            raise BackendUnavailable(BACKEND, "the connection was closed") from error

    def check(self, deadline_s: float) -> None:
        """Raises BackendUnavailable when closed or late."""
        if not self._open:
            raise BackendUnavailable(BACKEND, "closed")
        if asyncio.get_running_loop().time() > deadline_s:
            raise BackendUnavailable(BACKEND, "deadline passed")

    async def close(self) -> None:
        """Lets go of the connection. Idempotent."""
        if self._open:
            self._open = False
            await self._client.close()


def connect(options: QdrantOptions) -> Connection:
    """A connection that is made with the first call."""
    grpc_options: dict[str, object] = {
        # One connection carries all calls: one that died in silence is noticed by its pings alone.
        "grpc.keepalive_time_ms": 5_000,
        "grpc.keepalive_timeout_ms": 2_000,
        "grpc.http2.max_pings_without_data": 0,
        "grpc.initial_reconnect_backoff_ms": 100,
        "grpc.min_reconnect_backoff_ms": 1_000,  # how long one try to connect may take
        "grpc.max_reconnect_backoff_ms": 500,
    }
    if options.ca_file is not None:
        grpc_options["root_certificates"] = options.ca_file.read_bytes()
    client = AsyncQdrantClient(
        host=options.host,
        grpc_port=options.port,
        https=options.tls,
        prefer_grpc=True,
        # As a header: given as api_key, the client warns of unencrypted connections on stderr; `examine` tells it.
        headers={"api-key": str(options.api_key)} if options.api_key else None,
        timeout=max(1, round(options.timeout_s + 0.5)),
        grpc_options=grpc_options,
        pool_size=1,
        check_compatibility=False,
    )
    return Connection(client, options.timeout_s)


def _meaning(code: StatusCode) -> BackendUnavailable:
    sort, meaning = _MEANINGS.get(code, (BackendUnavailable, f"failed with {code.name}"))
    return sort(BACKEND, meaning)


_MEANINGS: dict[StatusCode, tuple[type[BackendUnavailable], str]] = {
    StatusCode.UNAVAILABLE: (BackendUnavailable, "does not answer"),
    StatusCode.DEADLINE_EXCEEDED: (BackendUnavailable, "did not answer in time"),
    StatusCode.RESOURCE_EXHAUSTED: (BackendUnavailable, "takes no more for now"),
    StatusCode.UNAUTHENTICATED: (AccessRefused, "refuses the API key"),
    StatusCode.PERMISSION_DENIED: (AccessRefused, "refuses what the API key asks for"),
    StatusCode.NOT_FOUND: (CollectionMissing, "a collection is gone"),
    StatusCode.INVALID_ARGUMENT: (RequestRefused, "calls a request invalid"),
    StatusCode.ALREADY_EXISTS: (RequestRefused, "has that collection already"),
}
