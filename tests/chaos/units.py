"""One way to kill, stop, pause and start whatever runs: a store's server, a data plane, the control plane."""

import asyncio
import signal
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Protocol, cast

import psutil

from tests.e2e.control_process import ControlProcess
from tests.e2e.data_process import DataProcess
from tests.servers.process import ServerProcess

START_WITHIN_S = 90.0


class Unit(Protocol):
    """A process that may be ended and started again on the same port and the same data."""

    name: str
    should_run: bool
    """False between `kill` or `stop` and `start`."""

    @property
    def pid(self) -> int | None:
        """None while it does not run."""
        ...

    @property
    def exit_code(self) -> int | None:
        """Of the last run, minus the number of the signal that ended it; None while it runs."""
        ...

    async def kill(self) -> None:
        """kill -9; it does not come back by itself."""
        ...

    async def stop(self) -> None:
        """SIGTERM, and waits."""
        ...

    async def start(self) -> None:
        """Starts it unless it runs, and waits until it serves."""
        ...


class Server(Protocol):
    """One of `tests.servers`."""

    process: ServerProcess

    def start(self) -> None: ...
    def stop(self) -> None: ...
    def kill(self) -> None: ...
    def close(self) -> None: ...


class ServerUnit:
    """A store's server. Waiting for it blocks, and it ends with the thread that started it: so it has a thread."""

    def __init__(self, name: str, create: Callable[[], Server]) -> None:
        self.name = name
        self.should_run = True
        self._create = create
        self._thread = ThreadPoolExecutor(1, thread_name_prefix=name)
        self._server: Server | None = None

    @property
    def server(self) -> Server:
        """Once `create` was awaited."""
        assert self._server is not None
        return self._server

    @property
    def pid(self) -> int | None:
        running = self.server.process.running
        return running.pid if running is not None and running.poll() is None else None

    @property
    def exit_code(self) -> int | None:
        running = self.server.process.running
        return None if running is None else running.poll()

    async def create(self) -> None:
        """Serves it for the first time, empty."""
        self._server = cast(Server, await self._run(self._create))

    async def kill(self) -> None:
        self.should_run = False
        await self._run(self.server.kill)

    async def stop(self) -> None:
        self.should_run = False
        await self._run(self.server.stop)

    async def start(self) -> None:
        if self.pid is None:
            await self._run(self.server.start)
        self.should_run = True

    async def close(self) -> None:
        """Ends it and removes its data."""
        if self._server is not None:
            await self._run(self._server.close)
        self._thread.shutdown(wait=False)

    async def _run(self, call: Callable[[], object]) -> object:
        return await asyncio.get_running_loop().run_in_executor(self._thread, call)


class PlaneUnit:
    """The control plane or a data plane."""

    def __init__(self, name: str, process: ControlProcess | DataProcess) -> None:
        self.name = name
        self.should_run = True
        self.process = process

    @property
    def pid(self) -> int | None:
        running = self.process.process
        return running.pid if running is not None and running.returncode is None else None

    @property
    def exit_code(self) -> int | None:
        return None if self.process.process is None else self.process.process.returncode

    async def kill(self) -> None:
        self.should_run = False
        await self.process.kill()

    async def stop(self) -> None:
        self.should_run = False
        await self.process.stop()

    async def start(self) -> None:
        if self.pid is None:
            await self.process.start(START_WITHIN_S)
        self.should_run = True


def send_to_family(unit: Unit, number: signal.Signals) -> None:
    """A signal (SIGSTOP, SIGCONT) to a unit and every process that it started; nothing when it does not run."""
    if unit.pid is None:
        return
    with suppress(psutil.NoSuchProcess):
        parent = psutil.Process(unit.pid)
        for member in (parent, *parent.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):
                member.send_signal(number)
