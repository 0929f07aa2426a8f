"""How this data plane is doing, for the control plane: no content, no ids."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import grpc

from dataplane.changes import IndexProgress, QueueDepth
from dataplane.examine import Finding
from dataplane.guards import READS, BreakerReport
from dataplane.logic.breaker import BreakerState
from dataplane.pipelines.project import Projectors
from dataplane.pipelines.projector import Projector
from dataplane.policy_holder import PolicyHolder, PolicyOrigin
from dataplane.ports import Clock, Problem
from memplane.v1 import policy_pb2

_ORIGINS = {
    PolicyOrigin.NONE: policy_pb2.POLICY_ORIGIN_UNSPECIFIED,
    PolicyOrigin.CONTROL_PLANE: policy_pb2.POLICY_ORIGIN_CONTROL_PLANE,
    PolicyOrigin.LAST_GOOD: policy_pb2.POLICY_ORIGIN_LAST_GOOD,
}

_STATES = {
    BreakerState.CLOSED: policy_pb2.BREAKER_STATE_CLOSED,
    BreakerState.OPEN: policy_pb2.BREAKER_STATE_OPEN,
    BreakerState.HALF_OPEN: policy_pb2.BREAKER_STATE_HALF_OPEN,
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

    def __init__(
        self,
        holder: PolicyHolder,
        calls: Calls,
        projectors: Projectors,
        adapters: Sequence[tuple[str, str]],
        clock: Clock,
    ):
        self.memory_count = 0
        self.record_store_problem = ""
        self.findings: Mapping[str, Finding] = {}
        self.more_problems: Sequence[Mapping[str, Sequence[Problem]]] = ()
        self.queue_depth = QueueDepth(0, 0, None)
        self.overload: Callable[[], Sequence[Problem]] = tuple
        self.certificates: Callable[[], Sequence[policy_pb2.CertificateStatus]] = tuple
        self.breakers_of: Callable[[str], Sequence[BreakerReport]] = lambda _backend: ()
        self._clock = clock
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
        backends = [self._backend(backend, adapter) for backend, adapter in self._adapters]
        overload = [_problem(each) for each in self.overload()]
        if overload:
            backends.append(policy_pb2.BackendStatus(backend="admission", healthy=True, problems=overload))
        report = policy_pb2.NodeReport(
            backends=backends,
            policy_origin=_ORIGINS[self._holder.origin],
            stale_action=self._holder.stale_action or "",
            call_count=codes.total(),
            error_count=codes.total() - codes[grpc.StatusCode.OK],
            memory_count=self.memory_count,
            certificates=self.certificates(),
        )
        if self._holder.loaded_time_us:
            report.policy_load_time.FromMicroseconds(self._holder.loaded_time_us)
        if self._holder.heard_time_us:
            report.control_plane_time.FromMicroseconds(self._holder.heard_time_us)
        return report

    def _backend(self, backend: str, adapter: str) -> policy_pb2.BackendStatus:
        status = policy_pb2.BackendStatus(backend=backend, adapter=adapter, healthy=True)
        self._tell_finding(status, self.findings.get(backend, Finding()))
        for problems in self.more_problems:
            status.problems.extend(_problem(each) for each in problems.get(backend, ()))
        if backend == "record_store" and self.record_store_problem:
            status.healthy, status.detail = False, self.record_store_problem
        self._tell_breakers(status)
        for projector in self._projectors:
            if projector.name == backend and projector.counts:
                progress = self._progress.get(projector.target)
                status.healthy = status.healthy and not projector.last_error
                status.detail = status.detail or _detail(projector)
                self._tell_progress(status, progress)
        if backend == "queue":
            status.lag = self.queue_depth.waiting + self.queue_depth.taken
            status.dead_letters = self.queue_depth.set_aside
            self._tell_wait(status, self.queue_depth.oldest_time_us)
        return status

    def _tell_finding(self, status: policy_pb2.BackendStatus, finding: Finding) -> None:
        status.server = finding.examination.server
        status.healthy, status.detail = not finding.problem, finding.problem
        status.problems.extend(_problem(each) for each in finding.examination.problems)
        if finding.latency_s:
            status.latency.FromMicroseconds(round(finding.latency_s * 1_000_000))

    def _tell_breakers(self, status: policy_pb2.BackendStatus) -> None:
        for breaker in self.breakers_of(status.backend):
            told = status.breakers.add(
                operations=breaker.operations,
                state=_STATES[breaker.state],
                opened_count=breaker.opened_count,
                reason=breaker.reason,
            )
            told.since.FromMicroseconds(self._clock.now_us() - round(breaker.age_s * 1_000_000))
            if breaker.operations == READS and breaker.state is BreakerState.OPEN:
                status.healthy = False
                status.detail = status.detail or f"reads are not tried for now: {breaker.reason}"

    def _tell_progress(self, status: policy_pb2.BackendStatus, progress: IndexProgress | None) -> None:
        if progress is not None:
            status.lag, status.dead_letters = progress.due_count, progress.dead_count
            self._tell_wait(status, progress.oldest_due_us)

    def _tell_wait(self, status: policy_pb2.BackendStatus, since_us: int | None) -> None:
        if since_us is not None:
            status.oldest_wait.FromMicroseconds(max(0, self._clock.now_us() - since_us))


def _problem(problem: Problem) -> policy_pb2.BackendProblem:
    return policy_pb2.BackendProblem(code=problem.code, message=problem.message)


def _detail(projector: Projector) -> str:
    if projector.last_error:
        return projector.last_error
    if not projector.is_level:
        return "being rebuilt"
    return "erased data awaits purging" if projector.purge_due else ""
