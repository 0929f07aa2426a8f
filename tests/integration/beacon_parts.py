"""Beacons that run beside a data plane of the tests, and what a test asks of them."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from dataplane.adapters.witness_file import WitnessFile
from dataplane.ending import end
from dataplane.pipelines.beacons import BeaconOptions, Beacons
from dataplane.wiring import Wired, beacons_over
from memplane.client.maintenance import MaintenanceClient
from tests.deadline import eventually_async

QUICK = BeaconOptions(look_s=0.1, soon_s=0.05, interval_s=0.2, repair_pause_s=0.2)
NODE = "data-1"


@asynccontextmanager
async def beacons_beside(
    wired: Wired, witness: Path, options: BeaconOptions = QUICK, node: str = NODE
) -> AsyncIterator[Beacons]:
    """Beacons that look until the end."""
    beacons = beacons_over(wired, node, WitnessFile(witness), options)
    task = asyncio.create_task(beacons.run())
    try:
        yield beacons
    finally:
        await end(task)


async def until(holds: Callable[[], Awaitable[bool]], within_s: float) -> float:
    """How many seconds it took until something held; it must within so many."""
    started_s = asyncio.get_running_loop().time()
    await eventually_async(holds, bool, within_s)
    return asyncio.get_running_loop().time() - started_s


def has_problem(beacons: Beacons, backend: str, code: str) -> Callable[[], Awaitable[bool]]:
    """Whether a backend has a problem."""

    async def holds() -> bool:
        return code in {problem.code for problem in beacons.problems.get(backend, ())}

    return holds


def is_well(beacons: Beacons, wired: Wired) -> Callable[[], Awaitable[bool]]:
    """Whether nothing is wrong and every index counts as level."""

    async def holds() -> bool:
        return not beacons.problems and not wired.projectors.unlevel

    return holds


def is_lit(wired: Wired, newer_than: int = 0, node: str = NODE) -> Callable[[], Awaitable[bool]]:
    """Whether the record store and every index have a beacon, newer than some."""

    async def holds() -> bool:
        deadline_s = asyncio.get_running_loop().time() + 5
        latest = await wired.records.marker(f"beacon:{node}", deadline_s)
        held = [(await each.index.beacons(deadline_s)).get(node) for each in wired.followed]
        return latest > newer_than and all(number == latest for number in held)

    return holds


async def faults(maintenance: MaintenanceClient) -> dict[str, str]:
    """What a full check finds wrong, by index; {} when all are consistent."""
    checks = (await maintenance.check_indexes(full=True)).checks
    assert checks
    return {each.name: str(each) for each in checks if not each.consistent}
