"""What Prometheus is told of the control plane: its calls, the policy in force and the fleet by state. No ids."""

from collections.abc import Callable, Iterator

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from controlplane.fleet import Fleet
from memplane import __version__
from memplane.rpc.metrics import CallMetrics, process_registry
from memplane.v1 import policy_pb2


class ControlPlaneMetrics:
    """The registry of one process."""

    def __init__(self) -> None:
        self.registry = process_registry()
        self.calls = CallMetrics(self.registry)

    def tell_of(self, fleet: Fleet, folder_problem: Callable[[], str]) -> None:
        """Each scrape has the fleet from now on; `folder_problem` is why the policy folder is not in force, else ""."""
        self.registry.register(_FleetCollector(fleet, folder_problem))


class _FleetCollector(Collector):
    def __init__(self, fleet: Fleet, folder_problem: Callable[[], str]):
        self._fleet = fleet
        self._folder_problem = folder_problem

    def collect(self) -> Iterator[Metric]:
        """The gauges of this moment."""
        build = GaugeMetricFamily("memplane_build", "The version that runs; always 1.", labels=("version",))
        build.add_metric((__version__,), 1)
        yield build
        generation = self._fleet.target.generation
        yield GaugeMetricFamily("memplane_policy_generation", "Generation of the policy in force; 0: none.", generation)
        well = not self._folder_problem()
        yield GaugeMetricFamily("memplane_policy_folder_in_force", "0: what the folder holds is refused.", well)
        planes = GaugeMetricFamily("memplane_data_planes", "Data planes heard.", labels=("state", "connected"))
        for (state, connected), count in sorted(self._fleet.counts().items()):
            name = policy_pb2.SyncState.Name(state).removeprefix("SYNC_STATE_")
            planes.add_metric((name, "yes" if connected else "no"), count)
        yield planes
