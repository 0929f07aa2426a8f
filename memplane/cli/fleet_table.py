"""The fleet as a table: what of a data plane's status people see. Pure."""

from collections.abc import Iterable
from datetime import timedelta

from memplane.cli.output import enum_name
from memplane.v1 import policy_admin_service_pb2 as pb
from memplane.v1 import policy_pb2

COLUMNS = (
    "node",
    "labels",
    "build",
    "version",
    "generation",
    "state",
    "source",
    "policy age",
    "last error",
    "backends",
    "certificate ends",
    "lost for",
)
VERSION_CHARS = len("sha256:") + 8
_SPANS = ((86_400, "d"), (3_600, "h"), (60, "min"), (1, "s"))


class FleetTable:
    """What a watch has told so far. Times are seconds of the watcher's own clock."""

    def __init__(self) -> None:
        self._told: dict[str, tuple[policy_pb2.DataPlaneStatus, float]] = {}
        self._starts_over = True
        self.version, self.generation = "", 0

    def start_over(self) -> None:
        """The next answer has everything: what it lacks is not known any more."""
        self._starts_over = True

    def take(self, answer: pb.WatchDataPlaneStatusesResponse, now_s: float) -> None:
        """Notes an answer that came at `now_s`."""
        if self._starts_over:
            self._told, self._starts_over = {}, False
        self.version, self.generation = answer.version_info, answer.generation
        for gone in answer.removed_node_ids:
            self._told.pop(gone, None)
        for status in answer.data_planes:
            self._told[status.node.node_id] = (status, now_s)

    def rows(self, now_s: float) -> list[tuple[object, ...]]:
        """One row for each data plane, by id."""
        return [row_of(status, now_s - told_s) for _, (status, told_s) in sorted(self._told.items())]


def row_of(status: policy_pb2.DataPlaneStatus, since_s: float = 0.0) -> tuple[object, ...]:
    """The cells of a data plane whose status was told `since_s` seconds ago."""
    report = status.report
    return (
        status.node.node_id,
        ", ".join(f"{key}={value}" for key, value in sorted(status.node.labels.items())),
        status.node.build,
        status.version_info[:VERSION_CHARS],
        status.generation,
        enum_name(status, "sync_state"),
        enum_name(report, "policy_origin") if report.policy_origin else "",
        _age(status, since_s),
        status.error_detail,
        backends(report.backends),
        certificates(report.certificates),
        span(status.lost_for.ToTimedelta().total_seconds() + since_s) if status.HasField("lost_for") else "",
    )


def backends(told: Iterable[policy_pb2.BackendStatus]) -> str:
    """What is wrong with backends, or how many are well."""
    found = list(told)
    wrong = [f"{each.backend}: {each.detail or 'does not answer'}" for each in found if not each.healthy]
    wrong += [
        f"{each.backend} {breaker.operations} not tried"
        for each in found
        for breaker in each.breakers
        if breaker.state == policy_pb2.BREAKER_STATE_OPEN
    ]
    return "; ".join(wrong) or (f"{len(found)} well" if found else "")


def certificates(told: Iterable[policy_pb2.CertificateStatus]) -> str:
    """The first certificate to end, and what is wrong with any."""
    found = sorted(told, key=lambda each: each.expire_time.ToMicroseconds())
    wrong = [f"{each.purpose}: {each.problem}" for each in found if each.problem]
    first = [f"{found[0].purpose} {found[0].expire_time.ToDatetime():%Y-%m-%d %H:%MZ}"] if found else []
    return "; ".join([*first, *wrong])


def span(seconds: float) -> str:
    """A length of time in its largest whole unit, such as `3 min`."""
    whole = timedelta(seconds=int(seconds))
    for size_s, unit in _SPANS:
        if whole >= timedelta(seconds=size_s):
            return f"{int(whole.total_seconds()) // size_s} {unit}"
    return "0 s"


def _age(status: policy_pb2.DataPlaneStatus, since_s: float) -> str:
    """Of a connected data plane with the policy in force, the age does not grow: each heartbeat ends it."""
    if not status.generation:
        return ""
    is_confirmed = status.connected and status.sync_state == policy_pb2.SYNC_STATE_SYNCED
    age_s = status.policy_age.ToTimedelta().total_seconds() + (0.0 if is_confirmed else since_s)
    age = span(age_s) if status.HasField("policy_age") else "unknown"
    return f"{age}, stale: {status.report.stale_action}" if status.report.stale_action else age
