import asyncio
import re
import stat
from pathlib import Path

import grpc
import psutil
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from memplane.v1 import policy_admin_service_pb2 as admin_pb2
from memplane.v1 import policy_pb2
from tests.deadline import eventually, eventually_async
from tests.e2e.control_process import (
    ADMIN_KEY,
    NODE_KEY,
    ControlProcess,
    control_plane,
    data_plane,
    node_options,
    top_k_yaml,
)

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


def inline_reload(top_k: int) -> admin_pb2.ReloadPolicySetRequest:
    document = policy_pb2.PolicyDocument(name="a.yaml", content=top_k_yaml(top_k).encode())
    return admin_pb2.ReloadPolicySetRequest(inline=admin_pb2.InlineDocuments(documents=[document]))


async def health(control: ControlProcess, service: str) -> int:
    async with grpc.aio.insecure_channel(control.address) as channel:
        response = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service=service))
    return int(response.status)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "policies"
    made.mkdir()
    (made / "a.yaml").write_text(top_k_yaml(1))
    return made


@pytest.mark.usefixtures("folder")
async def test_a_valid_folder_is_in_force_when_the_control_plane_is_ready(tmp_path: Path) -> None:
    async with control_plane(tmp_path) as control:
        revision = (await control.call("GetPolicySetRevision")).revision
        assert (revision.generation, revision.author, revision.origin) == (1, "folder", "folder")


async def test_keys_are_private_and_no_secret_is_logged(tmp_path: Path, folder: Path) -> None:
    async with control_plane(tmp_path) as control:
        assert await control.stop() == 0
        assert stat.S_IMODE((control.data_dir / "signing_key.pem").stat().st_mode) == 0o600
        assert stat.S_IMODE(control.data_dir.stat().st_mode) == 0o700
        log = control.log_file.read_text()
        assert ADMIN_KEY not in log
        assert NODE_KEY not in log
        assert "Traceback" not in log


async def test_revisions_survive_kill_9_and_the_folder_undoes_no_inline_reload(tmp_path: Path, folder: Path) -> None:
    async with control_plane(tmp_path) as control:
        for top_k in (2, 3):
            assert (await control.call("ReloadPolicySet", inline_reload(top_k))).accepted
        before = await control.in_force()
        await control.kill()
        await control.start()
        assert await control.in_force() == before
        assert await control.document() == top_k_yaml(3)
        listed = await control.call("ListPolicySetRevisions")
        assert [item.generation for item in listed.revisions] == [3, 2, 1]
        (folder / "a.yaml").write_text(top_k_yaml(4))
        await eventually_async(control.document, top_k_yaml(4).__eq__)
        assert (await control.in_force())[1] == 4


async def test_a_folder_changed_while_the_control_plane_was_down_is_taken_at_start(
    tmp_path: Path, folder: Path
) -> None:
    async with control_plane(tmp_path) as control:
        await control.kill()
        (folder / "a.yaml").write_text(top_k_yaml(9))
        await control.start()
        assert await control.document() == top_k_yaml(9)


async def test_a_second_control_plane_on_the_same_port_refuses_to_start(tmp_path: Path, folder: Path) -> None:
    async with control_plane(tmp_path) as control:
        second = ControlProcess(tmp_path / "second", folder, listen=control.address)
        assert await (await second.spawn()).wait() == 1
        assert "is another server running there?" in second.log_file.read_text()
        assert (await control.in_force())[1] == 1


async def test_a_second_control_plane_on_the_same_data_refuses_to_start(tmp_path: Path, folder: Path) -> None:
    async with control_plane(tmp_path) as control:
        second = ControlProcess(control.data_dir, folder)
        assert await (await second.spawn()).wait() == 1
        assert re.search(r"another control plane \(process \d+\) works on", control.log_file.read_text())
        assert (await control.in_force())[1] == 1


async def test_a_wrong_setting_is_named(tmp_path: Path, folder: Path) -> None:
    control = ControlProcess(tmp_path / "control", folder, flags=("--node-key-sha256", "the key itself"))
    assert await (await control.spawn()).wait() == 2
    assert "node-key-sha256: not a SHA-256" in control.log_file.read_text()
    assert "the key itself" not in control.log_file.read_text()


@pytest.mark.parametrize("content", [None, "retrieve_policy:\n  top_kk: 1\n"], ids=["empty folder", "broken folder"])
async def test_without_a_valid_set_administrators_are_served_and_data_planes_get_no_policy(
    tmp_path: Path, folder: Path, content: str | None
) -> None:
    (folder / "a.yaml").unlink()
    if content is not None:
        (folder / "a.yaml").write_text(content)
    async with control_plane(tmp_path) as control, data_plane(node_options(control, tmp_path)) as holder:
        await eventually(lambda: holder.control_plane_connected, bool)
        assert await control.in_force() == ("", 0)
        assert await health(control, "") == SERVING
        assert await health(control, "memplane.v1.PolicyAdminService") == SERVING
        assert await health(control, "memplane.v1.PolicyDiscoveryService") == NOT_SERVING
        assert await health(control, "memplane.v1.PolicyFolder") == NOT_SERVING
        assert holder.current is None
        assert (await control.statuses())["node-1"].sync_state == policy_pb2.SYNC_STATE_NOT_SENT
        assert (await control.call("ReloadPolicySet", inline_reload(2))).accepted
        await asyncio.wait_for(holder.wait_loaded(), 10)


async def test_a_stop_is_quick_with_open_streams_and_leaves_no_process(tmp_path: Path, folder: Path) -> None:
    async with control_plane(tmp_path) as control, data_plane(node_options(control, tmp_path)) as holder:
        await asyncio.wait_for(holder.wait_loaded(), 10)
        assert control.process is not None
        children = psutil.Process(control.process.pid).children(recursive=True)
        assert children
        code = await asyncio.wait_for(control.stop(), 5.0)
        assert code == 0
        await eventually(lambda: any(child.is_running() for child in children), (False).__eq__)


async def test_a_large_set_that_compiles_may_hold_up_a_stop_for_its_grace_alone(tmp_path: Path, folder: Path) -> None:
    async with control_plane(tmp_path, flags=("--stop-grace-s", "2")) as control:
        text = "write_policy:\n" + "".join(f"  key{number}: 1\n" for number in range(60_000))
        documents = [policy_pb2.PolicyDocument(name=f"{name}.yaml", content=text.encode()) for name in "abcdefgh"]
        request = admin_pb2.ReloadPolicySetRequest(inline=admin_pb2.InlineDocuments(documents=documents))
        running = asyncio.create_task(control.call("ReloadPolicySet", request))
        await control.call("GetPolicySetRevision")
        assert await asyncio.wait_for(control.stop(), 8.0) == 0
        with pytest.raises(grpc.aio.AioRpcError):
            await running


async def test_a_killed_control_plane_leaves_no_process(tmp_path: Path, folder: Path) -> None:
    async with control_plane(tmp_path) as control:
        assert control.process is not None
        children = psutil.Process(control.process.pid).children(recursive=True)
        await control.kill()
        await eventually(lambda: any(child.is_running() for child in children), (False).__eq__)
