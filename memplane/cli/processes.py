"""A plane as a child process: started, watched until it serves, its log passed on, stopped."""

import asyncio
import json
import signal
import sys
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from memplane.cli.config import plane_environment

START_TIMEOUT_S = 90.0
STOP_TIMEOUT_S = 20.0
POLL_S = 0.05
LAST_LINES = 20

LogSink = Callable[[str, str], None]
"""Takes the plane's name and one line of its log."""


class PlaneFailed(Exception):
    """A plane ended, or did not come up in time; the text holds the end of its log."""

    def __init__(self, name: str, what: str, last_lines: Sequence[str]) -> None:
        tail = "\n".join(f"  {line}" for line in last_lines)
        super().__init__(f"the {name} plane {what}" + (f"; the end of its log:\n{tail}" if tail else ""))


@dataclass(frozen=True)
class PlaneCommand:
    """What to run: `python -m module arguments`, with `secrets` in its environment rather than on its command line."""

    name: str
    module: str
    arguments: Sequence[str]
    secrets: Mapping[str, str]
    ready_file: Path


@dataclass
class PlaneProcess:
    """A running plane.

    Attributes:
        name: `control` or `data`.
        address: `host:port` that it serves on.
        process: The child.
        last_lines: The end of its log.
    """

    name: str
    process: asyncio.subprocess.Process
    address: str = ""
    last_lines: deque[str] = field(default_factory=lambda: deque(maxlen=LAST_LINES))
    _pump: asyncio.Task[None] | None = None

    @property
    def running(self) -> bool:
        """False once the process has ended."""
        return self.process.returncode is None

    async def ended(self) -> int:
        """Waits for the end; the exit code."""
        code = await self.process.wait()
        if self._pump is not None:
            await asyncio.shield(self._pump)
        return code

    async def stop(self) -> int:
        """SIGTERM, then SIGKILL after STOP_TIMEOUT_S; the exit code. Does nothing to a process that has ended."""
        if self.running:
            self.process.terminate()
        try:
            return await asyncio.wait_for(self.ended(), STOP_TIMEOUT_S)
        except TimeoutError:
            return await self.kill()

    async def kill(self) -> int:
        """SIGKILL; the exit code."""
        if self.running:
            self.process.kill()
        return await self.ended()


async def start(command: PlaneCommand, sink: LogSink) -> PlaneProcess:
    """Starts a plane and waits until it serves.

    Raises:
        PlaneFailed: It ended or did not serve within START_TIMEOUT_S; it is not left running.
    """
    command.ready_file.unlink(missing_ok=True)
    arguments = (sys.executable, "-m", command.module, *command.arguments, "--ready-file", str(command.ready_file))
    process = await asyncio.create_subprocess_exec(
        *arguments,
        env=plane_environment(command.secrets),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        start_new_session=True,  # Ctrl-C reaches us alone, and we stop the planes in order
    )
    plane = PlaneProcess(command.name, process)
    plane._pump = asyncio.create_task(_pass_on(plane, sink))
    try:
        plane.address = await asyncio.wait_for(_served_address(plane, command.ready_file), START_TIMEOUT_S)
    except BaseException as error:
        await plane.kill()
        if isinstance(error, TimeoutError):
            raise PlaneFailed(command.name, f"did not serve within {START_TIMEOUT_S:.0f} s", plane.last_lines) from None
        raise
    return plane


async def first_end(planes: Sequence[PlaneProcess], stop: asyncio.Event) -> PlaneProcess | None:
    """Waits for `stop` (None) or for the first plane to end by itself (that plane)."""
    ends = {asyncio.create_task(plane.ended()): plane for plane in planes}
    stopped = asyncio.create_task(stop.wait())
    done, pending = await asyncio.wait([*ends, stopped], return_when=asyncio.FIRST_COMPLETED)
    for task in pending:
        task.cancel()
    await asyncio.gather(*pending, return_exceptions=True)
    return None if stopped in done else ends[next(iter(done))]


def stop_on_signals() -> asyncio.Event:
    """An event of the running loop that SIGINT and SIGTERM set."""
    stop = asyncio.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    return stop


async def _served_address(plane: PlaneProcess, ready_file: Path) -> str:
    while (address := _read_address(ready_file)) is None:
        if not plane.running:
            code = await plane.ended()
            raise PlaneFailed(plane.name, f"ended with exit code {code}", plane.last_lines)
        await asyncio.sleep(POLL_S)
    return address


def _read_address(ready_file: Path) -> str | None:
    """The address in the ready file, which a plane puts there whole once it serves."""
    try:
        return str(json.loads(ready_file.read_text())["address"])
    except FileNotFoundError:
        return None


async def _pass_on(plane: PlaneProcess, sink: LogSink) -> None:
    assert plane.process.stdout is not None
    while raw := await plane.process.stdout.readline():
        line = raw.decode("utf-8", "replace").rstrip()
        plane.last_lines.append(line)
        sink(plane.name, line)
