"""A data plane follows its policy while the certificates, keys and authorities of both ends are rotated."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from controlplane.keys import load_or_make_key
from controlplane.reload import Command, Reloader
from controlplane.stream import PolicyDiscoveryServicer, StreamOptions
from dataplane.adapters.control_channel import ControlTls
from dataplane.adapters.policy_stream import PolicyStream, PolicyStreamOptions
from dataplane.policy_holder import PolicyHolder
from memplane.policy.access import hash_api_key
from memplane.process import SystemClock
from memplane.rpc.certificate_watch import CertificateWatch, WatchOptions
from memplane.rpc.certificates import TlsFiles
from memplane.rpc.server import new_server
from memplane.rpc.tls import bind_with
from memplane.rpc.tls_settings import ServerTls
from memplane.v1 import policy_discovery_service_pb2 as discovery_pb2
from memplane.v1 import policy_pb2
from memplane.v1.policy_discovery_service_pb2_grpc import add_PolicyDiscoveryServiceServicer_to_server
from tests.certificates import Authority, Pair, write_pair
from tests.deadline import eventually
from tests.unit.controlplane.parts import NODE_KEY, make_parts, policy, started

ROTATIONS = 4
QUICK = WatchOptions(poll_s=0.02, settle_s=0.01)


class Discovery(PolicyDiscoveryServicer):
    """The real one, which notes whose certificate each stream shows."""

    shown: list[str]

    async def StreamPolicies(  # noqa: N802 - named by the contract
        self, request_iterator: Any, context: Any
    ) -> AsyncIterator[discovery_pb2.StreamPoliciesResponse]:
        self.shown.append(b"".join(context.auth_context()["x509_common_name"]).decode())
        async for response in super().StreamPolicies(request_iterator, context):
            yield response


def write(folder: Path, pair: Pair, authorities: bytes) -> TlsFiles:
    certificate, key = write_pair(folder, pair)
    (folder / "ca.crt").write_bytes(authorities)
    return TlsFiles(certificate, key, folder / "ca.crt")


@dataclass
class Planes:
    """A control plane's discovery service, and the part of a data plane that follows it."""

    reloader: Reloader
    discovery: Discovery
    stream: PolicyStream
    holder: PolicyHolder
    server_watch: CertificateWatch
    channel_watch: CertificateWatch

    async def renewed(self, streams: int) -> None:
        """Until the server uses what is on disk, and a stream made with it is open."""
        await self.server_watch.look()
        assert self.server_watch.problem == ""
        await eventually(lambda: len(self.discovery.shown), lambda count: count > streams, 30)
        await eventually(lambda: self.holder.control_plane_connected, bool, 30)

    def generation(self) -> int:
        """Of the policy that the data plane has."""
        return self.holder.current.generation if self.holder.current else 0

    async def put_in_force(self, top_k: int) -> int:
        return (await self.reloader.reload(Command(policy(top_k), "test"))).revision.generation


@asynccontextmanager
async def planes(folder: Path, authority: Authority) -> AsyncIterator[Planes]:
    clock = SystemClock()
    files = write(folder / "server", authority.sign(), authority.pem)
    own = write(folder / "client", authority.agent("spiffe://corp.example/data", name="node-0"), authority.pem)
    parts = await make_parts(folder, key=load_or_make_key(folder / "signing_key.pem"))
    discovery = Discovery(parts.snapshots, parts.fleet, clock, StreamOptions(hash_api_key(NODE_KEY), 0.1))
    discovery.shown = []
    server = new_server([])
    add_PolicyDiscoveryServiceServicer_to_server(discovery, server)
    port, server_watch = bind_with(server, "127.0.0.1:0", ServerTls(files, require_client=True), clock)
    assert server_watch is not None
    await server.start()
    channel_watch, holder = CertificateWatch(own, "client", clock, QUICK), PolicyHolder()
    options = PolicyStreamOptions(
        control_address=f"127.0.0.1:{port}",
        node_key=NODE_KEY,
        node=policy_pb2.NodeInfo(node_id="data-1"),
        trusted_key_file=folder / "signing_key.pub",
        last_good_file=folder / "last_good",
        tls=ControlTls(channel_watch),
    )
    stream = PolicyStream(holder, options, policy_pb2.NodeReport, clock)
    await channel_watch.look()
    following = asyncio.create_task(channel_watch.run())
    await stream.start()
    yield Planes(await started(parts), discovery, stream, holder, server_watch, channel_watch)
    await stream.stop()
    following.cancel()
    await server.stop(0)
    await parts.store.close()


@pytest.mark.slow
async def test_both_ends_are_rotated_and_the_policy_stream_never_fails(tmp_path: Path) -> None:
    before = Authority("authority-0")
    async with planes(tmp_path, before) as made:
        await made.renewed(0)
        for number in range(1, ROTATIONS + 1):
            after = Authority(f"authority-{number}")
            both = before.pem + after.pem
            streams = len(made.discovery.shown)
            for folder in ("server", "client"):
                (tmp_path / folder / "ca.crt").write_bytes(both)
            await made.renewed(streams)
            streams = len(made.discovery.shown)
            write_pair(tmp_path / "server", after.sign())
            write_pair(tmp_path / "client", after.agent("spiffe://corp.example/data", name=f"node-{number}"))
            await made.renewed(streams)
            streams = len(made.discovery.shown)
            for folder in ("server", "client"):
                (tmp_path / folder / "ca.crt").write_bytes(after.pem)
            await made.renewed(streams)
            before = after
            generation = await made.put_in_force(number)
            await eventually(made.generation, generation.__eq__, 30)
    assert made.stream.failure_count == 0
    assert made.discovery.shown[-1] == f"node-{ROTATIONS}"
    assert made.channel_watch.problem == ""


async def test_files_that_cannot_be_used_leave_the_stream_open_with_those_before(tmp_path: Path) -> None:
    authority = Authority()
    async with planes(tmp_path, authority) as made:
        await made.renewed(0)
        pair = Authority("other").agent("spiffe://corp.example/data", name="stranger")
        (tmp_path / "client" / "tls.crt").write_bytes(pair.certificate)
        await eventually(lambda: made.channel_watch.problem, bool)
        assert "does not fit the key" in made.channel_watch.problem
        assert made.holder.control_plane_connected
        (told,) = (each for each in made.channel_watch.statuses() if each.purpose == "client")
        assert (told.subject, told.problem) == ("CN=node-0", made.channel_watch.problem)
    assert made.discovery.shown == ["node-0"]
    assert made.stream.failure_count == 0
