"""A data plane whose control plane is gone: what its policy leaves it after a while. About 30 s."""

import asyncio
from contextlib import suppress
from pathlib import Path

import grpc
import pytest

from memplane.client.errors import from_call
from memplane.v1 import memory_service_pb2 as pb
from memplane.v1 import policy_pb2
from tests.deadline import eventually_async
from tests.e2e.control_process import ADMIN, ControlProcess, control_plane
from tests.e2e.data_process import DataProcess, stub_of
from tests.e2e.test_reload_acks import reload_request

STALE_AFTER_S = 4.0
SERVED = ""
SKEWED = ("tests.chaos.skewed_plane", "-86400")
"""A data plane whose clock is a day behind."""


def policy(action: str) -> str:
    return f"degradation_policy:\n  stale_after_s: {STALE_AFTER_S}\n  stale_action: {action}\n"


async def reason_of(data: DataProcess, method: str) -> str:
    """Why a read or a write is refused; empty when it is not."""
    async with data.channel() as channel:
        stub = stub_of(channel)
        try:
            if method == "read":
                request = pb.SearchMemoriesRequest(namespace="dept.sales", query="who")
                await stub.SearchMemories(request, metadata=ADMIN, timeout=20)
            else:
                written = pb.WriteMemoryRequest(namespace="dept.sales", content="Acme renews in March")
                await stub.WriteMemory(written, metadata=ADMIN, timeout=20)
        except grpc.aio.AioRpcError as error:
            return from_call(error).reason or error.code().name
    return SERVED


async def becomes(data: DataProcess, reads: str, writes: str) -> None:
    async def outcomes() -> tuple[str, str]:
        return await reason_of(data, "read"), await reason_of(data, "write")

    await eventually_async(outcomes, (reads, writes).__eq__, 30.0)


async def stale_action(control: ControlProcess) -> str:
    statuses: dict[str, policy_pb2.DataPlaneStatus] = {}
    with suppress(grpc.aio.AioRpcError):
        statuses = await control.statuses()
    return statuses["data-1"].report.stale_action if "data-1" in statuses else "unknown"


@pytest.mark.slow
async def test_a_policy_that_nobody_confirms_leaves_what_it_says_also_after_a_restart(tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "a.yaml").write_text(policy("read_only"))
    async with control_plane(tmp_path) as control:
        data = DataProcess(tmp_path / "data", control.address, control.data_dir / "signing_key.pub")
        await data.start()
        try:
            await data.wait_ready()
            await asyncio.sleep(STALE_AFTER_S)  # heartbeats go on, so that nothing is stale
            await becomes(data, reads=SERVED, writes=SERVED)
            await control.kill()
            await becomes(data, reads=SERVED, writes="POLICY_STALE")
            await data.kill()
            await data.start()
            assert await reason_of(data, "write") == "POLICY_STALE"
            await control.start()
            await becomes(data, reads=SERVED, writes=SERVED)
            denies = reload_request({"a.yaml": policy("deny").encode()}, wait_s=20)
            assert (await control.call("ReloadPolicySet", denies)).propagation.complete
            await control.kill()
            await becomes(data, reads="POLICY_STALE", writes="POLICY_STALE")
            await data.kill()
            day_back = DataProcess(data.data_dir, data.control, data.trusted_key, program=SKEWED)
            await day_back.start()
            data = day_back
            assert await reason_of(data, "read") == "POLICY_STALE"
            await control.start()
            await becomes(data, reads=SERVED, writes=SERVED)
            await eventually_async(lambda: stale_action(control), SERVED.__eq__)
        finally:
            await data.kill()
