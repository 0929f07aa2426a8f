"""How this data plane is doing, for the control plane: no content, no ids."""

from collections import Counter
from collections.abc import Sequence

import grpc

from dataplane.changes import IndexProgress
from dataplane.pipelines.project import Projectors
from dataplane.pipelines.projector import Projector
from dataplane.policy_holder import PolicyHolder, PolicyOrigin
from memplane.v1 import policy_pb2

_ORIGINS = {
    PolicyOrigin.NONE: policy_pb2.POLICY_ORIGIN_UNSPECIFIED,
    PolicyOrigin.CONTROL_PLANE: policy_pb2.POLICY_ORIGIN_CONTROL_PLANE,
    PolicyOrigin.LAST_GOOD: policy_pb2.POLICY_ORIGIN_LAST_GOOD,
}


class Calls:
    """Counts the calls that ended, by gRPC code."""

    def __init__(self) -> None:
        self.by_code: Counter[grpc.StatusCode] = Counter()

    def count(self, _method: str, code: grpc.StatusCode, _seconds: float) -> None:
        """Counts one."""
        self.by_code[code] += 1


class Reporter:
    """Puts the report together from what is known in the process; opens nothing."""

    def __init__(self, holder: PolicyHolder, calls: Calls, projectors: Projectors, adapters: Sequence[tuple[str, str]]):
        self.memory_count = 0
        self.record_store_problem = ""
        self._holder = holder
        self._calls = calls
        self._projectors = projectors
        self._adapters = tuple(adapters)
        self._progress: dict[str, IndexProgress] = {}

    def note_progress(self, progress: Sequence[IndexProgress]) -> None:
        """Takes how far each index has followed, as the record store says."""
        self._progress = {item.index: item for item in progress}

    def report(self) -> policy_pb2.NodeReport:
        """The report of this moment; counts of the record store are those of the last check."""
        codes = self._calls.by_code
        return policy_pb2.NodeReport(
            backends=[self._backend(backend, adapter) for backend, adapter in self._adapters],
            policy_origin=_ORIGINS[self._holder.origin],
            call_count=codes.total(),
            error_count=codes.total() - codes[grpc.StatusCode.OK],
            memory_count=self.memory_count,
        )

    def _backend(self, backend: str, adapter: str) -> policy_pb2.BackendStatus:
        status = policy_pb2.BackendStatus(backend=backend, adapter=adapter, healthy=True)
        if backend == "record_store" and self.record_store_problem:
            status.healthy, status.detail = False, self.record_store_problem
        for projector in self._projectors:
            if projector.name == backend and projector.counts:
                progress = self._progress.get(projector.target)
                status.healthy = not projector.last_error
                status.detail = _detail(projector, progress)
                status.lag = progress.due_count if progress else 0
        return status


def _detail(projector: Projector, progress: IndexProgress | None) -> str:
    if projector.last_error:
        return projector.last_error
    if not projector.is_level:
        return "being rebuilt"
    if progress and progress.dead_count:
        return f"{progress.dead_count} changes were given up; `memplane indexes dead-letters` tells which"
    return "erased data awaits purging" if projector.purge_due else ""
