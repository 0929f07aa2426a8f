"""A data plane on embedded stores whose disk is full: it lives, reads, refuses writes, and comes level by itself."""

import asyncio
import os
import resource
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from memplane.client import MemPlaneClient, RpcError
from tests.chaos.disk import SmallDisk
from tests.chaos.level import Levels
from tests.chaos.stack import Options, Stack, running
from tests.deadline import eventually_async
from tests.e2e.data_process import READS, WRITES, DataProcess

TENANT = "tenant-0"
COUNT = 40
AT_ONCE = 8
WITHIN_S = 20.0
ANSWERED_S = 5.0
"""Within which a write is refused, the client's own tries included, however busy the machine is."""


@dataclass
class Rig:
    """A data plane with memories in it, on a disk of its own."""

    stack: Stack
    acknowledged: list[str] = field(default_factory=list)

    @property
    def plane(self) -> DataProcess:
        return self.stack.planes[0]

    @property
    def disk(self) -> SmallDisk:
        assert self.stack.disk is not None
        return self.stack.disk

    @property
    def pid(self) -> int:
        pid = self.stack.units["data-1"].pid
        assert pid is not None, self.plane.log_file.read_text()
        return pid

    def client(self) -> MemPlaneClient:
        return MemPlaneClient(self.plane.address, api_key=f"mpk_key-of-{TENANT}", timeout_s=10)

    async def write(self, client: MemPlaneClient, number: int) -> None:
        answer = await client.write(TENANT, f"Parcel {number} weighs {number * 17} g", session_id="s")
        if answer.memory.id:
            self.acknowledged.append(answer.memory.id)

    async def refused(self, client: MemPlaneClient) -> None:
        """Writes until the disk, which may still have holes in the log, takes no more; several at once."""
        loop = asyncio.get_running_loop()
        for number in range(COUNT, 1_000, AT_ONCE):
            start_s = loop.time()
            writes = [self.write(client, each) for each in range(number, number + AT_ONCE)]
            errors = [each for each in await asyncio.gather(*writes, return_exceptions=True) if each is not None]
            if len(errors) == AT_ONCE:
                assert {isinstance(each, RpcError) and each.reason for each in errors} == {"BACKEND_UNAVAILABLE"}
                assert loop.time() - start_s < ANSWERED_S
                return
        pytest.fail("a full disk took every write")

    async def reads(self, client: MemPlaneClient) -> None:
        """Everything acknowledged is there, and searches find it, but for indexes that they say are missing."""
        for memory_id in self.acknowledged:
            assert (await client.get(TENANT, memory_id)).id == memory_id
        for number in range(3):
            found = await client.search(TENANT, f"Parcel {number} weighs", top_k=3)
            assert found.hits
            if not found.degraded:
                assert f"Parcel {number} weighs" in " ".join(hit.memory.content for hit in found.hits)

    async def health(self) -> tuple[bool, bool, bool]:
        """Whether it lives, serves reads, serves writes."""
        return await self.plane.serves(""), await self.plane.serves(READS), await self.plane.serves(WRITES)

    async def level_again(self) -> None:
        """No fault is left, and both indexes hold what the record store holds, memory by memory."""
        await self.plane.wait_ready(WITHIN_S)
        levels = Levels(self.stack)
        assert await levels.wait(WITHIN_S, idle=True) == []


@asynccontextmanager
async def rig(folder: Path) -> AsyncIterator[Rig]:
    async with running(Options("embedded", folder / "stack", "sqlite")) as stack:
        made = Rig(stack)
        async with made.client() as client:
            for number in range(COUNT):
                await made.write(client, number)
        yield made


async def serves(rig: Rig, expected: tuple[bool, bool, bool]) -> None:
    ask: Callable[[], Awaitable[tuple[bool, bool, bool]]] = rig.health
    await eventually_async(ask, lambda found: found == expected, WITHIN_S)


async def test_a_plane_on_a_full_disk_lives_and_reads_also_after_a_restart_and_loses_nothing(tmp_path: Path) -> None:
    async with rig(tmp_path) as made:
        if not made.disk.is_mounted:
            pytest.skip(f"no tmpfs may be mounted here by user {os.geteuid()}")
        unit = made.stack.units["data-1"]
        await asyncio.to_thread(made.disk.fill, made.pid)
        async with made.client() as client:
            await made.refused(client)
            await made.reads(client)
            await serves(made, (True, True, False))
        for end in (unit.stop, unit.kill):
            pid = made.pid
            await end()
            await asyncio.to_thread(made.disk.fill, pid)  # others take what the end gave free
            await unit.start()
            await serves(made, (True, True, False))
            async with made.client() as client:
                await made.reads(client)
        first_pid = made.pid
        made.disk.free(first_pid)
        await made.level_again()
        async with made.client() as client:
            await made.write(client, 1_000)
            await made.reads(client)
        assert made.pid == first_pid


async def test_files_that_may_not_grow_refuse_writes_and_end_nothing(tmp_path: Path) -> None:
    async with rig(tmp_path) as made:
        first_pid = made.pid
        _, hard = resource.prlimit(first_pid, resource.RLIMIT_FSIZE)
        resource.prlimit(first_pid, resource.RLIMIT_FSIZE, (64 * 1024, hard))
        async with made.client() as client:
            await made.refused(client)
            await made.reads(client)
        resource.prlimit(first_pid, resource.RLIMIT_FSIZE, (hard, hard))
        await made.level_again()
        assert made.pid == first_pid
