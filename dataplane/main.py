"""Starts a data plane: opens its stores, wires the rest, serves, and stops in order."""

import asyncio
import logging
import shutil
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

import grpc
import uvloop
from google.longrunning import operations_pb2_grpc
from grpc_health.v1 import health

from dataplane.adapters.control_channel import ControlTls
from dataplane.adapters.policy_stream import PolicyStream, PolicyStreamOptions
from dataplane.adapters.sqlite.connection import StoreInUse
from dataplane.adapters.sqlite.migrate import SchemaTooNew
from dataplane.adapters.system import running_s
from dataplane.adapters.trusted_keys import NoTrustedKey, read_trusted_keys
from dataplane.adapters.witness_file import WitnessFile
from dataplane.config import DataPlaneConfig, read_config
from dataplane.ending import end
from dataplane.errors import Misconfigured
from dataplane.examine import Examiner
from dataplane.health import READS, HealthChecks, HealthParts
from dataplane.index_watch import IndexWatch, WatchOptions
from dataplane.metrics import DataPlaneMetrics
from dataplane.pipelines.beacons import Beacons
from dataplane.policy_holder import PolicyHolder
from dataplane.report import Calls, Reporter
from dataplane.server.admission import CallAdmission
from dataplane.server.callers import Callers
from dataplane.server.maintenance_service import MaintenanceService
from dataplane.server.memory_service import MemoryService
from dataplane.server.operations import SERVICE as OPERATIONS
from dataplane.server.operations import OperationsService
from dataplane.server.stale import StaleDoor
from dataplane.stores import CannotOpen, Stores, open_stores
from dataplane.wiring import Surroundings, Wired, beacons_over, wire
from memplane import __version__
from memplane.authentication.running import authenticating
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
from memplane.rpc.interceptors import CallCounter, ErrorInterceptor
from memplane.rpc.lifetime import Lifetime, Underway, drain, finish
from memplane.rpc.limits import CallLimiter
from memplane.rpc.metrics import metrics_served
from memplane.rpc.server import AddressInUse, add_health_and_reflection, new_server
from memplane.rpc.tls import bind_with
from memplane.settings import BadConfig
from memplane.v1 import policy_pb2
from memplane.v1.maintenance_service_pb2_grpc import add_MaintenanceServiceServicer_to_server
from memplane.v1.memory_service_pb2_grpc import add_MemoryServiceServicer_to_server

log = logging.getLogger("memplane.dataplane")

MAINTENANCE = "memplane.v1.MaintenanceService"


@dataclass(frozen=True, slots=True)
class Certificates:
    """What follows the files of the port and of the channel to the control plane; None: in clear."""

    port: CertificateWatch | None
    channel: CertificateWatch | None

    @property
    def watches(self) -> list[CertificateWatch]:
        """Those that there are."""
        return [each for each in (self.port, self.channel) if each is not None]

    def statuses(self) -> list[policy_pb2.CertificateStatus]:
        """Every certificate in use."""
        return [status for watch in self.watches for status in watch.statuses()]


@dataclass(frozen=True, slots=True)
class _Telling:
    """What is made before the stores are open: who calls, under which policy, and what became of calls."""

    calls: Calls
    metrics: DataPlaneMetrics
    admission: CallAdmission
    callers: Callers
    holder: PolicyHolder


@dataclass(frozen=True, slots=True)
class DataPlane:
    """Everything that runs, built and wired."""

    stores: Stores
    wired: Wired
    stream: PolicyStream
    examiner: Examiner
    watch: IndexWatch
    beacons: Beacons
    checks: HealthChecks
    reporter: Reporter
    certificates: Certificates
    server: grpc.aio.Server
    health: health.aio.HealthServicer


async def serve(config: DataPlaneConfig) -> None:
    """Serves until SIGTERM or SIGINT, then drains.

    Raises NoTrustedKey, BadCertificate, FolderInUse, AddressInUse, StoreInUse, SchemaTooNew, Misconfigured, CannotOpen
    or OSError.
    """
    read_trusted_keys(config.trusted_key)  # a wrong file would never let a policy in
    async with AsyncExitStack() as stack:
        stack.enter_context(lock_folder(config.data_dir, "data plane"))
        calls, metrics = Calls(), DataPlaneMetrics()
        holder = PolicyHolder(running_s)
        authenticator = await stack.enter_async_context(authenticating(config.tokens, SystemClock()))
        callers = Callers(holder.require, authenticator)
        limiter = CallLimiter(asyncio.get_running_loop().time)
        admission = CallAdmission(callers, limiter, metrics.observe_admission)
        telling = _Telling(calls, metrics, admission, callers, holder)
        underway = Underway()
        door = StaleDoor(admission, lambda: holder.stale_action)
        interceptor = ErrorInterceptor(_both(calls, metrics), underway.around(door), door.stream)
        server = new_server([interceptor], config.lifetime.options())
        port, certificates = _bind(config, server)
        tell_of_certificates(metrics.registry, certificates.watches, SystemClock())
        address = f"{config.listen.rpartition(':')[0]}:{port}"
        stack.enter_context(metrics_served(metrics.registry, config.metrics_listen))
        stores = await open_stores(config, stack, SystemClock(), metrics.observe_backend)
        plane = _build(config, stores, server, telling, (address, certificates))
        background = await _start(plane, paused=config.projector_paused)
        told = told_to_stop()
        end_with_parent(config.parent_pid)
        await server.start()
        log.info("serving on %s", address)
        announce(config.ready_file, address)
        say_ready(config.announce, "data", address)
        await told.wait()
        await _stop(plane, background, underway, config.lifetime)


def _bind(config: DataPlaneConfig, server: grpc.aio.Server) -> tuple[int, Certificates]:
    clock = SystemClock()
    port, watch = bind_with(server, config.listen, config.tls, clock)
    channel = CertificateWatch(config.control_tls.files, "client", clock) if config.control_tls else None
    return port, Certificates(watch, channel)


def _build(
    config: DataPlaneConfig,
    stores: Stores,
    server: grpc.aio.Server,
    telling: _Telling,
    reached: tuple[str, Certificates],
) -> DataPlane:
    address, certificates = reached
    clock, calls, metrics, holder = SystemClock(), telling.calls, telling.metrics, telling.holder
    around = Surroundings(lambda: holder.current, clock, config.node_id, metrics.observe_stage)
    wired = wire(stores, around)
    stores = wired.stores
    servicer = _add_services(server, stores, wired, telling.callers)
    adapters = [(name, stores.parts[name]) for name in stores.backends]
    reporter = Reporter(holder, calls, wired.projectors, adapters, clock)
    reporter.breakers_of = wired.guards.breakers
    reporter.overload = telling.admission.problems
    reporter.certificates = certificates.statuses
    metrics.tell_of_line(telling.admission.readings)
    metrics.tell_of_policy_age(lambda: holder.age_s)
    metrics.tell_of(
        reporter.report, lambda: holder.current.generation if holder.current else 0, wired.background_failures
    )
    beacons = beacons_over(wired, config.node_id, WitnessFile(config.data_dir / "last_beacon"))
    return DataPlane(
        stores=stores,
        wired=wired,
        stream=PolicyStream(holder, _stream_options(config, address, certificates), reporter.report, clock),
        examiner=Examiner(stores.backends),
        watch=IndexWatch(wired.records, wired.maintenance.checks, clock, WatchOptions(), beacons.suspect),
        beacons=beacons,
        checks=HealthChecks(_looked_at(config, wired), holder, reporter, servicer),
        reporter=reporter,
        certificates=certificates,
        server=server,
        health=servicer,
    )


def _looked_at(config: DataPlaneConfig, wired: Wired) -> HealthParts:
    return HealthParts(
        wired.records,
        wired.stores.queue,
        wired.without_records.check,
        lambda: shutil.disk_usage(config.data_dir).free,
        own_queue=wired.stores.parts["queue"] == "sqlite",
    )


def _add_services(server: grpc.aio.Server, stores: Stores, wired: Wired, callers: Callers) -> health.aio.HealthServicer:
    memory = MemoryService(wired.pipelines, callers, SystemClock(), lambda: stores.spaces.current.embedder.dimension)
    add_MemoryServiceServicer_to_server(memory, server)
    add_MaintenanceServiceServicer_to_server(MaintenanceService(wired.maintenance, callers), server)
    operations_pb2_grpc.add_OperationsServicer_to_server(OperationsService(wired.operations, callers), server)
    return add_health_and_reflection(server, (READS, MAINTENANCE, OPERATIONS))


async def _start(plane: DataPlane, *, paused: bool) -> list[asyncio.Task[None]]:
    """Starts everything but the server; what goes on in the background and is only to be cancelled at the end."""
    await plane.stores.spaces.start()
    await plane.wired.start(paused=paused)
    if plane.certificates.channel is not None:
        await plane.certificates.channel.look()
    await plane.stream.start()
    plane.reporter.findings = plane.examiner.findings
    plane.reporter.more_problems = (
        plane.watch.problems,
        plane.beacons.problems,
        plane.stores.spaces.problems,
        plane.wired.vouching.problems if plane.wired.vouching is not None else {},
    )
    await plane.checks.look()
    loops = [plane.checks.run(), plane.examiner.run(), plane.watch.run(), plane.beacons.run()]
    loops += [each.run() for each in plane.certificates.watches]
    return [asyncio.create_task(each) for each in loops]


async def _stop(
    plane: DataPlane, background: Sequence[asyncio.Task[None]], underway: Underway, lifetime: Lifetime
) -> None:
    log.info("stopping: calls are taken for another %g s", lifetime.drain_s)
    await drain(plane.health, lifetime)
    plane.wired.operations.stop_waiting()
    await finish(plane.server, underway, lifetime)
    await end(*background)
    await plane.stream.stop()
    await plane.wired.stop()
    await plane.stores.spaces.stop()
    log.info("stopped")


def _both(calls: Calls, metrics: DataPlaneMetrics) -> CallCounter:
    def count(method: str, code: grpc.StatusCode, seconds: float) -> None:
        calls.count(method, code, seconds)
        metrics.calls.count(method, code, seconds)

    return count


def _stream_options(config: DataPlaneConfig, address: str, certificates: Certificates) -> PolicyStreamOptions:
    watch, control_tls = certificates.channel, config.control_tls
    node = policy_pb2.NodeInfo(node_id=config.node_id, labels=config.labels, build=__version__, address=address)
    node.start_time.FromMicroseconds(SystemClock().now_us())
    return PolicyStreamOptions(
        control_address=config.control,
        node_key=config.node_key,
        node=node,
        trusted_key_file=config.trusted_key,
        last_good_file=config.data_dir / "last_good_policy.binpb",
        bootstrap_admin_sha256=config.bootstrap_admin_sha256,
        tls=ControlTls(watch, control_tls.server_name) if watch and control_tls else None,
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a data plane; the exit code is 0 after a stop, 1 when it cannot run, 2 for a wrong setting."""
    log_to_stderr()
    try:
        uvloop.run(serve(read_config(sys.argv[1:] if arguments is None else arguments)))
    except (BadConfig, BadCertificate) as error:
        sys.stderr.write(f"memplane data: {error}\n")
        return 2
    except NoTrustedKey as error:
        sys.stderr.write(f"memplane data: trusted-key: {error}; give it the control plane's signing_key.pub\n")
        return 2
    except (AddressInUse, FolderInUse, StoreInUse, SchemaTooNew, CannotOpen, Misconfigured, OSError) as error:
        sys.stderr.write(f"memplane data: {error}\n")
        return 1
    except KeyboardInterrupt:  # Ctrl-C before there was something to stop in order
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
