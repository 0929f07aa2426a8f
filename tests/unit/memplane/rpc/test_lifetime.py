"""Connections that end in good order. About 2 s."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health, health_pb2, health_pb2_grpc

from memplane.rpc.interceptors import ErrorInterceptor, at_once
from memplane.rpc.lifetime import SETTINGS, Lifetime, Underway, drain, finish
from memplane.rpc.permissions import RULES
from memplane.rpc.server import add_health_and_reflection, bind, new_server, set_health
from memplane.settings import BadConfig, read_settings

SERVING, NOT_SERVING = health_pb2.HealthCheckResponse.SERVING, health_pb2.HealthCheckResponse.NOT_SERVING
QUICK = Lifetime(drain_s=0.05, stop_grace_s=5.0)
PROGRAM = ("memplane test", "Tests.", "MEMPLANE_TEST_")


@dataclass
class Served:
    """A server with health and one method, which answers once `may_answer` is set."""

    server: grpc.aio.Server
    servicer: health.aio.HealthServicer
    channel: grpc.aio.Channel
    underway: Underway
    arrived: asyncio.Event
    may_answer: asyncio.Event
    counted: Counter[tuple[str, grpc.StatusCode]] = field(default_factory=Counter)

    def call(self) -> "asyncio.Future[bytes]":
        method: Any = self.channel.unary_unary("/test.Service/Slow")
        call: asyncio.Future[bytes] = asyncio.ensure_future(method(b""))
        return call

    async def watch(self) -> Any:
        """A watch of health that has been told of the state once."""
        stub: Any = health_pb2_grpc.HealthStub(self.channel)  # its published types lack the methods
        states = stub.Watch(health_pb2.HealthCheckRequest(service=""))
        assert (await states.read()).status == SERVING
        return states


@asynccontextmanager
async def served(lifetime: Lifetime = QUICK) -> AsyncIterator[Served]:
    underway, arrived, may_answer = Underway(), asyncio.Event(), asyncio.Event()
    counted = Counter[tuple[str, grpc.StatusCode]]()

    async def slow(_request: bytes, _context: Any) -> bytes:
        arrived.set()
        await may_answer.wait()
        return b"answer"

    def count(method: str, code: grpc.StatusCode, _seconds: float) -> None:
        counted[method, code] += 1

    offered = {*RULES, "/test.Service/Slow"}
    server = new_server([ErrorInterceptor(count, underway.around(at_once), offered=offered)], lifetime.options())
    handlers: dict[str, Any] = {"Slow": grpc.unary_unary_rpc_method_handler(slow)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Service", handlers),))
    servicer = add_health_and_reflection(server, ())
    await set_health(servicer, "", serving=True)
    port = bind(server, "127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
        yield Served(server, servicer, channel, underway, arrived, may_answer, counted)
        await server.stop(0)


async def test_a_watch_of_health_is_told_first_and_calls_are_still_served() -> None:
    async with served() as plane:
        states = await plane.watch()
        draining = asyncio.create_task(drain(plane.servicer, QUICK))
        assert (await states.read()).status == NOT_SERVING
        assert not draining.done()
        plane.may_answer.set()
        assert await plane.call() == b"answer"
        await draining


async def test_a_watch_does_not_hold_up_the_end() -> None:
    async with served() as plane:
        states = await plane.watch()
        async with asyncio.timeout(2.0):
            await finish(plane.server, plane.underway, QUICK)
        with pytest.raises(grpc.aio.AioRpcError):
            await states.read()


async def test_a_call_under_way_is_answered() -> None:
    async with served() as plane:
        call = plane.call()
        await plane.arrived.wait()
        finishing = asyncio.create_task(finish(plane.server, plane.underway, QUICK))
        await asyncio.wait({finishing}, timeout=0.2)
        assert not finishing.done()
        plane.may_answer.set()
        assert await call == b"answer"
        await finishing


async def test_a_call_that_takes_longer_than_the_grace_is_cut() -> None:
    async with served() as plane:
        call = plane.call()
        await plane.arrived.wait()
        await finish(plane.server, plane.underway, Lifetime(stop_grace_s=0.1))
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await call
        assert raised.value.code() is grpc.StatusCode.UNAVAILABLE


async def test_a_watch_that_its_caller_ends_is_no_defect(caplog: pytest.LogCaptureFixture) -> None:
    async with served() as plane:
        states = await plane.watch()
        states.cancel()
        await finish(plane.server, plane.underway, QUICK)
        assert not [key for key in plane.counted if key[1] is grpc.StatusCode.INTERNAL]
    assert not caplog.records


def test_connections_last_for_ever_at_0_and_else_as_long_as_is_said() -> None:
    assert Lifetime(max_connection_age_s=0).options() == []
    told = dict(Lifetime(max_connection_age_s=300, max_connection_age_grace_s=30).options())
    assert told == {"grpc.max_connection_age_ms": 300_000, "grpc.max_connection_age_grace_ms": 30_000}


def test_the_defaults_are_those_of_the_settings_and_a_wrong_one_is_named() -> None:
    assert Lifetime.of(read_settings(PROGRAM, SETTINGS, [], {})) == Lifetime()
    with pytest.raises(BadConfig, match="drain-s"):
        Lifetime.of(read_settings(PROGRAM, SETTINGS, ["--drain-s", "-1"], {}))
