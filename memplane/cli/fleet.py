"""`memplane fleet`: which data plane runs which policy version."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, suppress

import click
from rich.console import Group
from rich.live import Live
from rich.text import Text

from memplane.cli.fleet_table import COLUMNS, FleetTable, row_of
from memplane.cli.output import Output, plain, table_of
from memplane.cli.session import Session, connection_options, pass_session, run
from memplane.client.errors import Unavailable
from memplane.v1 import policy_admin_service_pb2 as pb

PAUSE_S = 1.0
"""Between two attempts to watch, and between two drawings of the ages."""


@click.command(
    epilog="""\b
Examples:
  memplane fleet
  memplane fleet --watch
  memplane fleet --watch --json | jq .data_plane.sync_state"""
)
@click.option("--watch", "watches", is_flag=True, help="Show changes as they come; with --json one line for each.")
@connection_options
@pass_session
def fleet(session: Session, /, *, watches: bool) -> None:
    """Lists the data planes, lost ones too: which policy each serves from, and how it is doing."""
    if watches:
        with suppress(KeyboardInterrupt):
            run(_watch(session))
        return

    async def call() -> pb.ListDataPlaneStatusesResponse:
        async with session.admin() as client:
            return await client.data_planes()

    answer = run(call())
    if session.as_json:
        session.out.json(plain(answer))
        return
    session.out.line(in_force(answer.version_info, answer.generation))
    session.out.table(COLUMNS, [row_of(status) for status in answer.data_planes])
    if answer.folder_error:
        session.out.line(f"the policy folder is NOT in force: {answer.folder_error}", "bold red")


def in_force(version: str, generation: int) -> str:
    """Says what is in force."""
    return f"in force: generation {generation}, {version}"


async def _watch(session: Session) -> None:
    out = session.out
    if session.as_json:
        async for answer in _answers(session, out, FleetTable()):
            _print_lines(out, answer)
        return
    table = FleetTable()
    with out.screen() as screen:
        drawing = asyncio.create_task(_draw_on(screen, table))
        try:
            async for answer in _answers(session, out, table):
                table.take(answer, time.monotonic())
                _draw(screen, table)
        finally:
            drawing.cancel()


async def _answers(
    session: Session, out: Output, table: FleetTable
) -> AsyncIterator[pb.WatchDataPlaneStatusesResponse]:
    """What watches tell, one after the other: a control plane that stops or fails is asked again."""
    async with session.admin() as client:
        while True:
            table.start_over()
            reason = "it stopped"
            try:
                async with aclosing(client.watch_data_planes()) as answers:
                    async for answer in answers:
                        yield answer
            except Unavailable as error:
                reason = error.sentence()
            out.note(f"the control plane at {session.control} is asked again: {reason}")
            await asyncio.sleep(PAUSE_S)


def _print_lines(out: Output, answer: pb.WatchDataPlaneStatusesResponse) -> None:
    in_force_now = {"version_info": answer.version_info, "generation": answer.generation}
    for status in answer.data_planes:
        out.json_line({**in_force_now, "data_plane": plain(status)})
    for node_id in answer.removed_node_ids:
        out.json_line({**in_force_now, "removed_node_id": node_id})


async def _draw_on(screen: Live, table: FleetTable) -> None:
    """Lets the ages grow."""
    while True:
        await asyncio.sleep(PAUSE_S)
        _draw(screen, table)


def _draw(screen: Live, table: FleetTable) -> None:
    head = Text(in_force(table.version, table.generation))
    screen.update(Group(head, table_of(COLUMNS, table.rows(time.monotonic()))), refresh=True)
