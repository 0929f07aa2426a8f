import grpc
import pytest

from memplane.cli.doctor import (
    ABSENCE_ADVICE,
    FILE_ADVICE,
    KEY_ADVICE,
    LAG_ROWS,
    STORE_ADVICE,
    judge_fleet,
    judge_folder,
    judge_service,
)
from memplane.client.errors import Details, RpcError
from memplane.errors import PolicyAbsence, PolicyNotLoaded
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


def test_a_record_store_that_takes_no_writes_is_told_with_its_reason():
    full = policy_pb2.BackendStatus(
        backend="record_store", adapter="sqlite", detail="takes no writes: the disk is full"
    )
    (finding,) = [each for each in judge_fleet(fleet(full)) if not each.ok]
    assert (finding.detail, finding.advice) == ("takes no writes: the disk is full", FILE_ADVICE)


def test_a_policy_refused_for_its_signature_leads_to_the_trusted_key():
    answer = fleet(state=policy_pb2.SYNC_STATE_ERROR)
    answer.data_planes[0].error_detail = "UntrustedSnapshot: …; --trusted-key must be …"
    (finding,) = [each for each in judge_fleet(answer) if not each.ok]
    assert finding.advice == KEY_ADVICE


@pytest.mark.parametrize("absence", PolicyAbsence)
def test_without_a_policy_the_cause_is_told_and_the_record_store_is_not_blamed(absence):
    error = PolicyNotLoaded(absence)
    details = Details("POLICY_NOT_LOADED", facts=tuple(error.metadata.items()))
    refusal = RpcError(grpc.StatusCode.UNAVAILABLE, error.message, details)
    policy, reads, writes = judge_service(False, False, refusal)
    assert (policy.ok, policy.advice) == (False, ABSENCE_ADVICE[absence.name])
    assert absence.value in policy.detail
    assert {reads.detail, writes.detail} == {"not without a policy"}


@pytest.mark.parametrize(
    ("reads", "writes", "details"),
    [
        (True, True, ["yes", "yes", "yes"]),
        (True, False, ["yes", "yes", "its record store takes no writes"]),
        (False, False, ["yes", "its record store does not answer", "not without reads"]),
    ],
)
def test_with_a_policy_the_record_store_is_judged(reads, writes, details):
    findings = judge_service(reads, writes, None)
    assert [each.detail for each in findings] == details
    assert [each.ok for each in findings] == [True, reads, writes]
    assert all(each.ok or each.advice == STORE_ADVICE for each in findings)


@pytest.mark.parametrize(
    ("reads", "writes", "oks"),
    [(True, True, [False, True, True]), (True, False, [False, True, False]), (False, False, [False, False, False])],
    ids=["serve", "read_only", "deny"],
)
def test_a_stale_policy_is_told_and_the_record_store_is_not_blamed(reads, writes, oks):
    refusal = RpcError(grpc.StatusCode.UNAVAILABLE, "not confirmed for too long", Details("POLICY_STALE"))
    findings = judge_service(reads, writes, None if reads else refusal, is_stale=True)
    assert [each.ok for each in findings] == oks
    assert "stale_after_s" in findings[0].detail
    assert "control plane" in findings[0].advice
    assert all("record store" not in each.detail + each.advice for each in findings)


@pytest.mark.parametrize(
    ("ends_s", "problem", "ok", "detail"),
    [
        (2_000, "", True, "CN=data ends at 1970-01-01 00:33:20Z"),
        (1_000, "", False, "CN=data ended at 1970-01-01 00:16:40Z"),
        (2_000, "tls.key: No such file", False, "newer files are not in use: tls.key: No such file"),
    ],
)
def test_a_certificate_that_ended_or_is_not_the_newest_is_wrong(ends_s, problem, ok, detail):
    answer = fleet()
    answer.data_planes[0].last_seen_time.FromSeconds(1_500)
    told = answer.data_planes[0].report.certificates.add(purpose="server", subject="CN=data", problem=problem)
    told.expire_time.FromSeconds(ends_s)
    finding = judge_fleet(answer)[-1]
    assert (finding.subject, finding.ok, finding.detail) == ("data-1 certificate (server)", ok, detail)
    assert bool(finding.advice) is not ok


def test_the_fleet_tells_of_a_stale_policy():
    answer = fleet()
    answer.data_planes[0].report.stale_action = "serve"
    (finding,) = [each for each in judge_fleet(answer) if not each.ok]
    assert (finding.subject, "stale_action is serve" in finding.detail) == ("data-1 POLICY_STALE", True)


@pytest.mark.parametrize(
    ("serving", "error", "ok", "advice"),
    [
        (True, "", [True], ""),
        (None, "", [], ""),
        (False, "", [False], "policy.read"),
        (False, "w.yaml:2:3: SYNTAX", [False], "memplane policy validate"),
        (False, "the new set removes: …; set allow_shrink to accept", [False], "--allow-shrink"),
    ],
)
def test_a_folder_that_is_not_in_force_is_wrong_and_says_what_to_do(serving, error, ok, advice):
    findings = judge_folder(serving, error)
    assert [each.ok for each in findings] == ok
    assert all(error in each.detail and advice in each.advice for each in findings)


def test_a_backend_is_told_with_server_version_and_latency_and_each_of_its_problems():
    backend = policy_pb2.BackendStatus(
        backend="cache",
        adapter="redis",
        healthy=True,
        server="Redis 7.2",
        problems=[policy_pb2.BackendProblem(code="EVICTS", message="it evicts; set maxmemory-policy noeviction")],
        dead_letters=3,
    )
    backend.latency.FromMicroseconds(1_500)
    *_, well, evicts, dead = judge_fleet(fleet(backend))
    assert (well.ok, well.detail) == (True, "Redis 7.2, 1.5 ms")
    assert (evicts.ok, evicts.detail, evicts.advice) == (False, "it evicts", "set maxmemory-policy noeviction")
    assert (dead.ok, dead.detail) == (False, "3 changes were given up")


def test_queued_writes_that_were_set_aside_are_a_finding_of_their_own():
    queue = policy_pb2.BackendStatus(backend="queue", adapter="redis", healthy=True, dead_letters=2)
    *_, found = judge_fleet(fleet(queue))
    assert (found.ok, found.detail) == (False, "2 queued writes were given up")
    assert "memplane queue" in found.advice


def test_an_open_breaker_is_a_finding_with_its_reason_and_advice():
    cache = policy_pb2.BackendStatus(backend="cache", adapter="redis", healthy=True)
    cache.breakers.add(operations="reads", state=policy_pb2.BREAKER_STATE_CLOSED, opened_count=4)
    cache.breakers.add(operations="writes", state=policy_pb2.BREAKER_STATE_OPEN, opened_count=2, reason="too slow")
    (finding,) = [each for each in judge_fleet(fleet(cache)) if not each.ok]
    assert finding.subject == "data-1 cache (redis) BREAKER_OPEN"
    assert "too slow" in finding.detail
    assert "degradation_policy" in finding.advice
