"""`memplane doctor`: asks the running planes what is wrong, and says what to do. Opens no store itself."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import click
import grpc
from google.protobuf.timestamp_pb2 import Timestamp

from memplane.cli.output import short_time
from memplane.cli.planes import WRITE_SERVICE, is_serving, serving_state
from memplane.cli.session import Session, connection_options, pass_session, run
from memplane.client import RpcError
from memplane.client.errors import from_call
from memplane.client.tls import async_channel
from memplane.errors import PolicyAbsence
from memplane.v1 import memory_service_pb2_grpc, policy_pb2
from memplane.v1 import policy_admin_service_pb2 as pb
from memplane.v1.memory_service_pb2 import ListMemoriesRequest

LAG_ROWS = 1000
"""Outbox rows behind which an index is called late. Unmeasured."""
CALL_TIMEOUT_S = 5.0
FOLDER_SERVICE = "memplane.v1.PolicyFolder"
POLICY_SERVICE = "memplane.v1.Policy"

STORE_ADVICE = "see the record store's line below"
FILE_ADVICE = "free the disk or make it writable; the data plane's log says more"
SERVER_ADVICE = "see that it runs and can be reached and written to; the data plane goes on by itself when it is back"
KEY_ADVICE = "start it with --trusted-key: the control plane's signing_key.pub"
ABSENCE_ADVICE = {
    PolicyAbsence.NOT_FETCHED.name: "wait; else see its log",
    PolicyAbsence.NONE_IN_FORCE.name: "put one in force: memplane policy validate, then memplane policy reload",
    PolicyAbsence.NO_CONTROL_PLANE.name: "start the control plane, or start the data plane with its address: --control",
    PolicyAbsence.NODE_KEY_REFUSED.name: "start it with the key whose hash the control plane has",
    PolicyAbsence.NO_TRUSTED_KEY.name: KEY_ADVICE,
    PolicyAbsence.UNTRUSTED.name: KEY_ADVICE,
    PolicyAbsence.REFUSED.name: "see its log and memplane fleet; bring both planes to one version",
}
"""What to do, by why there is no policy."""
STALE_ADVICE = (
    "bring the control plane back, or the data plane's way to it; the first heartbeat that confirms the policy ends it"
)
CERTIFICATE_ADVICE = "write files that fit together and are valid; it takes them by itself, see docs/security.md"
BREAKER_ADVICE = (
    "see that it runs, can be reached and is quick enough; it is tried again by itself. If it is well and only slow, "
    "raise its limits in degradation_policy"
)


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at, how it is, and what to do when it is not well."""

    subject: str
    ok: bool
    detail: str
    advice: str = ""


@click.command(
    epilog="""\b
Examples:
  memplane doctor
  memplane doctor --target 10.0.0.7:7701 --json"""
)
@connection_options
@pass_session
def doctor(session: Session, /) -> None:
    """Asks both planes how they are and says what to do about what is wrong. Exit code 1 when something is."""
    findings = run(examine(session))
    if session.as_json:
        session.out.json([asdict(finding) for finding in findings])
    else:
        rows = [("ok" if each.ok else "WRONG", each.subject, each.detail, each.advice) for each in findings]
        session.out.table(("state", "what", "detail", "what to do"), rows)
    if not all(finding.ok for finding in findings):
        raise click.exceptions.Exit(1)


async def examine(session: Session) -> list[Finding]:
    """Everything that can be asked, in the order in which one would look."""
    async with async_channel(session.control, session.tls) as channel:
        findings = [_judge_alive("control plane", session.control, await is_serving(channel, ""))]
        folder = await serving_state(channel, FOLDER_SERVICE)
    async with async_channel(session.data_address, session.tls) as channel:
        findings += await _ask_data_plane(session, channel)
    try:
        async with session.admin() as client:
            answer = await client.data_planes()
    except RpcError as error:
        findings += judge_folder(folder, "")
        findings.append(Finding("fleet", False, error.sentence(), "check --control and --api-key (policy.read)"))
        return findings
    return [*findings, *judge_folder(folder, answer.folder_error), *judge_fleet(answer)]


def _judge_alive(plane: str, address: str, alive: bool) -> Finding:
    if alive:
        return Finding(f"{plane} alive", True, address)
    advice = f"start it: memplane up, or memplane {plane.partition(' ')[0]}; or name its address"
    return Finding(f"{plane} alive", False, f"nobody answers at {address}", advice)


async def _ask_data_plane(session: Session, channel: grpc.aio.Channel) -> list[Finding]:
    alive = _judge_alive("data plane", session.data_address, await is_serving(channel, ""))
    if not alive.ok:
        return [alive]
    reads = await is_serving(channel, WRITE_SERVICE.removesuffix(".Write"))
    writes = await is_serving(channel, WRITE_SERVICE)
    is_stale = await serving_state(channel, POLICY_SERVICE) is False
    refusal = None if reads else await _refusal(session, channel)
    return [alive, *judge_service(reads, writes, refusal, is_stale)]


async def _refusal(session: Session, channel: grpc.aio.Channel) -> RpcError | None:
    """How the data plane refuses a call; None when it answers. Without retries: a doctor need not wait."""
    stub: Any = memory_service_pb2_grpc.MemoryServiceStub(channel)
    metadata = (("authorization", f"Bearer {session.api_key}"),)
    try:
        await stub.ListMemories(ListMemoriesRequest(namespace="doctor"), metadata=metadata, timeout=CALL_TIMEOUT_S)
    except grpc.aio.AioRpcError as error:
        return from_call(error)
    return None


def judge_service(reads: bool, writes: bool, refusal: RpcError | None, is_stale: bool = False) -> list[Finding]:
    """What a data plane that is alive does. `refusal` is how it refuses a call while it serves no reads.

    `is_stale`: it says that its policy is not there, or was not confirmed for too long.
    """
    policy, read, write = "data plane has a policy", "data plane answers reads", "data plane takes writes"
    reason = "" if refusal is None else refusal.reason
    if refusal is not None and reason == "POLICY_NOT_LOADED":
        advice = ABSENCE_ADVICE.get(dict(refusal.facts).get("cause", ""), "see its log")
        waits = [Finding(each, False, "not without a policy", "see the line above") for each in (read, write)]
        return [Finding(policy, False, refusal.message, advice), *waits]
    stale = "not confirmed for longer than degradation_policy.stale_after_s" if is_stale else ""
    unread = "" if reads else "its record store does not answer" if refusal is None else refusal.sentence()
    unwritten = (
        "not without reads" if unread else "its policy is stale" if stale else "its record store takes no writes"
    )
    advice = "see the line above" if reason == "POLICY_STALE" or (stale and reads) else STORE_ADVICE
    return [
        Finding(policy, not stale, stale or "yes", STALE_ADVICE if stale else ""),
        Finding(read, reads, unread or "yes", "" if reads else advice),
        Finding(write, writes, "yes" if writes else unwritten, "" if writes else advice),
    ]


def judge_folder(serving: bool | None, error: str) -> list[Finding]:
    """Whether what the policy folder holds is in force; nothing is found where there is no folder.

    `serving` is what health says, None where it knows of no folder; `error` is why not, for those who may know.
    """
    if error:
        return [Finding("policy folder", False, f"not in force: {error}", _folder_advice(error))]
    if serving is False:
        return [Finding("policy folder", False, "not in force", "ask again with a key that has policy.read")]
    return [Finding("policy folder", True, "in force")] if serving else []


def _folder_advice(error: str) -> str:
    if "allow_shrink" in error:
        return "put back what is missing; if it is meant: memplane policy reload --allow-shrink"
    return "mend the folder, then: memplane policy validate; until then the last good policy stays"


def judge_fleet(answer: pb.ListDataPlaneStatusesResponse) -> list[Finding]:
    """What the control plane knows of each data plane and its backends."""
    if not answer.data_planes:
        return [Finding("fleet", False, "no data plane was ever heard", "start one and check its node key")]
    return [finding for status in answer.data_planes for finding in _judge(status)]


def _judge(status: policy_pb2.DataPlaneStatus) -> Iterator[Finding]:
    node = status.node.node_id
    yield Finding(
        f"{node} connected",
        status.connected,
        f"last seen {short_time(status.last_seen_time)}",
        ""
        if status.connected
        else "check its process and its way to the control plane; it serves its last good policy",
    )
    synced = status.sync_state == policy_pb2.SYNC_STATE_SYNCED
    refused = status.sync_state == policy_pb2.SYNC_STATE_ERROR
    advice = "fix the policy or the data plane's version, then reload" if refused else "wait, or see its log"
    if refused and "--trusted-key" in status.error_detail:
        advice = KEY_ADVICE
    yield Finding(f"{node} policy", synced, status.error_detail or status.version_info, "" if synced else advice)
    if status.report.stale_action:
        told = f"not confirmed for longer than stale_after_s; stale_action is {status.report.stale_action}"
        yield Finding(f"{node} POLICY_STALE", False, told, STALE_ADVICE)
    for backend in status.report.backends:
        yield from _judge_backend(node, backend)
    for certificate in status.report.certificates:
        yield _judge_certificate(node, certificate, status.last_seen_time)


def _judge_certificate(node: str, told: policy_pb2.CertificateStatus, now: Timestamp) -> Finding:
    """`now` is when the data plane was last heard: it told of its certificates then."""
    subject = f"{node} certificate ({told.purpose})"
    if told.problem:
        return Finding(subject, False, f"newer files are not in use: {told.problem}", CERTIFICATE_ADVICE)
    if told.expire_time.ToMicroseconds() <= now.ToMicroseconds():
        return Finding(subject, False, f"{told.subject} ended at {short_time(told.expire_time)}", CERTIFICATE_ADVICE)
    return Finding(subject, True, f"{told.subject} ends at {short_time(told.expire_time)}")


def _judge_backend(node: str, backend: policy_pb2.BackendStatus) -> Iterator[Finding]:
    subject = f"{node} {backend.backend} ({backend.adapter})"
    if not backend.healthy:
        advice = "answers go on without it; see its log"
        if backend.backend == "record_store":
            advice = FILE_ADVICE if backend.adapter == "sqlite" else SERVER_ADVICE
        yield Finding(subject, False, backend.detail or "does not answer", advice)
    elif backend.lag > LAG_ROWS:
        yield Finding(subject, False, f"{backend.lag} changes behind", "the projector is slow or paused; see its log")
    else:
        yield Finding(subject, True, _well(backend))
    for breaker in backend.breakers:
        if breaker.state == policy_pb2.BREAKER_STATE_OPEN:
            yield _judge_breaker(subject, breaker)
    for problem in backend.problems:
        what, _, advice = problem.message.partition("; ")
        yield Finding(f"{subject} {problem.code}", False, what, advice)
    if backend.dead_letters:
        yield _judge_given_up(subject, backend)


def _judge_given_up(subject: str, backend: policy_pb2.BackendStatus) -> Finding:
    if backend.backend == "queue":
        detail = f"{backend.dead_letters} queued writes were given up"
        return Finding(f"{subject} SET_ASIDE", False, detail, "memplane queue set-aside, then replay")
    detail = f"{backend.dead_letters} changes were given up"
    return Finding(f"{subject} DEAD_LETTERS", False, detail, "memplane indexes dead-letters, then replay")


def _judge_breaker(subject: str, breaker: policy_pb2.BreakerStatus) -> Finding:
    what = f"{breaker.operations} are not tried since {short_time(breaker.since)}: {breaker.reason}"
    times = f", opened {breaker.opened_count} times" if breaker.opened_count > 1 else ""
    return Finding(f"{subject} BREAKER_OPEN", False, what + times, BREAKER_ADVICE)


def _well(backend: policy_pb2.BackendStatus) -> str:
    latency_ms = backend.latency.ToMicroseconds() / 1000
    told = (
        backend.server,
        f"{latency_ms:.1f} ms" if backend.HasField("latency") else "",
        f"{backend.lag} changes behind" if backend.lag else "",
    )
    return ", ".join(part for part in told if part) or "well"
