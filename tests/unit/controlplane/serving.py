"""Both services of the control plane on a real port, in the test's own process."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import grpc

from controlplane.admin_door import AdminDoor
from controlplane.admin_fleet import FleetView
from controlplane.key_changes import KeyChanges
from controlplane.reload import Command, Reloader
from controlplane.server import AdminParts, PolicyAdminServicer
from controlplane.standing import Parts, Standing
from controlplane.stream import PolicyDiscoveryServicer, StreamOptions
from controlplane.watching import FleetWatches
from memplane.policy.access import hash_api_key
from memplane.rpc.interceptors import ErrorInterceptor
from memplane.rpc.limits import CallLimiter
from memplane.v1.policy_admin_service_pb2_grpc import (
    PolicyAdminServiceStub,
    add_PolicyAdminServiceServicer_to_server,
)
from memplane.v1.policy_discovery_service_pb2_grpc import (
    PolicyDiscoveryServiceStub,
    add_PolicyDiscoveryServiceServicer_to_server,
)
from tests.callers import authenticator_of
from tests.unit.controlplane.parts import ADMIN_KEY, NODE_KEY, make_parts, policy

if TYPE_CHECKING:  # the stubs alone know these
    from memplane.v1.policy_admin_service_pb2_grpc import PolicyAdminServiceAsyncStub
    from memplane.v1.policy_discovery_service_pb2_grpc import PolicyDiscoveryServiceAsyncStub

ADMIN = (("authorization", f"Bearer {ADMIN_KEY}"),)
FOLDER_ERROR = "retrieve.yaml:2:3: UNKNOWN_KEY"
NODE = (("authorization", f"Bearer {NODE_KEY}"),)


@dataclass(frozen=True)
class Serving:
    parts: Parts
    reloader: Reloader
    discovery_servicer: PolicyDiscoveryServicer
    watches: FleetWatches
    channel: grpc.aio.Channel
    admin: "PolicyAdminServiceAsyncStub"
    discovery: "PolicyDiscoveryServiceAsyncStub"

    async def put_in_force(self, top_k: int) -> int:
        response = await self.reloader.reload(Command(policy(top_k), "test"))
        return response.revision.generation


@asynccontextmanager
async def serving(
    data: Path, heartbeat_s: float = 60.0, folder: Path | None = None, max_age_s: float = 0.0
) -> AsyncIterator[Serving]:
    parts = await make_parts(data, folder)
    standing = Standing(parts)
    reloader = Reloader(parts, standing)
    await reloader.start()
    options = StreamOptions(hash_api_key(NODE_KEY), heartbeat_s, max_age_s)
    discovery = PolicyDiscoveryServicer(parts.snapshots, parts.fleet, parts.clock, options)
    door = AdminDoor(parts.snapshots, authenticator_of(parts.clock), CallLimiter(asyncio.get_running_loop().time))
    server = grpc.aio.server(
        interceptors=[ErrorInterceptor(lambda _method, _code, _seconds: None, door, stream=door.stream)]
    )
    watches = FleetWatches(parts.fleet, parts.clock, max_age_s)
    view = FleetView(parts.fleet, watches, parts.clock, lambda: FOLDER_ERROR)
    admin = AdminParts(door, reloader, KeyChanges(parts, standing), parts.store, parts.snapshots, view)
    add_PolicyAdminServiceServicer_to_server(PolicyAdminServicer(admin), server)
    add_PolicyDiscoveryServiceServicer_to_server(discovery, server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=[("grpc.use_local_subchannel_pool", 1)])
    try:
        yield Serving(
            parts,
            reloader,
            discovery,
            watches,
            channel,
            PolicyAdminServiceStub(channel),
            PolicyDiscoveryServiceStub(channel),
        )
    finally:
        await channel.close()
        await server.stop(0)
        await parts.store.close()
