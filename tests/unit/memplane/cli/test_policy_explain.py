import json
from pathlib import Path

from memplane.v1 import memory_pb2, policy_pb2
from memplane.v1 import policy_admin_service_pb2 as pb
from tests.unit.memplane.cli.test_commands import call
from tests.unit.memplane.client.fakes import AdminRecorder

RULE = policy_pb2.AccessRule(
    effect="allow",
    namespace="dept.sales",
    permissions=["memory.read"],
    through=["group analysts", "role reader"],
    file="rbac.yaml",
    line=12,
    path="rbac.roles.reader.grants[0]",
    condition="kinds FACT",
)
ANSWER = pb.ExplainDecisionResponse(
    allowed=True, conditional=True, summary="ann may", rules=[RULE], version_info="sha256:2", generation=5
)


def control_plane() -> AdminRecorder:
    return AdminRecorder(ExplainDecision=lambda _: ANSWER)


async def test_the_rule_is_told_with_its_way_and_place() -> None:
    recorder = control_plane()
    asked = ("policy", "explain", "ann", "memory.read", "dept.sales", "--kind", "fact", "--claim", "staff")
    result = await call(recorder, *asked)
    assert result.exit_code == 0
    for told in ("ann may", "rbac.yaml:12", "group analysts, role reader", "kinds FACT", "generation 5"):
        assert told in result.stdout
    request = recorder.requests[0]
    assert (request.principal, request.permission, request.namespace) == ("ann", "memory.read", "dept.sales")
    assert (request.kind, list(request.claims)) == (memory_pb2.KIND_FACT, ["staff"])
    assert not request.HasField("inline")


async def test_json_has_everything_and_a_folder_is_sent_along(tmp_path: Path) -> None:
    (tmp_path / "rbac.yaml").write_text("rbac: {}\n")
    recorder = control_plane()
    result = await call(recorder, "policy", "explain", "ann", "maintenance", "--folder", str(tmp_path), "--json")
    told = json.loads(result.stdout)
    assert told["allowed"] is True
    assert told["rules"][0]["line"] == 12
    assert [document.name for document in recorder.requests[0].inline.documents] == ["rbac.yaml"]
