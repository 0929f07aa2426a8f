"""`memplane history`: lists the versions of a memory."""

import click

from memplane.cli.output import plain, short_time, shorten
from memplane.cli.session import Session, connection_options, pass_session, run
from memplane.v1 import memory_service_pb2 as pb


@click.command(
    epilog="""\b
Examples:
  memplane history dept.sales.agent_a mem_…"""
)
@click.argument("namespace")
@click.argument("memory_id")
@connection_options
@pass_session
def history(session: Session, /, namespace: str, memory_id: str) -> None:
    """Lists the versions of a memory, newest first: what it said, who changed it, when and why."""

    async def call() -> list[pb.MemoryVersion]:
        async with session.memory() as client:
            return [version async for version in client.versions(namespace, memory_id)]

    versions = run(call())
    if session.as_json:
        session.out.json([plain(version) for version in versions])
        return
    rows = [
        (
            each.memory.version,
            each.change,
            short_time(each.record_time),
            each.principal_id,
            each.reason,
            shorten(each.memory.content),
        )
        for each in versions
    ]
    session.out.table(("version", "change", "when", "who", "why", "content"), rows)
