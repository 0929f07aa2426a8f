import json
from typing import Any

import pytest

from memplane.cli import fleet
from memplane.cli.fleet_table import COLUMNS, FleetTable, row_of, span
from memplane.errors import PermissionDenied
from memplane.v1 import policy_admin_service_pb2 as pb
from memplane.v1 import policy_pb2
from tests.unit.memplane.cli.test_commands import call
from tests.unit.memplane.client.fakes import WatchedControlPlane

REFUSAL = PermissionDenied("policy.read")


def status(node_id: str = "data-1", **fields: Any) -> policy_pb2.DataPlaneStatus:
    node = policy_pb2.NodeInfo(node_id=node_id, labels={"zone": "a", "rack": "7"}, build="1.2.3")
    given = {"sync_state": policy_pb2.SYNC_STATE_SYNCED, "connected": True, "generation": 5, **fields}
    made = policy_pb2.DataPlaneStatus(node=node, version_info="sha256:0123456789abcdef", **given)
    made.policy_age.FromSeconds(4)
    return made


def cells(told: policy_pb2.DataPlaneStatus, since_s: float = 0.0) -> dict[str, object]:
    return dict(zip(COLUMNS, row_of(told, since_s), strict=True))


def answer(*planes: policy_pb2.DataPlaneStatus, removed: tuple[str, ...] = ()) -> pb.WatchDataPlaneStatusesResponse:
    return pb.WatchDataPlaneStatusesResponse(
        data_planes=planes, removed_node_ids=removed, generation=5, version_info="sha256:0123"
    )


def test_a_row_tells_who_it_is_and_what_it_serves() -> None:
    found = cells(status(report=policy_pb2.NodeReport(policy_origin=policy_pb2.POLICY_ORIGIN_LAST_GOOD)))
    assert (found["node"], found["labels"], found["build"]) == ("data-1", "rack=7, zone=a", "1.2.3")
    assert (found["version"], found["generation"], found["state"]) == ("sha256:01234567", 5, "SYNCED")
    assert (found["source"], found["policy age"], found["lost for"]) == ("LAST_GOOD", "4 s", "")


def test_the_age_grows_unless_heartbeats_confirm_the_policy() -> None:
    assert cells(status(), 120.0)["policy age"] == "4 s"
    assert cells(status(sync_state=policy_pb2.SYNC_STATE_STALE), 120.0)["policy age"] == "2 min"
    stale = status(connected=False, report=policy_pb2.NodeReport(stale_action="deny"))
    assert cells(stale, 3_600.0)["policy age"] == "1 h, stale: deny"
    stale.ClearField("policy_age")
    assert cells(stale)["policy age"] == "unknown, stale: deny"


def test_a_lost_data_plane_tells_how_long_it_is_lost() -> None:
    lost = status(connected=False)
    lost.lost_for.FromSeconds(50)
    assert cells(lost, 15.0)["lost for"] == "1 min"


def test_backends_and_certificates_tell_what_is_wrong() -> None:
    report = policy_pb2.NodeReport()
    assert cells(status(report=report))["backends"] == ""
    report.backends.add(backend="cache", healthy=True)
    assert cells(status(report=report))["backends"] == "1 well"
    report.backends.add(backend="queue", detail="connection refused")
    texts = report.backends.add(backend="text_index", healthy=True)
    texts.breakers.add(operations="reads", state=policy_pb2.BREAKER_STATE_OPEN)
    report.certificates.add(purpose="ca").expire_time.FromSeconds(4_000_000_000)
    report.certificates.add(purpose="server", problem="key of another").expire_time.FromSeconds(1_800_000_000)
    found = cells(status(report=report))
    assert found["backends"] == "queue: connection refused; text_index reads not tried"
    assert found["certificate ends"] == "server 2027-01-15 08:00Z; server: key of another"


@pytest.mark.parametrize(
    ("seconds", "shown"), [(0.4, "0 s"), (59.9, "59 s"), (60, "1 min"), (7_300, "2 h"), (200_000, "2 d")]
)
def test_a_span_is_told_in_its_largest_unit(seconds: float, shown: str) -> None:
    assert span(seconds) == shown


def test_a_table_follows_the_answers_and_forgets_what_a_new_watch_does_not_tell() -> None:
    table = FleetTable()
    table.take(answer(status("b"), status("a")), 1.0)
    table.take(answer(status("c"), removed=("b",)), 2.0)
    assert [row[0] for row in table.rows(3.0)] == ["a", "c"]
    table.start_over()
    table.take(answer(status("d")), 4.0)
    assert [row[0] for row in table.rows(5.0)] == ["d"]


async def test_a_watch_for_programs_is_one_line_for_each_change() -> None:
    plane = WatchedControlPlane([answer(status("a"), status("b"))], [answer(removed=("a",))], refusal=REFUSAL)
    result = await call(plane, "fleet", "--watch", "--json")
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert [line.get("data_plane", {}).get("node", {}).get("node_id") for line in lines] == ["a", "b", None]
    assert (lines[0]["generation"], lines[0]["data_plane"]["sync_state"]) == (5, "SYNCED")
    assert lines[2]["removed_node_id"] == "a"
    assert (result.exit_code, "PERMISSION_DENIED" in result.stderr) == (1, True)


async def test_a_watch_for_people_shows_the_newest_table_and_asks_a_stopped_control_plane_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(fleet, "PAUSE_S", 0.0)
    plane = WatchedControlPlane([answer(status("old"))], [], [answer(status("new"))], refusal=REFUSAL)
    result = await call(plane, "fleet", "--watch")
    assert "in force: generation 5, sha256:0123" in result.stdout
    assert ("new" in result.stdout, "old" in result.stdout) == (True, False)
    assert "is asked again: it stopped" in result.stderr
