import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from controlplane import stream as stream_module
from memplane.v1 import policy_discovery_service_pb2 as discovery_pb2
from memplane.v1 import policy_pb2
from tests.deadline import eventually
from tests.unit.controlplane.serving import NODE, Serving, serving


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[Serving]:
    async with serving(tmp_path) as running:
        yield running


class Node:
    """A data plane spoken by hand."""

    def __init__(self, plane: Serving, node_id: str = "n") -> None:
        self.call: Any = plane.discovery.StreamPolicies(metadata=NODE)
        self.node = policy_pb2.NodeInfo(node_id=node_id)

    async def hello(self, version: str = "", generation: int = 0) -> discovery_pb2.StreamPoliciesResponse:
        await self.call.write(
            discovery_pb2.StreamPoliciesRequest(node=self.node, version_info=version, generation=generation)
        )
        return await self.read()

    async def read(self) -> discovery_pb2.StreamPoliciesResponse:
        async with asyncio.timeout(5):
            response: discovery_pb2.StreamPoliciesResponse = await self.call.read()
        return response

    async def ack(self, response: discovery_pb2.StreamPoliciesResponse) -> None:
        await self.call.write(
            discovery_pb2.StreamPoliciesRequest(
                response_nonce=response.nonce, version_info=response.version_info, generation=response.generation
            )
        )

    async def nack(self, response: discovery_pb2.StreamPoliciesResponse, why: str = "no") -> None:
        await self.call.write(discovery_pb2.StreamPoliciesRequest(response_nonce=response.nonce, error_detail=why))


def state(plane: Serving, node_id: str = "n") -> str:
    found = plane.parts.fleet.node(node_id).state(plane.parts.fleet.target)
    return policy_pb2.SyncState.Name(found).removeprefix("SYNC_STATE_")


async def until(plane: Serving, wanted: str, node_id: str = "n") -> None:
    await eventually(lambda: state(plane, node_id), wanted.__eq__)


async def test_without_a_policy_there_are_heartbeats_of_generation_0(plane: Serving) -> None:
    response = await Node(plane).hello()
    assert (response.generation, response.version_info) == (0, "")
    assert response.heartbeat.interval_ms == 60_000
    assert state(plane) == "NOT_SENT"


async def test_a_node_with_nothing_gets_the_snapshot_and_is_synced_after_its_ack(plane: Serving) -> None:
    await plane.put_in_force(7)
    node = Node(plane)
    response = await node.hello()
    assert response.HasField("snapshot")
    assert response.generation == 1
    assert state(plane) == "STALE"
    await node.ack(response)
    await until(plane, "SYNCED")


async def test_a_node_that_has_it_gets_a_heartbeat(plane: Serving) -> None:
    await plane.put_in_force(7)
    target = plane.parts.fleet.target
    response = await Node(plane).hello(target.version, target.generation)
    assert response.HasField("heartbeat")
    assert state(plane) == "SYNCED"


async def test_a_new_generation_is_pushed_at_once(plane: Serving) -> None:
    node = Node(plane)
    await node.hello()
    await plane.put_in_force(7)
    response = await node.read()
    assert response.snapshot == plane.parts.snapshots.current.signed  # type: ignore[union-attr]  # fails the test when None


async def test_a_refused_version_is_not_pushed_again_but_the_next_one_is(plane: Serving) -> None:
    await plane.put_in_force(7)
    node = Node(plane)
    await node.nack(await node.hello(), "x" * 5000)
    await until(plane, "ERROR")
    assert len(plane.parts.fleet.page("", 1, 1)[0].error_detail) == stream_module.MAX_DETAIL_BYTES
    node.call.cancel()
    again = Node(plane)
    assert (await again.hello()).HasField("heartbeat")
    await plane.put_in_force(8)
    assert (await again.read()).HasField("snapshot")


async def test_an_answer_to_an_older_snapshot_does_not_count(plane: Serving) -> None:
    await plane.put_in_force(7)
    node = Node(plane)
    first = await node.hello()
    await plane.put_in_force(8)
    second = await node.read()
    await node.ack(first)
    await node.nack(first)
    await node.ack(second)
    await until(plane, "SYNCED")
    assert plane.parts.fleet.node("n").serves.generation == 2


async def test_a_nonce_of_nobody_does_not_count(plane: Serving) -> None:
    await plane.put_in_force(7)
    node = Node(plane)
    await node.hello()
    await node.call.write(discovery_pb2.StreamPoliciesRequest(response_nonce="made-up"))
    await node.call.write(discovery_pb2.StreamPoliciesRequest(report=policy_pb2.NodeReport(memory_count=5)))
    await eventually(lambda: plane.parts.fleet.node("n").report.memory_count, (5).__eq__)
    assert state(plane) == "STALE"


async def test_an_ack_for_another_version_does_not_count(plane: Serving) -> None:
    await plane.put_in_force(7)
    node = Node(plane)
    response = await node.hello()
    await node.call.write(discovery_pb2.StreamPoliciesRequest(response_nonce=response.nonce, version_info="sha256:x"))
    await node.call.write(discovery_pb2.StreamPoliciesRequest(report=policy_pb2.NodeReport(memory_count=5)))
    await eventually(lambda: plane.parts.fleet.node("n").report.memory_count, (5).__eq__)
    assert state(plane) == "STALE"


async def test_an_old_stream_ends_in_good_order_and_asks_to_be_renewed(tmp_path: Path) -> None:
    async with serving(tmp_path, max_age_s=0.2) as young:
        node = Node(young)
        await node.hello()
        assert await node.read() is grpc.aio.EOF
        assert await node.call.code() is grpc.StatusCode.OK
        assert ("memplane-stream", "renew") in list(await node.call.trailing_metadata())


def test_streams_end_before_their_connections_do_and_not_all_at_once() -> None:
    options = stream_module.StreamOptions(None, 5.0, 100.0)
    assert [options.age_s(jitter) for jitter in (0.0, 0.5, 1.0)] == pytest.approx([70.0, 80.0, 90.0])
    assert stream_module.StreamOptions(None, 5.0).age_s(0.5) == float("inf")


async def test_a_newer_stream_of_a_node_ends_the_older_one(plane: Serving) -> None:
    older, newer = Node(plane), Node(plane)
    await older.hello()
    await newer.hello()
    assert await older.read() is grpc.aio.EOF
    assert plane.parts.fleet.node("n").connected


async def test_a_node_that_goes_is_lost(plane: Serving) -> None:
    node = Node(plane)
    await node.hello()
    node.call.cancel()
    await eventually(lambda: plane.parts.fleet.node("n").connected, (False).__eq__)


async def test_closing_ends_every_stream(plane: Serving) -> None:
    nodes = [Node(plane, f"n{number}") for number in range(3)]
    for node in nodes:
        await node.hello()
    plane.discovery_servicer.close()
    for node in nodes:
        assert await node.read() is grpc.aio.EOF


async def test_heartbeats_come_at_their_interval(tmp_path: Path) -> None:
    async with serving(tmp_path, heartbeat_s=0.05) as plane:
        node = Node(plane)
        nonces = {(await node.hello()).nonce, (await node.read()).nonce, (await node.read()).nonce}
        assert len(nonces) == 3


@pytest.mark.parametrize("metadata", [(), (("authorization", "Bearer wrong"),)], ids=["no key", "wrong key"])
async def test_a_data_plane_without_the_node_key_gets_nothing(plane: Serving, metadata: Any) -> None:
    await plane.put_in_force(7)
    node = policy_pb2.NodeInfo(node_id="n")
    with pytest.raises(grpc.aio.AioRpcError) as fetched:
        await plane.discovery.FetchPolicies(discovery_pb2.FetchPoliciesRequest(node=node), metadata=metadata)
    with pytest.raises(grpc.aio.AioRpcError) as streamed:
        await plane.discovery.StreamPolicies(metadata=metadata).read()
    assert fetched.value.code() == streamed.value.code() == grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize("node_id", ["", "x" * 129, "a\nb"], ids=["empty", "too long", "control character"])
async def test_a_bad_node_id_is_named(plane: Serving, node_id: str) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await Node(plane, node_id).hello()
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert "node.node_id" in str(raised.value.details())


async def test_a_stream_without_a_first_message_is_ended(plane: Serving, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream_module, "FIRST_MESSAGE_S", 0.05)
    call: Any = plane.discovery.StreamPolicies(metadata=NODE)
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call.read()
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT


async def test_an_oversized_report_ends_the_stream_with_the_reason(plane: Serving) -> None:
    node = Node(plane)
    await node.hello()
    huge = policy_pb2.NodeReport(backends=[policy_pb2.BackendStatus(detail="x" * 20_000)])
    await node.call.write(discovery_pb2.StreamPoliciesRequest(report=huge))
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await node.read()
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    await eventually(lambda: plane.parts.fleet.node("n").connected, (False).__eq__)


async def test_an_oversized_first_report_connects_nobody(plane: Serving) -> None:
    node = Node(plane)
    huge = policy_pb2.NodeReport(backends=[policy_pb2.BackendStatus(detail="x" * 20_000)])
    await node.call.write(discovery_pb2.StreamPoliciesRequest(node=node.node, report=huge))
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await node.read()
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert plane.parts.fleet.connected_ids() == frozenset()


async def test_bytes_that_are_no_message_end_the_stream_with_the_reason(plane: Serving) -> None:
    call: Any = plane.channel.stream_stream("/memplane.v1.PolicyDiscoveryService/StreamPolicies")(metadata=NODE)
    first = discovery_pb2.StreamPoliciesRequest(node=policy_pb2.NodeInfo(node_id="n"))
    await call.write(first.SerializeToString())
    await call.read()
    await call.write(b"\xff\xff\xff")
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call.read()
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    await eventually(lambda: plane.parts.fleet.node("n").connected, (False).__eq__)


async def test_fetching_gives_the_snapshot_in_force_or_says_that_there_is_none(plane: Serving) -> None:
    request = discovery_pb2.FetchPoliciesRequest(node=policy_pb2.NodeInfo(node_id="n"))
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await plane.discovery.FetchPolicies(request, metadata=NODE)
    assert raised.value.code() == grpc.StatusCode.UNAVAILABLE
    await plane.put_in_force(7)
    response = await plane.discovery.FetchPolicies(request, metadata=NODE)
    assert response.snapshot == plane.parts.snapshots.current.signed  # type: ignore[union-attr]  # fails the test when None
