"""Keys made and revoked by the command line, and tokens, on a control plane and data planes as processes."""

import asyncio
import sys
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import grpc
import pytest

from memplane.cli.config import plane_environment
from memplane.v1 import memory_service_pb2 as pb
from memplane.v1.memory_service_pb2_grpc import MemoryServiceStub
from tests.deadline import eventually_async
from tests.e2e.commands import memplane
from tests.e2e.control_process import ADMIN_KEY, ControlProcess
from tests.e2e.data_process import DataProcess
from tests.tokens import AUDIENCE, ISSUER, Issuer, key_set

POLICY = """\
write_policy: {threshold: 0.0, short_term_threshold: 0.0}
rbac:
  groups:
    legal: {claims: [legal], grants: [{namespace: dept.legal, permissions: [memory.read]}]}
  principals:
    sales-agent:
      grants: [{namespace: dept.sales, permissions: [memory.read]}]
"""
ISSUES = Issuer()


def token_flags(jwks: Path) -> tuple[str, ...]:
    given = {"jwt-issuer": ISSUER, "jwt-audience": AUDIENCE, "jwt-jwks": str(jwks), "jwt-algorithms": "ES256"}
    return tuple(part for name, value in given.items() for part in (f"--{name}", value))


@pytest.fixture
async def planes(tmp_path: Path) -> AsyncIterator[tuple[ControlProcess, list[DataProcess]]]:
    folder, jwks = tmp_path / "policies", tmp_path / "jwks.json"
    folder.mkdir()
    (folder / "policy.yaml").write_text(POLICY)
    jwks.write_bytes(key_set(ISSUES))
    control = ControlProcess(tmp_path / "control", folder, flags=token_flags(jwks))
    async with AsyncExitStack() as stack:
        await control.start()
        stack.push_async_callback(control.stop)
        trusted = control.data_dir / "signing_key.pub"
        data = [
            DataProcess(tmp_path / f"data-{number}", control.address, trusted, (*token_flags(jwks), *named(number)))
            for number in range(2)
        ]
        for each in data:
            await each.start()
            stack.push_async_callback(each.stop)
            await eventually_async(lambda each=each: read(each, ADMIN_KEY), is_ok, 30)  # type: ignore[misc]  # bound
        yield control, data


def named(number: int) -> tuple[str, str]:
    return ("--node-id", f"data-{number}")


def is_ok(code: grpc.StatusCode) -> bool:
    return code is grpc.StatusCode.OK


async def read(plane: DataProcess, bearer: str, namespace: str = "dept.sales") -> grpc.StatusCode:
    async with grpc.aio.insecure_channel(plane.address) as channel:
        try:
            await MemoryServiceStub(channel).ListMemories(
                pb.ListMemoriesRequest(namespace=namespace), metadata=(("authorization", f"Bearer {bearer}"),)
            )
        except grpc.aio.AioRpcError as error:
            return error.code()
    return grpc.StatusCode.OK


async def test_a_key_opens_every_data_plane_and_none_once_it_is_revoked(
    planes: tuple[ControlProcess, list[DataProcess]], tmp_path: Path
) -> None:
    control, data = planes
    where = {"MEMPLANE_CONTROL": control.address, "MEMPLANE_API_KEY": ADMIN_KEY}
    made = await memplane("keys", "create", "sales-agent", "--description", "a test", cwd=tmp_path, env=where)
    assert made.code == 0, made.stderr
    key = made.stdout.strip()
    assert key.startswith("mpk_")
    assert key not in made.stderr
    (known,) = (await memplane("keys", "list", "--json", cwd=tmp_path, env=where)).json
    assert (known["principal"], known["author"]) == ("sales-agent", "bootstrap-admin")
    for plane in data:
        await eventually_async(lambda plane=plane: read(plane, key), is_ok)  # type: ignore[misc]  # bound
        assert await read(plane, key, "dept.legal") is grpc.StatusCode.PERMISSION_DENIED
        legal = ISSUES.token({"groups": ["legal"], "exp": int(time.time()) + 600})
        assert await read(plane, legal, "dept.legal") is grpc.StatusCode.OK
        ended = ISSUES.token({"groups": ["legal"], "exp": int(time.time()) - 60})
        assert await read(plane, ended, "dept.legal") is grpc.StatusCode.UNAUTHENTICATED
    revoked = await memplane("keys", "revoke", known["key_id"], "--wait", "20", cwd=tmp_path, env=where)
    assert revoked.code == 0, revoked.stdout + revoked.stderr
    assert "2 acknowledged" in revoked.stdout
    for plane in data:
        assert await read(plane, key) is grpc.StatusCode.UNAUTHENTICATED
    for each in (control.log_file, *(plane.log_file for plane in data)):
        assert key not in each.read_text()


@pytest.mark.parametrize(
    ("flags", "told"),
    [
        (("--jwt-issuer", ISSUER), "jwt-audience: is required beside jwt-issuer"),
        (token_flags(Path("/nowhere/jwks.json")), "jwt-jwks: /nowhere/jwks.json: No such file or directory"),
    ],
    ids=["half", "no file"],
)
async def test_half_configured_tokens_end_the_start(flags: tuple[str, ...], told: str, tmp_path: Path) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        *("-m", "controlplane.main", "--listen", "127.0.0.1:0", "--metrics-listen", "none"),
        *("--data-dir", str(tmp_path / "control"), *flags),
        env=plane_environment({}),
        stderr=asyncio.subprocess.PIPE,
    )
    _, said = await process.communicate()
    assert process.returncode == 2
    assert told in said.decode()
