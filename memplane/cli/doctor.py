"""`memplane doctor`: asks the running planes what is wrong, and says what to do. Opens no store itself."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass

import click
import grpc

from memplane.cli.output import short_time
from memplane.cli.planes import WRITE_SERVICE, is_serving
from memplane.cli.session import Session, connection_options, pass_session, run
from memplane.client import RpcError
from memplane.v1 import policy_admin_service_pb2 as pb
from memplane.v1 import policy_pb2

LAG_ROWS = 1000
"""Outbox rows behind which an index is called late. Unmeasured."""


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
    findings = [*(await _health(session))]
    try:
        async with session.admin() as client:
            findings += judge_fleet(await client.data_planes())
    except RpcError as error:
        findings.append(Finding("fleet", False, error.sentence(), "check --control and --api-key (policy.read)"))
    return findings


async def _health(session: Session) -> list[Finding]:
    asked = (
        ("control plane alive", session.control, "", "start it: memplane up, or memplane control"),
        ("data plane alive", session.data_address, "", "start it: memplane up, or memplane data"),
        (
            "data plane answers reads",
            session.data_address,
            WRITE_SERVICE.removesuffix(".Write"),
            "it has no policy or no way to answer; see its log",
        ),
        ("data plane takes writes", session.data_address, WRITE_SERVICE, "its record store is down; see its log"),
    )
    findings = []
    for subject, address, service, advice in asked:
        async with grpc.aio.insecure_channel(address) as channel:
            serving = await is_serving(channel, service)
        findings.append(Finding(subject, serving, address, "" if serving else advice))
    return findings


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
    yield Finding(f"{node} policy", synced, status.error_detail or status.version_info, "" if synced else advice)
    for backend in status.report.backends:
        yield _judge_backend(node, backend)


def _judge_backend(node: str, backend: policy_pb2.BackendStatus) -> Finding:
    subject = f"{node} {backend.backend} ({backend.adapter})"
    if not backend.healthy:
        return Finding(subject, False, backend.detail or "does not answer", "answers go on without it; see its log")
    if backend.lag > LAG_ROWS:
        return Finding(subject, False, f"{backend.lag} changes behind", "the projector is slow or paused; see its log")
    return Finding(subject, True, f"{backend.lag} changes behind" if backend.lag else "well")
