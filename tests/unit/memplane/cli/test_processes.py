import asyncio
from pathlib import Path

import pytest

from memplane.cli import processes
from memplane.cli.processes import PlaneCommand, PlaneFailed, first_end, start

SERVES = """
import json, pathlib, signal, sys
print("hello from the plane", flush=True)
ready = pathlib.Path(sys.argv[sys.argv.index("--ready-file") + 1])
fresh = ready.with_suffix(".new")
fresh.write_text(json.dumps({"address": "127.0.0.1:1", "pid": 1}))
fresh.rename(ready)
signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
signal.pause()
"""
FAILS = "import sys; print('no such folder'); sys.exit(3)"


@pytest.fixture
def plane(tmp_path, monkeypatch):
    """Makes a module that stands for a plane."""

    def make(source: str) -> PlaneCommand:
        (tmp_path / "stand_in.py").write_text(source)
        return PlaneCommand("data", "stand_in", (), {"PYTHONPATH": str(tmp_path)}, Path(tmp_path) / "ready")

    return make


async def test_a_plane_is_started_heard_and_stopped(plane):
    lines: list[tuple[str, str]] = []
    running = await start(plane(SERVES), lambda name, line: lines.append((name, line)))
    assert running.address == "127.0.0.1:1"
    assert running.running
    assert await running.stop() == 0
    assert await running.stop() == 0
    assert lines == [("data", "hello from the plane")]


async def test_a_plane_that_ends_at_once_is_reported_with_its_last_words(plane):
    with pytest.raises(
        PlaneFailed, match=r"the data plane ended with exit code 3; the end of its log:\n  no such folder"
    ):
        await start(plane(FAILS), lambda _name, _line: None)


async def test_a_plane_that_never_serves_is_not_left_running(plane, monkeypatch):
    monkeypatch.setattr(processes, "START_TIMEOUT_S", 0.3)
    with pytest.raises(PlaneFailed, match="did not serve within"):
        await start(plane("import signal; signal.pause()"), lambda _name, _line: None)


async def test_the_first_plane_to_end_is_named(plane):
    running = await start(plane(SERVES), lambda _name, _line: None)
    waiting = asyncio.create_task(first_end((running,), asyncio.Event()))
    await running.kill()
    assert await waiting is running


async def test_a_stop_comes_before_the_planes_end(plane):
    running = await start(plane(SERVES), lambda _name, _line: None)
    stop = asyncio.Event()
    stop.set()
    assert await first_end((running,), stop) is None
    assert await running.stop() == 0
