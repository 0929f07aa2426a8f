"""One plane in the foreground: its log on stderr, its address on stdout once it serves."""

import os
import sys
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import click

from memplane.cli.config import plane_environment
from memplane.cli.session import Command, Session

PASSED_ON: dict[str, Any] = {"ignore_unknown_options": True}
"""Settings of a click command whose unknown flags the plane reads itself; it tells of those that it does not know."""


def plane_flags(command: Command) -> Command:
    """Takes what the command does not know as `more`."""
    return click.argument("more", nargs=-1, type=click.UNPROCESSED, metavar="[FLAGS OF THE PLANE]")(command)


def run_plane(session: Session, name: str, options: Mapping[str, object], more: Sequence[str]) -> NoReturn:
    """Becomes the plane: one process, so that whoever signals or kills this command reaches the plane itself.

    `options` are its flags; those that are None were not given. `more` are flags as they were given.
    """
    given = {f"--{flag.replace('_', '-')}": str(value) for flag, value in options.items() if value is not None}
    arguments = [*(part for pair in given.items() for part in pair), *more]
    announce = "json" if session.as_json else "text"
    command = [sys.executable, "-m", f"{name}plane.main", *arguments, "--announce", announce]
    os.execve(sys.executable, command, plane_environment({}))  # noqa: S606 - our own module, no shell
