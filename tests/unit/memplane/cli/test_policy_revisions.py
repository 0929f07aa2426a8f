import json

from google.protobuf.struct_pb2 import Value

from memplane.v1 import policy_admin_service_pb2 as admin_pb
from memplane.v1 import policy_pb2
from tests.unit.memplane.cli.test_commands import call
from tests.unit.memplane.client.fakes import AdminRecorder

NONE, PART, ALL = (
    policy_pb2.ACCESS_EXTENT_NONE,
    policy_pb2.ACCESS_EXTENT_CONDITIONAL,
    policy_pb2.ACCESS_EXTENT_ALL,
)
REVISION = policy_pb2.PolicyRevision(version_info="sha256:2", generation=5, etag="as-told")


def access(namespace: str, before: int, after: int) -> policy_pb2.AccessChange:
    return policy_pb2.AccessChange(
        principal="ann", namespace=namespace, permission="memory.read", before=before, after=after
    )


def difference(**fields: object) -> admin_pb.DiffPolicySetResponse:
    values = [
        policy_pb2.PolicyValueChange(
            path="retrieve_policy.top_k",
            before=Value(number_value=5),
            after=Value(number_value=8),
            file="a.yaml",
            line=2,
        )
    ]
    accesses = [access("dept.sales", NONE, ALL), access("dept.hr", ALL, NONE), access("dept", PART, PART)]
    return admin_pb.DiffPolicySetResponse(
        **{"values": values, "total_values": 1, "accesses": accesses, "total_accesses": 4, **fields}
    )


def control_plane(answer: admin_pb.DiffPolicySetResponse, *, accepted: bool = True) -> AdminRecorder:
    spread = policy_pb2.PropagationSummary(connected=1, acked=1, complete=True)
    return AdminRecorder(
        GetPolicySetRevision=lambda _: admin_pb.GetPolicySetRevisionResponse(revision=REVISION),
        DiffPolicySet=lambda _: answer,
        RollbackPolicySet=lambda _: admin_pb.RollbackPolicySetResponse(
            revision=REVISION, accepted=accepted, propagation=spread
        ),
        ReloadPolicySet=lambda _: admin_pb.ReloadPolicySetResponse(
            revision=REVISION, accepted=accepted, propagation=spread
        ),
    )


async def test_a_difference_tells_values_with_their_place_and_who_gains_or_loses() -> None:
    recorder = control_plane(difference(shrinks=["removes 1 of 2 grants"]))
    result = await call(recorder, "policy", "diff", "--generation", "3", "--base", "2")
    assert result.exit_code == 0
    for told in ("retrieve_policy.top_k", "5", "8", "a.yaml:2", "gains", "loses", "differs", "in part", "and 1 more"):
        assert told in result.stdout
    assert "--allow-shrink is needed: removes 1 of 2 grants" in result.stdout
    assert (recorder.requests[0].generation, recorder.requests[0].base_generation) == (3, 2)


async def test_a_difference_as_json_is_what_the_contract_says() -> None:
    told = json.loads((await call(control_plane(difference()), "policy", "diff", "--json")).stdout)
    assert told["accesses"][0]["after"] == "ALL"
    assert told["total_accesses"] == 4


async def test_no_difference_is_said() -> None:
    result = await call(control_plane(admin_pb.DiffPolicySetResponse()), "policy", "diff")
    assert "no value differs" in result.stdout
    assert "nobody gains or loses access" in result.stdout


async def test_a_broken_set_is_not_compared_and_ends_with_1() -> None:
    said = policy_pb2.PolicyDiagnostic(
        severity=policy_pb2.DIAGNOSTIC_SEVERITY_ERROR, code="SYNTAX", message="look here", file="w.yaml", line=2
    )
    answer = admin_pb.DiffPolicySetResponse(diagnostics=[said], total_diagnostics=1)
    result = await call(control_plane(answer), "policy", "diff")
    assert result.exit_code == 1
    assert "w.yaml:2" in result.stdout
    assert "nobody" not in result.stdout


async def test_a_rollback_tells_what_is_in_force_and_sends_what_was_asked() -> None:
    recorder = control_plane(difference())
    result = await call(recorder, "policy", "rollback", "3", "--comment", "too strict", "--allow-shrink")
    assert result.exit_code == 0
    assert "in force: generation 5" in result.stdout
    request = recorder.requests[0]
    assert (request.generation, request.comment, request.allow_shrink) == (3, "too strict", True)
    assert request.request_id


async def test_a_refused_rollback_ends_with_1() -> None:
    assert (await call(control_plane(difference(), accepted=False), "policy", "rollback", "3")).exit_code == 1


async def test_a_reload_with_diff_tells_accesses_first() -> None:
    recorder = control_plane(difference())
    result = await call(recorder, "policy", "reload", "--diff")
    assert result.stdout.index("gains") < result.stdout.index("accepted: generation 5")
    assert [type(request).__name__ for request in recorder.requests] == [
        "GetPolicySetRevisionRequest",
        "DiffPolicySetRequest",
        "ReloadPolicySetRequest",
    ]


async def test_a_reload_with_diff_applies_to_the_revision_that_it_told_of_alone() -> None:
    recorder = control_plane(difference())
    await call(recorder, "policy", "reload", "--diff")
    await call(recorder, "policy", "reload", "--diff", "--etag", "given")
    assert [each.etag for each in recorder.requests if isinstance(each, admin_pb.ReloadPolicySetRequest)] == [
        "as-told",
        "given",
    ]
