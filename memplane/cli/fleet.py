"""`memplane fleet`: which data plane runs which policy version."""

import click

from memplane.cli.output import enum_name, plain, short_time
from memplane.cli.session import Session, connection_options, pass_session, run
from memplane.v1 import policy_admin_service_pb2 as pb
from memplane.v1 import policy_pb2

COLUMNS = ("node", "address", "state", "generation", "connected", "memories", "not tried", "last seen", "error")


@click.command(
    epilog="""\b
Examples:
  memplane fleet
  memplane fleet --json"""
)
@connection_options
@pass_session
def fleet(session: Session, /) -> None:
    """Lists the data planes: which policy each serves from, and how it is doing."""

    async def call() -> pb.ListDataPlaneStatusesResponse:
        async with session.admin() as client:
            return await client.data_planes()

    answer = run(call())
    if session.as_json:
        session.out.json(plain(answer))
        return
    session.out.line(f"in force: generation {answer.generation}, {answer.version_info}")
    rows = [
        (
            each.node.node_id,
            each.node.address,
            enum_name(each, "sync_state"),
            each.generation,
            each.connected,
            each.report.memory_count,
            stopped(each.report),
            short_time(each.last_seen_time),
            each.error_detail,
        )
        for each in answer.data_planes
    ]
    session.out.table(COLUMNS, rows)
    if answer.folder_error:
        session.out.line(f"the policy folder is NOT in force: {answer.folder_error}", "bold red")


def stopped(report: policy_pb2.NodeReport) -> str:
    """The operations whose breaker lets nothing through, such as "text_index reads"."""
    return ", ".join(
        f"{backend.backend} {breaker.operations}"
        for backend in report.backends
        for breaker in backend.breakers
        if breaker.state == policy_pb2.BREAKER_STATE_OPEN
    )
