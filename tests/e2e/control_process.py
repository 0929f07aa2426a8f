"""A control plane as a process of its own, and a data plane's policy stream to go with it."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from dataplane.adapters.policy_stream import PolicyStream, PolicyStreamOptions
from dataplane.policy_holder import PolicyHolder
from memplane.policy.access import hash_api_key
from memplane.process import SystemClock
from memplane.v1 import policy_admin_service_pb2 as admin_pb2
from memplane.v1 import policy_pb2
from memplane.v1.policy_admin_service_pb2_grpc import PolicyAdminServiceStub
from tests.deadline import eventually
from tests.servers.process import free_port

ADMIN_KEY = "mpk_admin-key"
NODE_KEY = "node-key"
ADMIN = (("authorization", f"Bearer {ADMIN_KEY}"),)
CHANNEL = (("grpc.use_local_subchannel_pool", 1), ("grpc.max_receive_message_length", 64 * 1024 * 1024))


@dataclass
class ControlProcess:
    """Starts, kills and calls one control plane; its folders outlive it."""

    data_dir: Path
    folder: Path
    listen: str = field(default_factory=lambda: f"127.0.0.1:{free_port()}")
    heartbeat_s: float = 0.5
    process: asyncio.subprocess.Process | None = None
    address: str = ""
    flags: Sequence[str] = field(default_factory=tuple)

    @property
    def log_file(self) -> Path:
        return self.data_dir.with_name(self.data_dir.name + ".log")

    @property
    def _ready_file(self) -> Path:
        return self.data_dir.with_name(self.data_dir.name + ".ready")

    async def spawn(self) -> asyncio.subprocess.Process:
        """Starts the process and does not wait for it to serve."""
        flags: Mapping[str, str] = {
            "--listen": self.listen,
            "--metrics-listen": "none",
            "--drain-s": "0",
            "--data-dir": str(self.data_dir),
            "--policy-folder": str(self.folder),
            "--bootstrap-admin-sha256": hash_api_key(ADMIN_KEY),
            "--node-key-sha256": hash_api_key(NODE_KEY),
            "--heartbeat-s": str(self.heartbeat_s),
            "--ready-file": str(self._ready_file),
        }
        arguments = [part for flag in flags.items() for part in flag]
        with self.log_file.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", "controlplane.main", *arguments, *self.flags, stdout=log, stderr=log
            )
        return self.process

    async def start(self, within_s: float = 30.0) -> None:
        """Starts it and waits until it serves; its port is the same over restarts, and no connection is given it."""
        self._ready_file.unlink(missing_ok=True)
        process = await self.spawn()
        await eventually(lambda: self._ready_file.exists() or process.returncode is not None, bool, within_s)
        assert process.returncode is None, f"{self.log_file.read_text()}exit code {process.returncode}"
        self.address = str(json.loads(self._ready_file.read_text())["address"])

    async def kill(self) -> None:
        """kill -9."""
        await self._end(signal.SIGKILL)

    async def stop(self) -> int:
        """SIGTERM; returns the exit code."""
        return await self._end(signal.SIGTERM)

    async def _end(self, number: signal.Signals) -> int:
        assert self.process is not None
        if self.process.returncode is None:
            os.kill(self.process.pid, number)
        return await self.process.wait()

    async def call(self, method: str, request: Any = None) -> Any:
        """Calls PolicyAdminService as the bootstrap administrator."""
        made = getattr(admin_pb2, f"{method}Request")() if request is None else request
        async with grpc.aio.insecure_channel(self.address, options=CHANNEL) as channel:
            return await getattr(PolicyAdminServiceStub(channel), method)(made, metadata=ADMIN, timeout=60)

    async def in_force(self) -> tuple[str, int]:
        """Version and generation."""
        response = await self.call("ListDataPlaneStatuses")
        return response.version_info, response.generation

    async def document(self, name: str = "a.yaml") -> str:
        """Text of one document of the revision in force; empty when there is none."""
        try:
            return await self.document_of(0, name)
        except grpc.aio.AioRpcError as error:
            if error.code() == grpc.StatusCode.NOT_FOUND:
                return ""
            raise

    async def document_of(self, generation: int, name: str) -> str:
        """Text of one document of a revision; empty when it has no such."""
        request = admin_pb2.GetPolicySetRevisionRequest(generation=generation)
        documents = (await self.call("GetPolicySetRevision", request)).revision.documents
        return next((item.content.decode() for item in documents if item.name == name), "")

    async def log(self) -> str:
        """What it has logged."""
        return self.log_file.read_text()

    async def statuses(self) -> dict[str, policy_pb2.DataPlaneStatus]:
        """What the control plane says of each data plane."""
        response = await self.call("ListDataPlaneStatuses")
        return {item.node.node_id: item for item in response.data_planes}


@asynccontextmanager
async def control_plane(tmp_path: Path, **fields: Any) -> AsyncIterator[ControlProcess]:
    """A control plane that serves, on new folders or those that an earlier one left."""
    folder = tmp_path / "policies"
    folder.mkdir(exist_ok=True)
    control = ControlProcess(tmp_path / "control", folder, **fields)
    await control.start()
    try:
        yield control
    finally:
        await control.kill()


def node_options(control: ControlProcess, tmp_path: Path, node_id: str = "node-1") -> PolicyStreamOptions:
    node = policy_pb2.NodeInfo(node_id=node_id)
    node.start_time.GetCurrentTime()
    return PolicyStreamOptions(
        control_address=control.address or control.listen,
        node_key=NODE_KEY,
        node=node,
        trusted_key_file=control.data_dir / "signing_key.pub",
        last_good_file=tmp_path / f"{node_id}.last_good",
        bootstrap_admin_sha256=hash_api_key(ADMIN_KEY),
        reconnect_spread_s=0.2,
        backoff_max_s=0.5,
    )


@asynccontextmanager
async def data_plane(options: PolicyStreamOptions) -> AsyncIterator[PolicyHolder]:
    """A policy stream as a data plane runs it; yields its holder."""
    holder = PolicyHolder()
    stream = PolicyStream(holder, options, lambda: policy_pb2.NodeReport(memory_count=1), SystemClock())
    await stream.start()
    try:
        yield holder
    finally:
        await stream.stop()


def foreign_key(path: Path) -> Path:
    """Writes a public key that has signed nothing."""
    key = Ed25519PrivateKey.generate().public_key()
    path.write_bytes(key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    return path


def generation_of(holder: PolicyHolder) -> int:
    return holder.current.generation if holder.current is not None else 0


def top_k_yaml(top_k: int) -> str:
    return f"retrieve_policy:\n  top_k: {top_k}\n"
