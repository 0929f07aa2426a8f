"""Interceptors of every MemPlane server: no error leaves without its reason, none with a trace or a driver's words."""

import asyncio
import inspect
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Container
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any, Protocol, TypeAlias

import grpc
from google.protobuf.message import DecodeError
from grpc.aio import ServerInterceptor

from memplane.errors import Defect, InvalidField, MemPlaneError, NotOffered
from memplane.rpc.errors import code_of, status_of, trailers_of
from memplane.rpc.permissions import RULES

log = logging.getLogger("memplane.rpc")

Handler: TypeAlias = "grpc.RpcMethodHandler[Any, Any] | None"  # quoted: the class takes no arguments at run time
Context = grpc.aio.ServicerContext[Any, Any]


class CallCounter(Protocol):
    """Hears of every call's end."""

    def __call__(self, method: str, code: grpc.StatusCode, seconds: float, /) -> None:
        """Counts a call that ended. `method` is its full name, "" for one that is not offered."""
        ...


class Admit(Protocol):
    """Decides when a unary call may run."""

    def __call__(
        self, method: str, request: Any, size_bytes: int, context: Context, /
    ) -> AbstractAsyncContextManager[None]:
        """What the call runs inside: entering it may wait, or raise. `method` is its full name."""
        ...


def at_once(_method: str, _request: Any, _size_bytes: int, _context: Context) -> AbstractAsyncContextManager[None]:
    """Lets every call run."""
    return nullcontext()


class OpenStream(Protocol):
    """Decides whether a stream may be opened."""

    def __call__(self, method: str, context: Context, /) -> AbstractAsyncContextManager[Any]:
        """What the stream runs inside, to its end; entering it may raise. `method` is its full name."""
        ...


def opened(_method: str, _context: Context) -> AbstractAsyncContextManager[Any]:
    """Lets every stream be opened."""
    return nullcontext()


class ErrorInterceptor(ServerInterceptor):
    """Ends every failed call with a google.rpc.Status of the contract. `admit` lets unary calls in, `stream` streams.

    `offered` are the full names of methods that may be called at all: those that have a rule.
    """

    def __init__(
        self,
        count: CallCounter,
        admit: Admit = at_once,
        stream: OpenStream = opened,
        offered: Container[str] = RULES,
    ):
        self._count = count
        self._admit = admit
        self._stream = stream
        self._offered = offered

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Handler]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Handler:
        """Wraps the handler; a method that nobody serves, or that has no rule, gets one that says so."""
        handler, method = await continuation(handler_call_details), handler_call_details.method
        if handler is None or method not in self._offered:
            handler, method = grpc.unary_unary_rpc_method_handler(_not_offered), ""
        return _wrap(handler, method, self._count, (self._admit, self._stream))


async def _not_offered(_request: bytes, _context: Context) -> bytes:
    raise NotOffered("this server offers no such method")


def _wrap(handler: Any, method: str, count: CallCounter, doors: tuple[Admit, OpenStream]) -> Handler:
    """The handler, guarded. It parses requests itself: grpc would tell the client what Python says of bad bytes."""
    admit, stream = doors
    if handler.request_streaming and handler.response_streaming:
        guarded = _guard_stream(_behind(handler.stream_stream, stream, method), _parse_each(handler), method, count)
        return grpc.stream_stream_rpc_method_handler(guarded, None, handler.response_serializer)
    if handler.response_streaming:
        guarded = _guard_stream(_behind(handler.unary_stream, stream, method), _parse_one(handler), method, count)
        return grpc.unary_stream_rpc_method_handler(guarded, None, handler.response_serializer)
    if handler.request_streaming:
        guarded = _guard(handler.stream_unary, _parse_each(handler), method, count)
        return grpc.stream_unary_rpc_method_handler(guarded, None, handler.response_serializer)
    parse = _parse_one(handler)

    async def admitted(data: bytes, context: Context) -> Any:
        request = parse(data)
        async with admit(method, request, len(data), context):
            return await handler.unary_unary(request, context)

    guarded = _guard(admitted, _as_it_is, method, count)
    return grpc.unary_unary_rpc_method_handler(guarded, None, handler.response_serializer)


def _behind(behaviour: Any, stream: OpenStream, method: str) -> Callable[[Any, Context], AsyncIterator[Any]]:
    """The behaviour of a stream, run inside what opens it."""

    async def streamed(request: Any, context: Context) -> AsyncIterator[Any]:
        async with stream(method, context):
            produced = behaviour(request, context)
            if inspect.isawaitable(produced):  # it writes to the context itself, as health's Watch does
                await produced
                return
            async for response in produced:
                yield response

    return streamed


def _as_it_is(request: Any) -> Any:
    return request


def _parse_one(handler: Any) -> Callable[[bytes], Any]:
    def parse(data: bytes) -> Any:
        if handler.request_deserializer is None:
            return data
        try:
            return handler.request_deserializer(data)
        except DecodeError as error:
            raise InvalidField.one("request", "these bytes are no message of this method") from error

    return parse


def _parse_each(handler: Any) -> Callable[[AsyncIterator[bytes]], AsyncIterator[Any]]:
    parse = _parse_one(handler)

    async def parse_each(requests: AsyncIterator[bytes]) -> AsyncIterator[Any]:
        async for data in requests:
            yield parse(data)

    return parse_each


def _guard(behaviour: Any, parse: Callable[[Any], Any], method: str, count: CallCounter) -> Any:
    async def guarded(request: Any, context: Context) -> Any:
        started_s = _now_s()
        try:
            response = await behaviour(parse(request), context)
        except (asyncio.CancelledError, grpc.aio.AbortError):
            count(method, grpc.StatusCode.CANCELLED, _now_s() - started_s)
            raise
        except Exception as error:  # noqa: BLE001 - the last stop before the client: logged, counted, and answered
            told = _told(error, method)
            count(method, code_of(told), _now_s() - started_s)
            await _end(told, context)
        else:
            count(method, grpc.StatusCode.OK, _now_s() - started_s)
            return response

    return guarded


def _guard_stream(behaviour: Any, parse: Callable[[Any], Any], method: str, count: CallCounter) -> Any:
    async def guarded(request: Any, context: Context) -> AsyncIterator[Any]:
        started_s = _now_s()
        try:
            async for response in behaviour(parse(request), context):
                yield response
        except (asyncio.CancelledError, grpc.aio.AbortError):
            count(method, grpc.StatusCode.CANCELLED, _now_s() - started_s)
            raise
        except Exception as error:  # noqa: BLE001 - as above
            told = _told(error, method)
            count(method, code_of(told), _now_s() - started_s)
            await _end(told, context)
        else:
            count(method, grpc.StatusCode.OK, _now_s() - started_s)

    return guarded


def _now_s() -> float:
    return asyncio.get_running_loop().time()


def _told(error: Exception, method: str) -> MemPlaneError:
    return error if isinstance(error, MemPlaneError) else _defect(error, method)


async def _end(told: MemPlaneError, context: Context) -> None:
    status = status_of(told)
    await context.abort(code_of(told), status.message, trailers_of(told, status))


def _defect(error: Exception, method: str) -> Defect:
    correlation_id = secrets.token_hex(8)
    log.error("%s failed, correlation id %s", method, correlation_id, exc_info=error)
    return Defect(correlation_id)
