"""How every MemPlane server is built: options, health, reflection, and a stop that drains."""

from collections.abc import Sequence

import grpc
from grpc.aio import ServerInterceptor
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

MAX_MESSAGE_BYTES = 16 * 1024 * 1024
"""Largest request: 1,000 memories of 16 KiB."""

MAX_CONCURRENT_RPCS = 16_384
"""The last fence, far above what admission lets wait: gRPC itself refuses calls beyond it, health checks included."""

MAX_CALLS_OF_CONNECTION = 100
"""What a connection brings beyond it waits at its client. Calls that gRPC has not handed over yet wait in one line for
all: without this bound, 1,500 calls of one client kept others waiting for 4.6 s, and lost them half of their answers;
with it 0.33 s and none (`bench.fairness`, 2026-11)."""

OPTIONS: Sequence[tuple[str, int]] = (
    # Otherwise a second server binds the same port without a word and the kernel splits the traffic.
    ("grpc.so_reuseport", 0),
    ("grpc.max_concurrent_streams", MAX_CALLS_OF_CONNECTION),
    # Otherwise calls are refused as soon as a connection brings more, instead of waiting at the client: of 1,500 at
    # once five in six (grpcio 1.85, 2026-11).
    ("grpc.http.overload_protection", 0),
    ("grpc.max_receive_message_length", MAX_MESSAGE_BYTES),
    ("grpc.max_send_message_length", 4 * MAX_MESSAGE_BYTES),
    # Metadata: a key and tracing, not more.
    ("grpc.max_metadata_size", 16 * 1024),
    # Clients may ping this often; the often copied min_recv_ping_interval does nothing.
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.keepalive_time_ms", 30_000),
    ("grpc.keepalive_timeout_ms", 10_000),
    ("grpc.keepalive_permit_without_calls", 1),
)


class AddressInUse(Exception):
    """The server could not bind its address."""


def new_server(interceptors: Sequence[ServerInterceptor], options: Sequence[tuple[str, int]] = ()) -> grpc.aio.Server:
    """A server with MemPlane's options, to which services are added before it starts."""
    return grpc.aio.server(
        interceptors=list(interceptors), options=[*OPTIONS, *options], maximum_concurrent_rpcs=MAX_CONCURRENT_RPCS
    )


def add_health_and_reflection(server: grpc.aio.Server, service_names: Sequence[str]) -> health.aio.HealthServicer:
    """Adds both standard services; the returned health servicer is told the state by service name."""
    servicer = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(servicer, server)
    names = (*service_names, health.SERVICE_NAME, reflection.SERVICE_NAME)
    reflection.enable_server_reflection(names, server)
    return servicer


async def set_health(servicer: health.aio.HealthServicer, service: str, serving: bool) -> None:
    """Tells whoever watches whether a service (by name; "" is liveness) serves."""
    state = health_pb2.HealthCheckResponse.SERVING if serving else health_pb2.HealthCheckResponse.NOT_SERVING
    await servicer.set(service, state)


def bind(server: grpc.aio.Server, address: str, credentials: grpc.ServerCredentials | None = None) -> int:
    """Binds `host:port` (port 0: any free one) and returns the port; in clear without credentials.

    Raises AddressInUse when it cannot.
    """
    try:
        port = server.add_secure_port(address, credentials) if credentials else server.add_insecure_port(address)
    except RuntimeError as error:
        raise AddressInUse(f"{address} cannot be bound: is another server running there?") from error
    if port == 0:
        raise AddressInUse(f"{address} cannot be bound: is another server running there?")
    return port
