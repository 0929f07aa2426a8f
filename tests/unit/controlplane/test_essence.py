from controlplane.essence import essence
from memplane.v1 import policy_pb2


def report() -> policy_pb2.NodeReport:
    told = policy_pb2.NodeReport(policy_origin=policy_pb2.POLICY_ORIGIN_CONTROL_PLANE)
    backend = told.backends.add(backend="cache", healthy=True)
    backend.breakers.add(operations="reads", state=policy_pb2.BREAKER_STATE_CLOSED)
    return told


def test_counts_ages_and_measured_times_are_no_news() -> None:
    later = report()
    later.call_count, later.error_count, later.memory_count = 7, 1, 9
    later.control_plane_time.GetCurrentTime()
    later.backends[0].lag = 3
    later.backends[0].latency.FromMilliseconds(2)
    later.backends[0].oldest_wait.FromSeconds(1)
    later.backends[0].breakers[0].since.GetCurrentTime()
    assert essence(later) == essence(report())


def test_a_sick_backend_an_open_breaker_and_a_stale_policy_are_news() -> None:
    sick, opened, stale = report(), report(), report()
    sick.backends[0].healthy = False
    opened.backends[0].breakers[0].state = policy_pb2.BREAKER_STATE_OPEN
    stale.stale_action = "deny"
    assert len({essence(each) for each in (report(), sick, opened, stale)}) == 4


def test_the_report_itself_stays_as_it_is() -> None:
    told = report()
    told.call_count = 7
    essence(told)
    assert told.call_count == 7
