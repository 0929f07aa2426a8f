"""Whether everything is level: nothing down, nothing behind, nothing given up; and what is not, in words."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field

import grpc

from memplane.v1 import maintenance_service_pb2 as maintenance_pb2
from memplane.v1 import policy_pb2
from memplane.v1.maintenance_service_pb2_grpc import MaintenanceServiceStub
from tests.chaos.stack import Stack
from tests.e2e.control_process import ADMIN
from tests.e2e.data_process import DataProcess

LOOK_S = 0.5
MOST_LAG = 2_000
"""Under load something always waits; more than so much of it is a backlog."""
CHECKED_HERE = frozenset({"INDEX_INCONSISTENT", "INDEX_BEHIND"})
"""Problems that a data plane looks for every ten minutes: they may be long past. We compare the indexes ourselves."""
CHECK_WITHIN_S = 90.0
GOOD_LOOKS = 3
"""In a row: reports are as old as the heartbeat, and a plane that just started has not looked round yet."""


@dataclass
class Levels:
    """Looks at a stack as its control plane sees it. What was so before any fault does not count."""

    stack: Stack
    last: list[str] = field(default_factory=list)
    """What was not level when `wait` last found something."""
    _usual: set[str] = field(default_factory=set)

    async def learn(self) -> None:
        """Takes the problems that there are now for usual, such as settings that doctor warns of."""
        self._usual = {found async for found in self.faults(idle=False)}

    async def wait(self, within_s: float, *, idle: bool) -> list[str]:
        """Waits; returns what is still not level after that time, and nothing where all is. `idle`: no load is on."""
        loop = asyncio.get_running_loop()
        deadline, good, self.last = loop.time() + within_s, 0, []
        while True:
            found = [text async for text in self.faults(idle=idle) if text not in self._usual]
            good = 0 if found else good + 1
            if good >= GOOD_LOOKS:
                found = await self.differences() if idle else []
                if not found:
                    return []
            self.last = found or self.last
            if loop.time() > deadline and found:
                return found
            await asyncio.sleep(LOOK_S)

    async def faults(self, *, idle: bool) -> AsyncIterator[str]:
        """What is not level, now."""
        for name, unit in self.stack.units.items():
            if unit.pid is None:
                yield f"{name}: does not run"
        for plane in self.stack.planes:
            if not await _serves(plane):
                yield f"{plane.data_dir.name}: health does not serve writes"
        try:
            statuses = await asyncio.wait_for(self.stack.control.statuses(), 5)
            generation = (await asyncio.wait_for(self.stack.control.in_force(), 5))[1]
        except (grpc.aio.AioRpcError, TimeoutError):
            yield "control: does not answer"
            return
        for name in self.stack.plane_names:
            for text in _of_plane(statuses.get(name), generation, idle=idle):
                yield f"{name}: {text}"

    async def differences(self) -> list[str]:
        """How the indexes differ from the record store, memory by memory."""
        async with self.stack.planes[0].channel() as channel:
            request = maintenance_pb2.CheckIndexesRequest(full=True)
            try:
                answer = await MaintenanceServiceStub(channel).CheckIndexes(
                    request, timeout=CHECK_WITHIN_S, metadata=ADMIN
                )
            except grpc.aio.AioRpcError as error:
                return [f"the indexes cannot be compared: {error.code().name} {error.details()}"]
        wrong = [check for check in answer.checks if check.active and not check.consistent]
        return [f"differs from the record store: {str(check).replace(chr(10), ' ')}" for check in wrong]


async def _serves(plane: DataProcess) -> bool:
    try:
        return await asyncio.wait_for(plane.serves("memplane.v1.MemoryService.Write"), 5)
    except (grpc.aio.AioRpcError, TimeoutError):
        return False


def _of_plane(status: policy_pb2.DataPlaneStatus | None, generation: int, *, idle: bool) -> Iterator[str]:
    if status is None or not status.connected:
        yield "has no stream to the control plane"
        return
    if status.generation != generation:
        yield f"serves from generation {status.generation}, not {generation}"
    for backend in status.report.backends:
        for text in _of_backend(backend, idle=idle):
            yield f"{backend.backend}: {text}"


def _of_backend(backend: policy_pb2.BackendStatus, *, idle: bool) -> Iterator[str]:
    if not backend.healthy:
        yield f"not healthy: {backend.detail}"
    if backend.lag > (0 if idle else MOST_LAG):
        yield f"{backend.lag} behind"
    if backend.dead_letters:
        yield f"{backend.dead_letters} dead letters"
    for breaker in backend.breakers:
        if breaker.state == policy_pb2.BREAKER_STATE_OPEN:
            yield f"the breaker of {breaker.operations} is open: {breaker.reason}"
    for problem in backend.problems:
        if problem.code not in CHECKED_HERE:
            yield f"{problem.code}: {problem.message}"
