"""One server process: its own folder, a free port, an unprivileged user when the test run is root."""

import os
import pwd
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil

LAUNCHER = Path(__file__).with_name("launch.py")


class ServerFailed(Exception):
    """A server ended, or did not serve in time; the message carries the end of its log."""


def free_port() -> int:
    """A port of 127.0.0.1 that nothing listens on.

    It lies below the ports that outgoing connections are given: a client that knocks at a stopped server again and
    again could otherwise be given the server's port and talk to itself. Of the workers of a run each has ports of its
    own, lest one takes that of a server which another has stopped for a while.
    """
    ports = _ports_of(os.environ.get("PYTEST_XDIST_WORKER", ""))
    for _ in range(100):
        port = secrets.choice(ports)
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return port
    raise ServerFailed(f"no free port between {ports.start} and {ports.stop - 1}")


def _ports_of(worker: str) -> range:
    """A quarter for each of four workers (gw0, gw1 ...), everything for a run without workers."""
    if not worker:
        return range(20_000, 32_000)
    start = 20_000 + 3_000 * (int(worker.removeprefix("gw")) % 4)
    return range(start, start + 3_000)


def unprivileged_user() -> tuple[int, int]:
    """Uid and gid for servers that refuse root; (-1, -1), which keeps the user, where we are not root."""
    if os.geteuid() != 0:
        return -1, -1
    nobody = pwd.getpwnam("nobody")
    return nobody.pw_uid, nobody.pw_gid


def new_folder(name: str) -> Path:
    """A private folder that the unprivileged user owns; pytest's own folders are closed to it."""
    folder = Path(tempfile.mkdtemp(prefix=f"memplane-{name}-"))
    os.chown(folder, *unprivileged_user())
    return folder


def give_away(tree: Path) -> None:
    """Makes the unprivileged user the owner of a whole tree."""
    for path in (tree, *tree.rglob("*")):
        os.chown(path, *unprivileged_user())


def reachable(tree: Path, folder: Path) -> Path:
    """The tree, or a copy of it in the folder where the unprivileged user cannot get at the tree itself."""
    if os.geteuid() != 0 or all(parent.stat().st_mode & stat.S_IXOTH for parent in tree.resolve().parents):
        return tree
    return Path(shutil.copytree(tree, folder / tree.name, symlinks=True))


def launched(command: Sequence[str], death_signal: int = signal.SIGKILL, unprivileged: bool = True) -> list[str]:
    """The command, run under the launcher."""
    uid, gid = unprivileged_user() if unprivileged else (-1, -1)
    numbers = map(str, (os.getpid(), int(death_signal), uid, gid))
    return [sys.executable, "-I", "-S", str(LAUNCHER), *numbers, *command]


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    """What servers see: nothing of the developer's own PGHOST and the like."""
    return {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", **extra}


@dataclass
class ServerProcess:
    """Starts, stops and kills one server; the folder and the log in it outlive each run.

    Start it from the main thread: the server is ended when the thread that started it ends.
    """

    name: str
    folder: Path
    command: Sequence[str]
    stop_signal: signal.Signals = signal.SIGTERM
    unprivileged: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    running: subprocess.Popen[bytes] | None = None

    @property
    def log_file(self) -> Path:
        """Everything the server has said, over all its runs."""
        return self.folder / "server.log"

    @property
    def pid(self) -> int:
        """Of the last run."""
        assert self.running is not None, f"{self.name} was never started"
        return self.running.pid

    def start(self, ready: Callable[[], bool], within_s: float) -> None:
        """Starts it and waits until it is ready; ServerFailed with the end of its log otherwise."""
        assert self.running is None or self.running.poll() is not None, f"{self.name} runs already"
        with self.log_file.open("ab") as log:
            self.running = subprocess.Popen(
                launched(self.command, self.stop_signal, self.unprivileged),
                cwd=self.folder,
                env=environment(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        try:
            wait_until(ready, within_s, f"{self.name} serves", self._still_runs)
        except ServerFailed as error:
            self.kill()
            raise ServerFailed(f"{error}; its log ends:\n{self.log_file.read_text(errors='replace')[-3000:]}") from None

    def stop(self, within_s: float = 30.0) -> None:
        """Ends it in good order, by kill after the time given; nothing happens when it does not run."""
        if self.running is None or self.running.poll() is not None:
            return
        self.running.send_signal(self.stop_signal)
        try:
            self.running.wait(within_s)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """kill -9 of the server and of every process that it started."""
        if self.running is None or self.running.poll() is not None:
            return
        family = psutil.Process(self.running.pid).children(recursive=True)
        self.running.kill()
        for member in family:
            try:
                member.kill()
            except psutil.NoSuchProcess:
                continue
        self.running.wait(10.0)
        wait_until(lambda: not any(map(_is_alive, family)), 10.0, f"all of {self.name} is dead")

    @contextmanager
    def closed_on_failure(self) -> Iterator[None]:
        """Leaves neither a process nor a folder behind when making the server fails."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Stops it and removes its folder."""
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def _still_runs(self) -> None:
        if self.running is not None and self.running.poll() is not None:
            raise ServerFailed(f"{self.name} ended with exit code {self.running.returncode}")


def _is_alive(process: psutil.Process) -> bool:
    """A dead process that nobody has buried yet is dead."""
    try:
        return bool(process.is_running() and process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def wait_until(
    accept: Callable[[], bool], within_s: float, fact: str, check: Callable[[], None] = lambda: None
) -> None:
    """Polls until accepted; ServerFailed names the fact that did not come true. `check` may raise earlier."""
    deadline = time.monotonic() + within_s
    while not accept():
        check()
        if time.monotonic() > deadline:
            raise ServerFailed(f"after {within_s} s it is not so that {fact}")
        time.sleep(0.02)
