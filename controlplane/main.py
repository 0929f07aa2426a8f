"""Starts a control plane: builds every part, wires them, serves, and stops in order."""

import asyncio
import logging
import sqlite3
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from dataclasses import dataclass

import grpc
import uvloop
from grpc_health.v1 import health

from controlplane.admin_door import AdminDoor
from controlplane.admin_fleet import FleetView
from controlplane.compiler import ProcessCompiler
from controlplane.config import ControlPlaneConfig, read_config
from controlplane.fleet import Fleet
from controlplane.key_changes import KeyChanges
from controlplane.keys import BadSigningKey, load_or_make_key
from controlplane.metrics import ControlPlaneMetrics
from controlplane.reload import Reloader
from controlplane.revisions import UnusableStore
from controlplane.server import AdminParts, PolicyAdminServicer
from controlplane.snapshots import SnapshotBuilder, Snapshots
from controlplane.standing import Parts, Standing
from controlplane.stores import holder_id, open_store
from controlplane.stream import PolicyDiscoveryServicer, StreamOptions
from controlplane.watch import FolderWatch, WatchOptions
from controlplane.watching import FleetWatches
from memplane.authentication.running import authenticating
from memplane.errors import MemPlaneError
from memplane.process import (
    FolderInUse,
    SystemClock,
    announce,
    end_with_parent,
    lock_folder,
    log_to_stderr,
    say_ready,
    told_to_stop,
)
from memplane.rpc.certificate_metrics import tell_of_certificates
from memplane.rpc.certificate_watch import CertificateWatch
from memplane.rpc.certificates import BadCertificate
from memplane.rpc.interceptors import ErrorInterceptor
from memplane.rpc.lifetime import Lifetime, Underway, drain, finish
from memplane.rpc.limits import CallLimiter
from memplane.rpc.metrics import metrics_served
from memplane.rpc.server import AddressInUse, add_health_and_reflection, new_server, set_health
from memplane.rpc.tls import bind_with
from memplane.settings import BadConfig
from memplane.v1.policy_admin_service_pb2_grpc import add_PolicyAdminServiceServicer_to_server
from memplane.v1.policy_discovery_service_pb2_grpc import add_PolicyDiscoveryServiceServicer_to_server

log = logging.getLogger("memplane.controlplane")

ADMIN = "memplane.v1.PolicyAdminService"
DISCOVERY = "memplane.v1.PolicyDiscoveryService"
FOLDER = "memplane.v1.PolicyFolder"
"""Health name of the watched folder: SERVING while its content is not refused and the watch is alive."""
_HEALTH_POLL_S = 0.5


@dataclass(frozen=True, slots=True)
class ControlPlane:
    """Everything that runs, built and wired."""

    snapshots: Snapshots
    standing: Standing
    reloader: Reloader
    discovery: PolicyDiscoveryServicer
    watches: FleetWatches
    watch: FolderWatch | None
    server: grpc.aio.Server
    health: health.aio.HealthServicer
    port: int
    underway: Underway
    certificates: CertificateWatch | None


async def serve(config: ControlPlaneConfig) -> None:
    """Serves until SIGTERM or SIGINT, then drains.

    Raises FolderInUse, AddressInUse, BadCertificate, BadSigningKey, UnusableStore or OSError.
    """
    async with AsyncExitStack() as stack:
        stack.enter_context(lock_folder(config.data_dir, "control plane"))
        plane = await _build(config, stack)
        background = [asyncio.create_task(_tell_health(plane), name="health")]
        if plane.certificates is not None:
            background.append(asyncio.create_task(plane.certificates.run(), name="certificates"))
        await plane.reloader.start()
        background.append(asyncio.create_task(plane.standing.follow(), name="revisions"))
        if plane.watch is not None:
            await plane.watch.look()
            background.append(asyncio.create_task(plane.watch.run(), name="policy-folder"))
        told = told_to_stop()
        end_with_parent(config.parent_pid)
        await plane.server.start()
        address = f"{config.listen.rpartition(':')[0]}:{plane.port}"
        log.info("serving on %s", address)
        announce(config.ready_file, address)
        say_ready(config.announce, "control", address)
        await told.wait()
        await _stop(plane, background, config.lifetime)


async def _build(config: ControlPlaneConfig, stack: AsyncExitStack) -> ControlPlane:
    key = load_or_make_key(config.signing_key_file)
    clock, fleet = SystemClock(), Fleet()
    builder = SnapshotBuilder(key, config.bootstrap_admin_sha256)
    snapshots = Snapshots(builder.access_without_policy())
    metrics = ControlPlaneMetrics()
    underway = Underway()
    authenticator = await stack.enter_async_context(authenticating(config.tokens, clock))
    door = AdminDoor(snapshots, authenticator, CallLimiter(asyncio.get_running_loop().time))
    interceptor = ErrorInterceptor(metrics.calls.count, underway.around(door), door.stream)
    server = new_server([interceptor], config.lifetime.options())
    port, certificates = bind_with(server, config.listen, config.tls, clock)
    tell_of_certificates(metrics.registry, [certificates] if certificates else [], clock)
    store = await open_store(config.revisions_file, config.revisions_dsn)
    stack.push_async_callback(store.close)
    compiler = ProcessCompiler(bootstrap_admin=config.bootstrap_admin_sha256 is not None)
    holder = holder_id(config.data_dir)
    parts = Parts(store, compiler, builder, snapshots, fleet, clock, holder, config.policy_folder)
    standing = Standing(parts)
    reloader = Reloader(parts, standing)
    stack.push_async_callback(standing.drain)
    stack.push_async_callback(compiler.close)
    discovery = PolicyDiscoveryServicer(
        snapshots,
        fleet,
        clock,
        StreamOptions(config.node_key_sha256, config.heartbeat_s, config.lifetime.max_connection_age_s),
    )
    watch = FolderWatch(config.policy_folder, reloader, WatchOptions()) if config.policy_folder else None
    metrics.tell_of(fleet, lambda: watch.problem if watch else "")
    stack.enter_context(metrics_served(metrics.registry, config.metrics_listen))
    watches = FleetWatches(fleet, clock, config.lifetime.max_connection_age_s)
    view = FleetView(fleet, watches, clock, lambda: watch.problem if watch else "")
    admin = AdminParts(door, reloader, KeyChanges(parts, standing), store, snapshots, view)
    add_PolicyAdminServiceServicer_to_server(PolicyAdminServicer(admin), server)
    add_PolicyDiscoveryServiceServicer_to_server(discovery, server)
    servicer = add_health_and_reflection(server, (ADMIN, DISCOVERY))
    return ControlPlane(
        snapshots, standing, reloader, discovery, watches, watch, server, servicer, port, underway, certificates
    )


async def _tell_health(plane: ControlPlane) -> None:
    while True:
        await set_health(plane.health, "", serving=True)
        await set_health(plane.health, ADMIN, serving=True)
        await set_health(
            plane.health, DISCOVERY, serving=plane.snapshots.current is not None and not plane.standing.problem
        )
        if plane.watch is not None:
            await set_health(plane.health, FOLDER, serving=not plane.watch.problem)
        await asyncio.sleep(_HEALTH_POLL_S)


async def _stop(plane: ControlPlane, background: Sequence[asyncio.Task[None]], lifetime: Lifetime) -> None:
    log.info("stopping: calls are taken for another %g s", lifetime.drain_s)
    await drain(plane.health, lifetime)
    plane.discovery.close()
    plane.watches.close()
    await finish(plane.server, plane.underway, lifetime)
    for task in background:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
    log.info("stopped")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a control plane; the exit code is 0 after a stop, 1 when it cannot run, 2 for a wrong setting."""
    log_to_stderr()
    try:
        uvloop.run(serve(read_config(sys.argv[1:] if arguments is None else arguments)))
    except (BadConfig, BadCertificate) as error:
        sys.stderr.write(f"memplane control: {error}\n")
        return 2
    except (AddressInUse, FolderInUse, BadSigningKey, UnusableStore, MemPlaneError, sqlite3.Error, OSError) as error:
        sys.stderr.write(f"memplane control: {error}\n")
        return 1
    except KeyboardInterrupt:  # Ctrl-C before there was something to stop in order
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
