"""`memplane queue`: shows queued writes that were given up, and queues them again."""

import click

from memplane.cli.output import plain, short_time
from memplane.cli.session import Session, connection_options, pass_session, run
from memplane.client.maintenance import MaintenanceClient
from memplane.v1 import maintenance_service_pb2 as pb

LARGEST_PAGE = 1_000


@click.group(
    epilog="""\b
Examples:
  memplane queue set-aside
  memplane queue replay"""
)
@connection_options
def queue() -> None:
    """Looks after the queue of writes; needs `maintenance` on every namespace."""


@queue.command(
    "set-aside",
    epilog="""\b
Examples:
  memplane queue set-aside --first 0 --json""",
)
@click.option("--first", type=click.IntRange(min=0), default=100, show_default=True, help="How many; 0 is all.")
@connection_options
@pass_session
def set_aside(session: Session, /, first: int) -> None:
    """Lists queued writes that were given up; `memplane operation` tells the error of each."""

    async def call() -> list[pb.SetAsideWrite]:
        found: list[pb.SetAsideWrite] = []
        async with _client(session) as client:
            async for write in client.set_aside_writes(min(first, LARGEST_PAGE) or LARGEST_PAGE):
                found.append(write)
                if len(found) == first:
                    break
        return found

    writes = run(call())
    if session.as_json:
        session.out.json([plain(write) for write in writes])
    elif not writes:
        session.out.line("nothing was set aside", "green")
    else:
        rows = [(each.id, each.operation, each.namespace, each.principal_id, short_time(each.time)) for each in writes]
        session.out.table(("id", "operation", "namespace", "principal", "accepted"), rows)


@queue.command(
    epilog="""\b
Examples:
  memplane queue replay
  memplane queue replay 1207 1209"""
)
@click.argument("ids", nargs=-1)
@connection_options
@pass_session
def replay(session: Session, /, ids: tuple[str, ...]) -> None:
    """Queues writes again that were given up: those with the ids, or all."""

    async def call() -> int:
        async with _client(session) as client:
            return await client.replay_set_aside(ids)

    replayed = run(call())
    if session.as_json:
        session.out.json({"replayed_count": replayed})
        return
    session.out.line(f"{replayed} in the queue again", "green")


def _client(session: Session) -> MaintenanceClient:
    return MaintenanceClient(session.data_address, session.api_key, tls=session.tls)
