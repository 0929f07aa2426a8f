"""Calls any RPC by its name, with bytes, and keeps everything that comes back."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import grpc
from google.protobuf.descriptor import MethodDescriptor
from google.rpc import status_pb2

from tests.leak.calls import SERVICES

DETAILS = "grpc-status-details-bin"
_TIMEOUT_S = 20.0


@dataclass(frozen=True)
class Answer:
    """What a caller can see of a call."""

    code: grpc.StatusCode
    messages: tuple[bytes, ...]
    told: str
    metadata: tuple[tuple[str, str | bytes], ...]

    @property
    def everything(self) -> bytes:
        """All of it."""
        texts = (value if isinstance(value, bytes) else value.encode() for _, value in self.metadata)
        return b"\n".join((*self.messages, self.told.encode(), *texts))

    def plain(self, *, hide: Sequence[str]) -> str:
        """All but the messages, as text, in which the names to hide read the same."""
        parts = [self.code.name, self.told, *(f"{key}: {_readable(key, value)}" for key, value in self.metadata)]
        text = "\n".join(parts)
        for name in sorted(hide, key=len, reverse=True):
            text = text.replace(name, "…")
        return text


class Line:
    """A channel to a data plane."""

    def __init__(self, channel: grpc.aio.Channel):
        self._channel = channel

    async def send(self, method: str, request: bytes, key: str) -> Answer:
        """Calls `SERVICE/METHOD` with this API key ("": none)."""
        metadata = (("authorization", f"Bearer {key}"),) if key else ()
        call = self._channel.stream_stream(f"/{method}")(iter((request,)), metadata=metadata, timeout=_TIMEOUT_S)
        messages: list[bytes] = []
        try:
            async for message in call:
                messages.append(message)  # noqa: PERF401 - what came before an error counts
        except grpc.aio.AioRpcError as error:
            trailers = (*(error.initial_metadata() or ()), *(error.trailing_metadata() or ()))
            return Answer(error.code(), tuple(messages), error.details() or "", tuple(_pairs(trailers)))
        trailers = (*await call.initial_metadata(), *await call.trailing_metadata())
        return Answer(grpc.StatusCode.OK, tuple(messages), "", tuple(_pairs(trailers)))


def descriptor_of(method: str) -> MethodDescriptor:
    """The RPC's descriptor."""
    service, _, name = method.rpartition("/")
    return SERVICES[service].methods_by_name[name]


def _pairs(metadata: Sequence[tuple[str, str | bytes]]) -> Iterator[tuple[str, str | bytes]]:
    return ((key, value) for key, value in metadata)


def _readable(key: str, value: str | bytes) -> str:
    return str(status_pb2.Status.FromString(value)) if key == DETAILS and isinstance(value, bytes) else str(value)
