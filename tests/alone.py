"""A test marked `alone` runs while no other test of the run does, whichever worker has it.

The workers of a run share a folder with two locks. In the room are the tests that run: many at once, or one alone.
Everyone goes in by the door, one after another, so whoever waits there to be alone is followed by nobody. The locks
are the kernel's: those of a worker that crashes are free at once.
"""

import fcntl
import shutil
import tempfile
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

FOLDER = "folder_of_turns"
"""What a worker is told by."""


class Turns:
    """A place among the tests that run. Waits without end: every test has a time limit of its own."""

    def __init__(self, folder: Path) -> None:
        self._door = (folder / "door").open("w")
        self._room = (folder / "room").open("w")

    @contextmanager
    def taken(self, alone: bool) -> Iterator[None]:
        """In the room, with others or alone."""
        fcntl.flock(self._door, fcntl.LOCK_EX)
        try:
            fcntl.flock(self._room, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        finally:
            fcntl.flock(self._door, fcntl.LOCK_UN)
        try:
            yield
        finally:
            fcntl.flock(self._room, fcntl.LOCK_UN)

    def close(self) -> None:
        """Leaves, if it is still in."""
        self._door.close()
        self._room.close()


class OfTheRun:
    """The process that starts the workers: makes the folder and tells them of it."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="memplane-turns-")

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        node.workerinput[FOLDER] = self._folder

    def pytest_unconfigure(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)


class OfAWorker:
    """Outside of a test's time limit, so that nobody fails for having waited."""

    def __init__(self, turns: Turns) -> None:
        self._turns = turns

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        with self._turns.taken(alone=item.get_closest_marker("alone") is not None):
            return (yield)

    def pytest_unconfigure(self) -> None:
        self._turns.close()


def pytest_configure(config: pytest.Config) -> None:
    """A run without workers needs no turns."""
    told: dict[str, str] | None = getattr(config, "workerinput", None)
    if told is not None:
        config.pluginmanager.register(OfAWorker(Turns(Path(told[FOLDER]))))
    elif config.getoption("dist", "no") != "no":
        config.pluginmanager.register(OfTheRun())
