"""A channel to one plane: retries, keepalive, credentials, and errors as `RpcError`."""

import json
from collections.abc import AsyncGenerator
from types import TracebackType
from typing import Self, TypeVar

import grpc
from google.protobuf.message import Message

from memplane.client.errors import from_call
from memplane.client.tls import ClientTls, FollowingChannel
from memplane.rpc.lifetime import RENEW

RequestT = TypeVar("RequestT", bound=Message)
ResponseT = TypeVar("ResponseT", bound=Message)

SERVICE_CONFIG = {
    "loadBalancingConfig": [{"round_robin": {}}],
    "methodConfig": [
        {
            "name": [{}],
            "retryPolicy": {
                "maxAttempts": 5,
                "initialBackoff": "0.2s",
                "maxBackoff": "3s",
                "backoffMultiplier": 3,
                "retryableStatusCodes": ["UNAVAILABLE", "RESOURCE_EXHAUSTED", "CANCELLED"],
            },
        }
    ],
}
"""The retry settings that docs/clients.md tells of; examples/go/service_config.json is the same for other languages.

Unmeasured. A server that is restarted is back within a few seconds; pushback from the server overrides the backoff.
Calls are spread over all addresses that the target stands for.
"""

MAX_RESPONSE_BYTES = 64 * 1024 * 1024
OPTIONS: tuple[tuple[str, int | str], ...] = (
    ("grpc.service_config", json.dumps(SERVICE_CONFIG)),
    ("grpc.enable_retries", 1),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.max_receive_message_length", MAX_RESPONSE_BYTES),
)


class Connection:
    """One channel with the caller's API key and a deadline for every call.

    Without `tls` it is plain HTTP/2: the API key travels as it is, so use it on a trusted network only.
    """

    def __init__(self, target: str, api_key: str, timeout_s: float, tls: ClientTls | None = None) -> None:
        """Raises BadCertificate where the files of `tls` cannot be used."""
        self._following = FollowingChannel(target, tls, OPTIONS) if tls else None
        self.channel: grpc.aio.Channel = self._following or grpc.aio.insecure_channel(target, options=OPTIONS)
        self._metadata = (("authorization", f"Bearer {api_key}"),) if api_key else ()
        self._timeout_s = timeout_s

    async def call(
        self,
        method: "grpc.aio.UnaryUnaryMultiCallable[RequestT, ResponseT]",
        request: RequestT,
        extra_s: float = 0.0,
    ) -> ResponseT:
        """The response; `extra_s` is added to the deadline for calls that wait on purpose.

        Raises:
            RpcError: The call failed, after retries where a retry could help.
        """
        if self._following is not None:
            await self._following.follow()
        try:
            return await method(request, metadata=self._metadata, timeout=self._timeout_s + extra_s)
        except grpc.aio.AioRpcError as error:
            raise from_call(error) from None

    async def stream(
        self, method: "grpc.aio.UnaryStreamMultiCallable[RequestT, ResponseT]", request: RequestT
    ) -> AsyncGenerator[ResponseT, None]:
        """The responses of a stream without a deadline, which is opened again when its connection is renewed.

        It ends when the server ends it in good order for another reason.

        Raises:
            RpcError: The stream failed.
        """
        renews = True
        while renews:
            if self._following is not None:
                await self._following.follow()
            call = method(request, metadata=self._metadata)
            try:
                async for response in call:
                    yield response
                renews = any(pair in RENEW for pair in await call.trailing_metadata() or ())
            except grpc.aio.AioRpcError as error:
                raise from_call(error) from None
            finally:
                call.cancel()

    async def close(self) -> None:
        """Ends calls in flight and closes the channel."""
        await self.channel.close()


class Client:
    """What every client does with its connection. An async context manager."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Closes the channel."""
        await self._connection.close()
