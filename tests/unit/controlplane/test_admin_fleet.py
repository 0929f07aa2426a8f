"""The fleet over gRPC: watches, and data planes that refuse for ever."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import grpc
import pytest

from controlplane import watching
from controlplane.fleet import Target
from memplane.rpc.lifetime import RENEW
from memplane.v1 import policy_admin_service_pb2 as admin_pb2
from memplane.v1 import policy_pb2
from tests.deadline import eventually
from tests.unit.controlplane.serving import ADMIN, Serving, serving
from tests.unit.controlplane.test_stream import Node

RELOADS = 50
LARGE = 64 * 1024
CHANGES = 1_000


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[Serving]:
    async with serving(tmp_path) as running:
        yield running


def watch(plane: Serving, *node_ids: str, metadata: Any = ADMIN) -> Any:
    return plane.admin.WatchDataPlaneStatuses(
        admin_pb2.WatchDataPlaneStatusesRequest(node_ids=node_ids), metadata=metadata
    )


async def read(call: Any) -> admin_pb2.WatchDataPlaneStatusesResponse:
    async with asyncio.timeout(10):
        response: admin_pb2.WatchDataPlaneStatusesResponse = await call.read()
    assert response is not grpc.aio.EOF
    return response


async def test_a_watch_tells_the_fleet_then_what_becomes_of_a_reload(plane: Serving) -> None:
    await plane.put_in_force(3)
    node = Node(plane, "a")
    await node.ack(await node.hello())
    await eventually(lambda: plane.parts.fleet.node("a").serves.generation, (1).__eq__)
    call = watch(plane)
    first = await read(call)
    assert [(each.node.node_id, each.generation) for each in first.data_planes] == [("a", 1)]
    await plane.put_in_force(4)
    await node.nack(await node.read(), "write_policy.threshold: no")
    told = await read(call)
    while told.data_planes[0].sync_state != policy_pb2.SYNC_STATE_ERROR:
        told = await read(call)
    assert (told.generation, told.data_planes[0].generation) == (2, 1)
    assert told.data_planes[0].error_detail == "write_policy.threshold: no"
    node.call.cancel()
    told = await read(call)
    assert (told.data_planes[0].connected, told.data_planes[0].HasField("lost_for")) == (False, True)


async def test_a_watch_is_for_those_who_may_read_policy(plane: Serving) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await watch(plane, metadata=(("authorization", "Bearer nobody"),)).read()
    assert raised.value.code() == grpc.StatusCode.UNAUTHENTICATED


async def test_watches_end_in_good_order_when_the_control_plane_stops(plane: Serving) -> None:
    call = watch(plane)
    await read(call)
    plane.watches.close()
    async with asyncio.timeout(10):
        assert await call.read() is grpc.aio.EOF
        assert await call.code() == grpc.StatusCode.OK


async def test_an_old_watch_says_that_it_is_to_be_opened_again(tmp_path: Path) -> None:
    async with serving(tmp_path, max_age_s=0.2) as plane:
        call = watch(plane)
        await read(call)
        async with asyncio.timeout(10):
            assert await call.read() is grpc.aio.EOF
            assert RENEW[0] in [tuple(pair) for pair in await call.trailing_metadata()]


async def test_a_reader_that_does_not_read_is_told_the_newest_and_keeps_nothing_waiting(
    plane: Serving, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "COALESCE_S", 0.0)
    fleet = plane.parts.fleet
    fleet.connect(policy_pb2.NodeInfo(node_id="a"), Target(), 1)
    call = watch(plane)
    await read(call)
    for number in range(CHANGES):
        fleet.nacked("a", Target(), f"{number:06d}" + "x" * LARGE)
        await asyncio.sleep(0.0005)
    told, heard = await read(call), 1
    while not told.data_planes[0].error_detail.startswith(f"{CHANGES - 1:06d}"):
        told, heard = await read(call), heard + 1
    assert heard < CHANGES / 2


async def test_a_digest_that_is_refused_for_ever_is_pushed_once_however_often_it_is_reloaded(plane: Serving) -> None:
    node, pushed = Node(plane, "stubborn"), Counter[str]()

    async def refuse_all(first: Any) -> None:
        response = first
        while True:
            if response.HasField("snapshot"):
                pushed[response.version_info] += 1
                await node.nack(response, "retrieve_policy.top_k: never")
            response = await node.call.read()

    refusing = asyncio.create_task(refuse_all(await node.hello()))
    for number in range(RELOADS):
        await plane.put_in_force(3 + number % 2)
        summary = await plane.parts.fleet.wait_for_acks(plane.parts.snapshots.target, {"stubborn"}, 10.0)
        assert (summary.nacked, summary.pending, summary.complete) == (1, 0, False)
    refusing.cancel()
    with suppress(asyncio.CancelledError):
        await refusing
    assert plane.parts.snapshots.target.generation == RELOADS
    assert sorted(pushed.values()) == [1, 1]
