"""Takes about 6 s."""

import sys
from pathlib import Path

import psutil
import pytest

from tests.deadline import eventually
from tests.e2e.commands import up


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells of a parent's death")
async def test_the_planes_of_a_killed_memplane_up_stop_in_order(tmp_path: Path) -> None:
    async with up(tmp_path) as (process, announced):
        planes = [psutil.Process(announced[f"{name}_pid"]) for name in ("control", "data")]
        process.kill()
        await process.wait()
        await eventually(lambda: any(_lives(plane) for plane in planes), lambda lives: not lives, 30)


def _lives(process: psutil.Process) -> bool:
    return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
