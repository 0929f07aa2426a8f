"""A data plane as a process of its own, beside `control_process`."""

import asyncio
import json
import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from memplane.policy.access import hash_api_key
from memplane.v1.memory_service_pb2_grpc import MemoryServiceStub
from tests.deadline import eventually, eventually_async
from tests.e2e.control_process import ADMIN_KEY, NODE_KEY

READS = "memplane.v1.MemoryService"
WRITES = "memplane.v1.MemoryService.Write"


@dataclass
class DataProcess:
    """Starts, kills and calls one data plane; its folder outlives it."""

    data_dir: Path
    control: str
    trusted_key: Path
    flags: Sequence[str] = field(default_factory=tuple)
    process: asyncio.subprocess.Process | None = None
    address: str = ""
    embedder: str = "hash"
    program: Sequence[str] = ("dataplane.main",)
    """The module and what comes before the flags."""

    @property
    def log_file(self) -> Path:
        return self.data_dir.with_name(self.data_dir.name + ".log")

    @property
    def last_good(self) -> Path:
        return self.data_dir / "last_good_policy.binpb"

    async def start(self, within_s: float = 30.0) -> None:
        """Starts it and waits until it answers calls (perhaps with no policy)."""
        ready = self.data_dir.with_name(self.data_dir.name + ".ready")
        ready.unlink(missing_ok=True)
        flags = {
            "--listen": "127.0.0.1:0",
            "--metrics-listen": "none",
            "--drain-s": "0",
            "--data-dir": str(self.data_dir),
            "--control": self.control,
            "--trusted-key": str(self.trusted_key),
            "--node-key": NODE_KEY,
            "--bootstrap-admin-sha256": hash_api_key(ADMIN_KEY),
            "--embedder": self.embedder,
            "--ready-file": str(ready),
        }
        arguments = [part for flag in flags.items() for part in flag]
        with self.log_file.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-m", *self.program, *arguments, *self.flags, stdout=log, stderr=log
            )
        self.process = process
        await eventually(lambda: ready.exists() or process.returncode is not None, bool, within_s)
        assert process.returncode is None, f"{self.log_file.read_text()}exit code {process.returncode}"
        self.address = str(json.loads(ready.read_text())["address"])

    async def kill(self) -> None:
        """kill -9."""
        await self._end(signal.SIGKILL)

    async def stop(self) -> None:
        """SIGTERM; the exit code must be 0."""
        assert await self._end(signal.SIGTERM) == 0, self.log_file.read_text()

    async def _end(self, number: signal.Signals) -> int:
        assert self.process is not None
        if self.process.returncode is None:
            self.process.send_signal(number)
        return await asyncio.wait_for(self.process.wait(), 30)

    def channel(self) -> grpc.aio.Channel:
        """A channel of its own."""
        return grpc.aio.insecure_channel(self.address, options=[("grpc.use_local_subchannel_pool", 1)])

    async def serves(self, service: str) -> bool:
        """What health says of a service."""
        async with self.channel() as channel:
            answer = await health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service=service))
        return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)

    async def wait_ready(self, within_s: float = 30.0) -> None:
        """Waits until it serves writes."""
        await eventually_async(lambda: self.serves(WRITES), bool, within_s)


def stub_of(channel: grpc.aio.Channel) -> MemoryServiceStub:
    """The stub of a channel."""
    return MemoryServiceStub(channel)
