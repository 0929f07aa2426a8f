"""A server of the tests does not outlive them, and its failure is told."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from tests.servers.process import ServerFailed, free_port, reachable, wait_until
from tests.servers.redis import RedisServer

ROOT = Path(__file__).parents[2]
ENDS_AT_ONCE = """
import os, signal
from tests.servers.redis import RedisServer
server = RedisServer.create()
print(server.process.pid, server.process.folder, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child that its parent died")
def test_a_server_ends_when_the_test_run_is_killed() -> None:
    done = subprocess.run([sys.executable, "-c", ENDS_AT_ONCE], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == -signal.SIGKILL, done.stderr
    pid, folder = done.stdout.split()
    wait_until(lambda: not _runs(int(pid)), 10, "the server ended")
    subprocess.run(["rm", "-r", folder], check=True)


def test_a_server_that_refuses_its_settings_says_so_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(ServerFailed, match="ended with exit code 1") as failure:
        RedisServer.create({"no-such-setting": "1"})
    assert "no-such-setting" in str(failure.value)
    assert not list(tmp_path.iterdir())


def test_a_started_server_is_not_started_twice(redis_server: RedisServer) -> None:
    with pytest.raises(AssertionError, match="runs already"):
        redis_server.start()


def test_free_ports_lie_below_those_of_outgoing_connections() -> None:
    assert all(20_000 <= free_port() < 32_000 for _ in range(20))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root runs servers as somebody else")
def test_binaries_in_a_closed_folder_are_copied_for_the_unprivileged_user(tmp_path: Path) -> None:
    closed, folder = tmp_path / "closed", tmp_path / "folder"
    (closed / "tree").mkdir(parents=True)
    (closed / "tree" / "program").write_text("#!/bin/sh\n")
    folder.mkdir()
    closed.chmod(0o700)
    assert reachable(closed / "tree", folder) == folder / "tree"
    assert (folder / "tree" / "program").exists()
    assert reachable(Path("/usr/bin"), folder) == Path("/usr/bin")


def _runs(pid: int) -> bool:
    return any(process.pid == pid and process.status() != psutil.STATUS_ZOMBIE for process in psutil.process_iter())
