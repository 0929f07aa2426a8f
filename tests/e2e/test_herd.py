"""Three hundred data planes lose their control plane to kill -9 and come back. About 25 s."""

import asyncio
import os
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path

import grpc
import pytest

from dataplane.policy_holder import PolicyHolder
from memplane.v1 import memory_service_pb2 as pb
from tests.deadline import eventually
from tests.e2e.control_process import ADMIN, ControlProcess, control_plane, data_plane, generation_of, node_options
from tests.e2e.data_process import DataProcess, stub_of
from tests.e2e.test_reload_acks import top_k_reload

COUNT = 300
SPREAD_S = 8.0
"""The default of `reconnect_spread_s`."""
LEAST_SPREAD_S = 4.0


@asynccontextmanager
async def answering(tmp_path: Path, control: ControlProcess) -> AsyncIterator[list[float]]:
    """A data plane as a process that is searched all the while; how long each search took. No search may fail."""
    data = DataProcess(tmp_path / "data", control.address, control.data_dir / "signing_key.pub")
    await data.start()
    try:
        await data.wait_ready()
        async with data.channel() as channel:
            took_s: list[float] = []
            searching = asyncio.create_task(_search_on(channel, took_s))
            yield took_s
            searching.cancel()
            with pytest.raises(asyncio.CancelledError):
                await searching
    finally:
        await data.kill()


async def _search_on(channel: grpc.aio.Channel, took_s: list[float]) -> None:
    stub = stub_of(channel)
    while True:
        began_s = time.monotonic()
        request = pb.SearchMemoriesRequest(namespace="dept.sales", query=f"question {len(took_s)}")
        await stub.SearchMemories(request, metadata=ADMIN, timeout=10)
        took_s.append(time.monotonic() - began_s)
        await asyncio.sleep(0.05)


def processor_s(control: ControlProcess) -> float:
    """Processor time that it has used so far."""
    assert control.process is not None
    fields = Path(f"/proc/{control.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def returns(holder: PolicyHolder, since_s: float) -> float:
    """After how many seconds a data plane is connected again."""
    await eventually(lambda: holder.control_plane_connected, bool, 60.0)
    return time.monotonic() - since_s


@pytest.mark.slow
async def test_data_planes_come_back_spread_out_and_serve_all_the_while(tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "a.yaml").write_text("retrieve_policy:\n  top_k: 1\n")
    async with (
        control_plane(tmp_path, heartbeat_s=5.0) as control,
        answering(tmp_path, control) as took_s,
        AsyncExitStack() as stack,
    ):
        options = [
            replace(node_options(control, tmp_path, f"n{number}"), reconnect_spread_s=SPREAD_S, backoff_max_s=10.0)
            for number in range(COUNT)
        ]
        holders = [await stack.enter_async_context(data_plane(option)) for option in options]
        await eventually(lambda: {generation_of(holder) for holder in holders}, {1}.__eq__, 60.0)
        await control.kill()
        await eventually(lambda: any(holder.control_plane_connected for holder in holders), (False).__eq__)
        await control.start()
        began_s, used_s = time.monotonic(), processor_s(control)
        back_s = await asyncio.gather(*(returns(holder, began_s) for holder in holders))
        assert max(back_s) - min(back_s) > LEAST_SPREAD_S
        assert processor_s(control) - used_s < max(back_s)
        assert (await control.call("ReloadPolicySet", top_k_reload(5))).propagation.acked == COUNT + 1
        assert {generation_of(holder) for holder in holders} == {2}
        assert len(took_s) > 50
