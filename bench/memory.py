"""`python -m bench.memory [operations]`: whether a data plane's memory stays flat while what is stored does not grow.

A real data plane on embedded stores. Each caller writes, searches, reads and forgets; in between are calls that fail
(a wrong key, a wrong field), calls whose caller gives up after 3 ms, and new connections; every BREAK_EVERY operations
all connections are cut, or the disk is full for a while, so that breakers open (where a tmpfs may be mounted). The
cache is small, for one that fills up to its bound is no leak. Told are the memory of the process's own and the files
mapped into it, and the slope of the former over the second half.
"""

import asyncio
import sys
import tempfile
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import uvloop

from memplane.client import MemPlaneClient, RpcError
from tests.chaos.footprint import memory_of, slope
from tests.chaos.stack import Options, Stack, running

OPERATIONS = 200_000
CALLERS = 16
SAMPLES = 40
BREAK_EVERY = 5_000
BROKEN_S = 2.0
RECONNECT_EVERY = 25
"""Rounds of a caller on one connection."""
CONFIG = '[queue]\nadapter = "sqlite"\n[cache]\nadapter = "in_process"\nsize_bytes = 1_000_000\n'

Call = Callable[[], Coroutine[Any, Any, object]]


@dataclass
class Load:
    """Callers of one data plane; `done` counts answers, refusals and calls given up."""

    stack: Stack
    operations: int
    done: int = 0
    numbers: "count[int]" = field(default_factory=count)

    async def run(self) -> None:
        """Until all is done."""
        await asyncio.gather(*(self._caller(f"tenant-{number % 4}") for number in range(CALLERS)))

    async def _caller(self, tenant: str) -> None:
        address = self.stack.addresses[0]
        while self.done < self.operations:
            async with (
                MemPlaneClient(address, api_key=f"mpk_key-of-{tenant}", timeout_s=5) as client,
                MemPlaneClient(address, api_key="mpk_wrong", timeout_s=5) as stranger,
            ):
                for _ in range(RECONNECT_EVERY):
                    await self._round(tenant, client, stranger)

    async def _round(self, tenant: str, client: MemPlaneClient, stranger: MemPlaneClient) -> None:
        text = f"Parcel {next(self.numbers)} weighs {self.done} g"
        written = await self._tried(lambda: client.write(tenant, text, session_id="s"))
        memory_id = getattr(getattr(written, "memory", None), "id", "")
        await self._tried(lambda: client.search(tenant, text, top_k=5))
        if memory_id:
            await self._tried(lambda: client.get(tenant, memory_id))
            await self._tried(lambda: client.forget(tenant, memory_id, "HARD"))
        await self._tried(lambda: stranger.search(tenant, text))
        await self._tried(lambda: client.write("no such/namespace", text))
        await self._tried(lambda: asyncio.wait_for(client.search(tenant, f"weight of {text}"), 0.003))

    async def _tried(self, call: Call) -> object:
        self.done += 1
        with suppress(RpcError, TimeoutError):
            return await call()
        return None


def main() -> None:
    """Measures and prints."""
    uvloop.run(_measure(int(sys.argv[1]) if len(sys.argv) > 1 else OPERATIONS))


async def _measure(operations: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        options = Options("embedded", Path(folder), "sqlite", config=CONFIG)
        async with running(options) as stack:
            load = Load(stack, operations)
            tasks = [asyncio.create_task(each) for each in (load.run(), _break(load))]
            samples = await _sampled(load)
            await tasks[0]
            tasks[1].cancel()
    own = [(done, own) for done, own, _ in samples[len(samples) // 2 :]]
    _say(f"{slope([own]) * 10_000:+.2f} MiB of its own per 10000 operations over the second half of {load.done}")


async def _sampled(load: Load) -> list[tuple[int, float, float]]:
    samples: list[tuple[int, float, float]] = []
    pid = load.stack.units["data-1"].pid
    assert pid is not None
    for step in range(1, SAMPLES + 1):
        while load.done < load.operations * step // SAMPLES:  # noqa: ASYNC110 - an event a call would be more
            await asyncio.sleep(0.05)
        samples.append((load.done, *memory_of(pid)))
        _say("{:8d} operations: {:6.1f} MiB of its own, {:6.1f} MiB of mapped files".format(*samples[-1]))
    return samples


async def _break(load: Load) -> None:
    """Cuts connections and fills the disk in turn."""
    unit, disk, proxy = load.stack.units["data-1"], load.stack.disk, load.stack.proxies["data-1"]
    for number in count(1):
        while load.done < number * BREAK_EVERY:  # noqa: ASYNC110 - as above
            await asyncio.sleep(0.05)
        if number % 2 or disk is None or not disk.is_mounted:
            proxy.reset()
            continue
        assert unit.pid is not None
        await asyncio.to_thread(disk.fill, unit.pid)
        await asyncio.sleep(BROKEN_S)
        await asyncio.to_thread(disk.free, unit.pid)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
