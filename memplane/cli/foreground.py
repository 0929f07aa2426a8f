"""One plane in the foreground: its log on stderr, its address on stdout once it serves."""

import tempfile
from pathlib import Path

import click

from memplane.cli.output import Output
from memplane.cli.processes import PlaneCommand, PlaneFailed, first_end, start, stop_on_signals
from memplane.cli.session import Session, run


def run_plane(session: Session, name: str, arguments: list[str]) -> None:
    """Runs the plane until a signal.

    Raises:
        click.ClickException: It did not come up, or ended by itself.
    """
    with tempfile.TemporaryDirectory() as scratch:
        command = PlaneCommand(name, f"{name}plane.main", arguments, {}, Path(scratch) / "ready")
        try:
            run(_serve(session.out, command))
        except PlaneFailed as error:
            raise click.ClickException(str(error)) from None


async def _serve(out: Output, command: PlaneCommand) -> None:
    stop = stop_on_signals()
    plane = await start(command, lambda _name, line: out.note(line, ""))
    try:
        if out.as_json:
            out.json({"address": plane.address, "pid": plane.process.pid})
        else:
            out.line(f"{command.name} plane serves on {plane.address}", "bold green")
        if await first_end((plane,), stop) is not None:
            raise PlaneFailed(plane.name, f"ended with exit code {plane.process.returncode}", ())
    finally:
        await plane.stop()
