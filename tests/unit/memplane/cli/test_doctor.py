from memplane.cli.doctor import LAG_ROWS, judge_fleet
from memplane.v1 import policy_admin_service_pb2 as pb
from memplane.v1 import policy_pb2


def fleet(*backends: policy_pb2.BackendStatus, state=policy_pb2.SYNC_STATE_SYNCED, connected=True):
    status = policy_pb2.DataPlaneStatus(
        node=policy_pb2.NodeInfo(node_id="data-1"),
        sync_state=state,
        connected=connected,
        report=policy_pb2.NodeReport(backends=backends),
    )
    return pb.ListDataPlaneStatusesResponse(data_planes=[status])


def wrong(answer) -> list[str]:
    return [finding.subject for finding in judge_fleet(answer) if not finding.ok]


def test_a_well_fleet_has_nothing_wrong():
    assert wrong(fleet(policy_pb2.BackendStatus(backend="cache", adapter="inprocess", healthy=True))) == []


def test_a_fleet_of_nobody_is_wrong():
    assert wrong(pb.ListDataPlaneStatusesResponse()) == ["fleet"]


def test_a_down_and_a_late_backend_are_named_with_advice():
    down = policy_pb2.BackendStatus(backend="text_index", adapter="edge", detail="timed out")
    late = policy_pb2.BackendStatus(backend="vector_index", adapter="edge", healthy=True, lag=LAG_ROWS + 1)
    answer = fleet(down, late)
    assert wrong(answer) == ["data-1 text_index (edge)", "data-1 vector_index (edge)"]
    assert all(finding.advice for finding in judge_fleet(answer) if not finding.ok)


def test_a_lost_node_and_a_refused_policy_are_named():
    answer = fleet(state=policy_pb2.SYNC_STATE_ERROR, connected=False)
    assert wrong(answer) == ["data-1 connected", "data-1 policy"]
