"""Turns among the tests of a run."""

import fcntl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from threading import Thread

import pytest

from tests.alone import Turns
from tests.servers.process import wait_until

ROOT = Path(__file__).parents[1]
ENDS_IN_A_TEST = """
import os, pathlib, sys
from tests.alone import Turns
with Turns(pathlib.Path(sys.argv[1])).taken(alone=True):
    os._exit(0)
"""


@pytest.fixture
def workers(tmp_path: Path) -> Iterator[list[Turns]]:
    turns = [Turns(tmp_path) for _ in range(3)]
    yield turns
    for each in turns:
        each.close()


def test_others_run_beside_each_other(workers: list[Turns], tmp_path: Path) -> None:
    with workers[0].taken(alone=False), workers[1].taken(alone=False):
        assert is_held(tmp_path / "room")


def test_one_alone_waits_for_who_runs_and_goes_before_who_comes_later(workers: list[Turns], tmp_path: Path) -> None:
    ran: list[str] = []

    def run(worker: Turns, name: str, *, alone: bool) -> None:
        with worker.taken(alone=alone):
            ran.append(name)

    later = Thread(target=run, args=(workers[2], "later"), kwargs={"alone": False})
    with workers[0].taken(alone=False):
        alone = Thread(target=run, args=(workers[1], "alone"), kwargs={"alone": True})
        alone.start()
        wait_until(lambda: is_held(tmp_path / "door"), 10, "it waits in the door")
        later.start()
        assert not ran
    for thread in (alone, later):
        thread.join(10)
    assert ran == ["alone", "later"]


def test_a_worker_that_ends_in_the_midst_of_a_test_keeps_nobody_waiting(workers: list[Turns], tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", ENDS_IN_A_TEST, str(tmp_path)], cwd=ROOT, check=True)
    with workers[0].taken(alone=True):
        assert is_held(tmp_path / "room")


def is_held(lock: Path) -> bool:
    with closing(lock.open("w")) as opened:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        return False
