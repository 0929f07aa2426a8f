"""One plane in the foreground: its log on stderr, its address on stdout once it serves."""

import os
import sys
from collections.abc import Mapping
from typing import NoReturn

from memplane.cli.config import plane_environment
from memplane.cli.session import Session


def run_plane(session: Session, name: str, options: Mapping[str, object]) -> NoReturn:
    """Becomes the plane: one process, so that whoever signals or kills this command reaches the plane itself.

    `options` are its flags; those that are None were not given.
    """
    given = {f"--{flag.replace('_', '-')}": str(value) for flag, value in options.items() if value is not None}
    arguments = [part for pair in given.items() for part in pair]
    announce = "json" if session.as_json else "text"
    command = [sys.executable, "-m", f"{name}plane.main", *arguments, "--announce", announce]
    os.execve(sys.executable, command, plane_environment({}))  # noqa: S606 - our own module, no shell
