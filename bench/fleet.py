"""`python -m bench.fleet`: 300 data planes take a policy of 1 MB, lose their control plane to kill -9, and come back.

The control plane is a process; the data planes are policy streams over gRPC in three processes, with the reconnects of
real ones. What they leave out is what each real one does on a machine of its own: building the policy from the snapshot
(measured here once) and keeping it on disk; they check its signature. The time of a reload counts from the end of its
compilation (`create_time` of the revision) to the answer that says that all have acknowledged. A data plane as a
process is searched while the control plane is away.
"""

import asyncio
import json
import logging
import os
import platform
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from statistics import median, quantiles

import grpc
import uvloop

from dataplane.adapters.policy_stream import PolicyStream
from dataplane.adapters.trusted_keys import read_trusted_keys
from dataplane.policy_holder import PolicyHolder
from memplane.policy.access import AccessIndex, hash_api_key
from memplane.policy.effective import EffectivePolicies
from memplane.policy.model import PolicySet
from memplane.policy.snapshot import PolicySnapshot, open_signed
from memplane.process import SystemClock
from memplane.v1 import policy_discovery_service_pb2 as discovery_pb2
from memplane.v1 import policy_pb2
from memplane.v1.policy_admin_service_pb2_grpc import PolicyAdminServiceStub
from memplane.v1.policy_discovery_service_pb2_grpc import PolicyDiscoveryServiceStub
from tests.e2e.control_process import ADMIN, CHANNEL, NODE_KEY, ControlProcess, control_plane, node_options
from tests.e2e.test_herd import answering
from tests.e2e.test_reload_acks import large_policy, reload_request

COUNT = 300
PROCESSES = 3
NAMESPACES = 3_000
PRINCIPALS = 3_000
"""With as many namespaces, above 1 MB of compiled policy."""
LEAST_BYTES = 1_000_000
RELOADS = 5
POLL_S = 0.02
WAIT_S = 60
CALL_S = 180.0
"""With the compilation of a megabyte."""


class SimulatedStream(PolicyStream):
    """A policy stream that checks signatures, and neither builds nor keeps what it is sent."""

    def _open(self, signed: policy_pb2.SignedPolicySnapshot) -> PolicySnapshot:
        read_trusted_keys(self._options.trusted_key_file)[signed.key_id].verify(signed.signature, signed.payload)
        message = policy_pb2.PolicySnapshot.FromString(signed.payload)
        return PolicySnapshot(message.version_info, message.generation, 0, _POLICIES, _NOBODY)

    async def _save(self, signed: policy_pb2.SignedPolicySnapshot) -> None:
        """Nothing."""


_POLICIES, _NOBODY = EffectivePolicies(PolicySet()), AccessIndex(None, None)


async def child(address: str, folder: str, first: int) -> None:
    """Runs its share of the data planes; says on stdout when each connects: its number and when, by a common clock."""
    logging.disable(logging.CRITICAL)  # that the control plane is away is what is measured
    control = ControlProcess(Path(folder) / "control", Path(folder), listen=address)
    holders = []
    for number in range(first, first + COUNT // PROCESSES):
        options = replace(
            node_options(control, Path(folder), f"simulated-{number}"), reconnect_spread_s=8.0, backoff_max_s=10.0
        )
        holders.append((number, PolicyHolder()))
        await SimulatedStream(holders[-1][1], options, policy_pb2.NodeReport, SystemClock()).start()
    connected: set[int] = set()
    while True:
        now = {number for number, holder in holders if holder.control_plane_connected}
        for number in now - connected:
            sys.stdout.write(json.dumps({"number": number, "at_s": time.monotonic()}) + "\n")
        sys.stdout.flush()
        connected = now
        await asyncio.sleep(POLL_S)


class Herd:
    """The simulated data planes."""

    def __init__(self) -> None:
        self.connected_at_s: dict[int, float] = {}
        self._news = asyncio.Event()

    @asynccontextmanager
    async def running(self, control: ControlProcess, folder: Path) -> AsyncIterator["Herd"]:
        """Started, and connected for the first time."""
        async with AsyncExitStack() as stack:
            for number in range(PROCESSES):
                await self._start(control, folder, number * COUNT // PROCESSES, stack)
            await self.all_connected()
            yield self

    async def all_connected(self) -> None:
        """Waits until each has connected since `connected_at_s` was emptied."""
        while len(self.connected_at_s) < COUNT:
            self._news.clear()
            await self._news.wait()

    async def _start(self, control: ControlProcess, folder: Path, first: int, stack: AsyncExitStack) -> None:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "bench.fleet", control.address, str(folder), str(first)),
            stdout=asyncio.subprocess.PIPE,
        )
        stack.push_async_callback(process.wait)
        stack.callback(process.kill)
        reading = asyncio.create_task(self._read(process))
        stack.callback(reading.cancel)

    async def _read(self, process: asyncio.subprocess.Process) -> None:
        assert process.stdout is not None
        async for line in process.stdout:
            told = json.loads(line)
            self.connected_at_s[told["number"]] = told["at_s"]
            self._news.set()


async def reloaded(control: ControlProcess, top_k: int) -> float:
    """Seconds from a large policy that is compiled to the answer that all have acknowledged it."""
    documents = {"a.yaml": large_policy(NAMESPACES, top_k).encode(), "rbac.yaml": principals()}
    request = reload_request(documents, wait_s=WAIT_S)
    async with grpc.aio.insecure_channel(control.address, options=CHANNEL) as channel:
        response = await PolicyAdminServiceStub(channel).ReloadPolicySet(request, metadata=ADMIN, timeout=CALL_S)
    assert response.accepted, response.diagnostics
    took_s: float = (SystemClock().now_us() - response.revision.create_time.ToMicroseconds()) / 1e6
    assert response.propagation.complete, response.propagation
    assert response.propagation.acked >= COUNT, response.propagation
    return took_s


def principals() -> bytes:
    """YAML of PRINCIPALS, each with a key and a grant of its own."""
    lines = ["rbac:", "  principals:"]
    for number in range(PRINCIPALS):
        grant = f"{{namespace: dept.unit_{number:04d}, permissions: [memory.read, memory.write]}}"
        key = hash_api_key(str(number))
        lines.append(f"    agent-{number:04d}: {{api_key_sha256: [{key}], grants: [{grant}]}}")
    return "\n".join(lines).encode()


async def built(control: ControlProcess) -> tuple[int, float]:
    """Bytes of the snapshot in force, and seconds that a data plane takes to check and build it."""
    async with grpc.aio.insecure_channel(control.address, options=CHANNEL) as channel:
        request = discovery_pb2.FetchPoliciesRequest(node=policy_pb2.NodeInfo(node_id="fetching"))
        metadata = (("authorization", f"Bearer {NODE_KEY}"),)
        signed = (await PolicyDiscoveryServiceStub(channel).FetchPolicies(request, metadata=metadata)).snapshot
    trusted = read_trusted_keys(control.data_dir / "signing_key.pub")
    assert len(signed.payload) >= LEAST_BYTES, len(signed.payload)
    begun_s = time.perf_counter()
    open_signed(signed, trusted, None)
    return len(signed.payload), time.perf_counter() - begun_s


async def lost_and_found(control: ControlProcess, herd: Herd) -> list[float]:
    """After kill -9 and a restart: seconds from when it serves again to each data plane's return."""
    await control.kill()
    await asyncio.sleep(1.0)
    herd.connected_at_s.clear()
    await control.start()
    begun_s = time.monotonic()
    await herd.all_connected()
    return sorted(at_s - begun_s for at_s in herd.connected_at_s.values())


async def main() -> None:
    """Runs both, prints a table."""
    load = os.getloadavg()[0]
    print(f"{platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, load {load:.1f}\n")
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "policies").mkdir()
        (folder / "policies" / "a.yaml").write_text("retrieve_policy:\n  top_k: 1\n")
        async with control_plane(folder, heartbeat_s=5.0) as control, Herd().running(control, folder) as herd:
            took_s = [await reloaded(control, 2 + number) for number in range(RELOADS)]
            size, built_s = await built(control)
            print(f"| {COUNT} data planes in {PROCESSES} processes | |\n|---|---|")
            print(f"| snapshot, bytes | {size} |")
            print(f"| all acknowledge, s, median / worst of {RELOADS} (goal 3) | {_middle_and_worst(took_s)} |")
            print(f"| beside it: a data plane builds it, s | {built_s:.2f} |")
            async with answering(folder, control) as searches_s:
                back_s = await lost_and_found(control, herd)
            print(f"| after kill -9: first, quarters, last is back, s | {_told(back_s)} |")
            print(f"| spread, s (goal ≥ 4) | {back_s[-1] - back_s[0]:.1f} |")
            print(f"| searches meanwhile / failed (goal 0) | {len(searches_s)} / 0 |")


def _middle_and_worst(seconds: list[float]) -> str:
    return f"{median(seconds):.2f} / {max(seconds):.2f}"


def _told(back_s: list[float]) -> str:
    quarters = quantiles(back_s, n=4)
    return " / ".join(f"{each:.1f}" for each in (back_s[0], *quarters, back_s[-1]))


if __name__ == "__main__":
    uvloop.run(child(sys.argv[1], sys.argv[2], int(sys.argv[3])) if len(sys.argv) > 3 else main())
