"""What Prometheus is told of a data plane. No ids, namespaces or content: labels are names of backends and methods."""

from collections.abc import Callable, Iterator, Mapping
from typing import get_args

from prometheus_client import Gauge, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from memplane import __version__
from memplane.policy.degradation import StaleAction
from memplane.rpc.metrics import CallMetrics, process_registry
from memplane.v1 import policy_pb2

BACKEND_BUCKETS_S = (0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0)

STALE_ACTIONS: tuple[StaleAction, ...] = get_args(StaleAction)

_BREAKER_STATES = {
    policy_pb2.BREAKER_STATE_CLOSED: 0,
    policy_pb2.BREAKER_STATE_HALF_OPEN: 1,
    policy_pb2.BREAKER_STATE_OPEN: 2,
}


class DataPlaneMetrics:
    """The registry of one process, and who tells it what."""

    def __init__(self) -> None:
        self.registry = process_registry()
        self.calls = CallMetrics(self.registry)
        self._backends = Histogram(
            "memplane_backend_seconds",
            "Calls of a backend that ended, by port method and outcome (ok, unavailable, refused).",
            ("backend", "operation", "outcome"),
            buckets=BACKEND_BUCKETS_S,
            registry=self.registry,
        )
        self._stages = Histogram(
            "memplane_search_stage_seconds",
            "Stages of searches: embed, pending, vector, text, fetch, rank; cached: one answered from the cache.",
            ("stage",),
            buckets=BACKEND_BUCKETS_S,
            registry=self.registry,
        )
        self._admission = Histogram(
            "memplane_admission_wait_seconds",
            "How long calls stood in the waiting line, by outcome: admitted, refused, left (the caller hung up).",
            ("outcome",),
            buckets=BACKEND_BUCKETS_S,
            registry=self.registry,
        )
        self._line = Gauge(
            "memplane_admission",
            "Calls, places and bytes, in the waiting line and running.",
            ("what",),
            registry=self.registry,
        )

    def observe_admission(self, outcome: str, waited_s: float) -> None:
        """Counts a call that came to the waiting line."""
        self._admission.labels(outcome).observe(waited_s)

    def tell_of_line(self, readings: Mapping[str, Callable[[], float]]) -> None:
        """From now on each scrape also has these readings of the waiting line, by name."""
        for what, read in readings.items():
            self._line.labels(what).set_function(read)

    def tell_of_policy_age(self, age_s: Callable[[], float]) -> None:
        """From now on each scrape also has how old the policy is, in seconds; inf: unknown, or there is none."""
        gauge = Gauge(
            "memplane_policy_age_seconds",
            "Since the control plane last confirmed the policy; +Inf: unknown, or there is none.",
            registry=self.registry,
        )
        gauge.set_function(age_s)

    def observe_backend(self, backend: str, operation: str, outcome: str, seconds: float) -> None:
        """Counts a backend's call."""
        self._backends.labels(backend, operation, outcome).observe(seconds)

    def observe_stage(self, stage: str, seconds: float) -> None:
        """Counts a search's stage."""
        self._stages.labels(stage).observe(seconds)

    def tell_of(
        self,
        report: Callable[[], policy_pb2.NodeReport],
        generation: Callable[[], int],
        counts: Callable[[], Mapping[str, int]],
    ) -> None:
        """From now on each scrape also has what the node reports.

        `generation` is the policy's in force, 0 for none. `counts` tells what went wrong in the background, by event.
        """
        self.registry.register(_ReportCollector(report, generation, counts))


class _ReportCollector(Collector):
    """Turns the report that the control plane gets into gauges, when asked."""

    def __init__(
        self,
        report: Callable[[], policy_pb2.NodeReport],
        generation: Callable[[], int],
        counts: Callable[[], Mapping[str, int]],
    ):
        self._report = report
        self._generation = generation
        self._counts = counts

    def describe(self) -> list[Metric]:
        """Nothing ahead of the first scrape: the report may not be ready when this is registered."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The gauges of this moment."""
        report = self._report()
        build = GaugeMetricFamily("memplane_build", "The version that runs; always 1.", labels=("version",))
        build.add_metric((__version__,), 1)
        yield build
        yield GaugeMetricFamily("memplane_policy_generation", "Generation of the policy; 0: none.", self._generation())
        stale = GaugeMetricFamily("memplane_policy_stale", "1: too old, and what is done then.", labels=("action",))
        for action in STALE_ACTIONS:
            stale.add_metric((action,), report.stale_action == action)
        yield stale
        yield GaugeMetricFamily("memplane_memories", "ACTIVE memories at the last check.", report.memory_count)
        events = CounterMetricFamily("memplane_background_failures", "By event.", labels=("event",))
        for event, count in self._counts().items():
            events.add_metric((event,), count)
        yield events
        healthy, lag, dead, problems = _backend_gauges()
        for backend in report.backends:
            labels = (backend.backend, backend.adapter)
            healthy.add_metric(labels, backend.healthy)
            lag.add_metric(labels, backend.lag)
            dead.add_metric(labels, backend.dead_letters)
            problems.add_metric(labels, len(backend.problems))
        yield from (healthy, lag, dead, problems)
        yield from _breaker_metrics(report)


def _backend_gauges() -> tuple[GaugeMetricFamily, GaugeMetricFamily, GaugeMetricFamily, GaugeMetricFamily]:
    labels = ("backend", "adapter")
    return (
        GaugeMetricFamily("memplane_backend_healthy", "1: it answered the last check.", labels=labels),
        GaugeMetricFamily("memplane_backend_lag", "Changes that wait to reach it.", labels=labels),
        GaugeMetricFamily(
            "memplane_backend_dead_letters", "Changes or queued writes that were given up.", labels=labels
        ),
        GaugeMetricFamily("memplane_backend_problems", "What doctor finds wrong with it.", labels=labels),
    )


def _breaker_metrics(report: policy_pb2.NodeReport) -> tuple[GaugeMetricFamily, CounterMetricFamily]:
    labels = ("backend", "operations")
    states = GaugeMetricFamily(
        "memplane_breaker_state", "0: calls go through; 1: half-open, one is tried; 2: open, none is.", labels=labels
    )
    opened = CounterMetricFamily("memplane_breaker_opened", "How often it opened.", labels=labels)
    for backend in report.backends:
        for breaker in backend.breakers:
            states.add_metric((backend.backend, breaker.operations), _BREAKER_STATES.get(breaker.state, 0))
            opened.add_metric((backend.backend, breaker.operations), breaker.opened_count)
    return states, opened
