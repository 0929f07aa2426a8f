"""What Prometheus is told of every server: its calls, and where it is asked for them. No ids, no content."""

import ssl
from collections.abc import Iterator
from contextlib import contextmanager

import grpc
from prometheus_client import (
    CollectorRegistry,
    GCCollector,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    start_http_server,
)

from memplane.rpc.server import AddressInUse

CALL_BUCKETS_S = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


def process_registry() -> CollectorRegistry:
    """A registry that tells of the process: memory, processor time, open files, garbage collection."""
    registry = CollectorRegistry()
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    return registry


class CallMetrics:
    """A histogram of calls by method and gRPC code."""

    def __init__(self, registry: CollectorRegistry):
        self._seconds = Histogram(
            "memplane_call_seconds",
            "Calls that ended, by method and gRPC code.",
            ("method", "code"),
            buckets=CALL_BUCKETS_S,
            registry=registry,
        )

    def count(self, method: str, code: grpc.StatusCode, seconds: float) -> None:
        """Counts one; methods that are not offered share the name `unknown`."""
        self._seconds.labels(method.rpartition("/")[2] or "unknown", code.name).observe(seconds)


@contextmanager
def metrics_served(registry: CollectorRegistry, listen: str) -> Iterator[str]:
    """Serves `GET /metrics` at `listen` (HOST:PORT, port 0 for any free one; "" for nowhere) inside the block.

    Yields the address. Raises AddressInUse.
    """
    if not listen:
        yield ""
        return
    host, _, port = listen.rpartition(":")
    try:
        server, thread = start_http_server(int(port), host.strip("[]"), registry)
    except (OSError, ssl.SSLError) as error:
        raise AddressInUse(f"{listen} (metrics)") from error
    try:
        yield f"{host}:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
