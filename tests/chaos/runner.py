"""One run: a stack, a load and a plan of faults at once; then everything heals, and what clients saw is judged."""

import asyncio
import shutil
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from tests.chaos.checker import Report, check
from tests.chaos.faults import heal_all, menu_of, strike
from tests.chaos.final import read_final_state
from tests.chaos.footprint import Footprint
from tests.chaos.history import Entry, FinalState, HistoryWriter, read_history
from tests.chaos.level import Levels
from tests.chaos.plan import Fault, Menu, Round, rounds
from tests.chaos.sabotage import sabotage
from tests.chaos.stack import Options, Stack, running
from tests.chaos.units import ServerUnit, Unit
from tests.chaos.workload import Workload

LEVEL_WITHIN_S = 60.0
"""After a round has healed."""
IDLE_WITHIN_S = 120.0
"""At the end, without load."""
LONGEST_FACTOR, LONGEST_MORE_S = 3, 300
"""A run that has not had its operations after so much more than its seconds has failed."""
SAMPLE_S = 1.0
HARNESS = -1
"""The client of entries that the harness makes."""

Say = Callable[[str], None]


@dataclass(frozen=True)
class Plan:
    """How long, how much, and what. A run ends when it has had both its seconds and its operations.

    `only` names the kinds of faults to draw from; empty: all. With `every_kind` it goes on until each of them struck.
    `pace` divides how long faults and the quiet after them last. `sabotage`, of `sabotage.KINDS`, breaks promises at
    the end, for tests of the harness itself.
    """

    seconds: float
    operations: int
    seed: int
    clients: int = 24
    only: Sequence[str] = ()
    sabotage: Sequence[str] = ()
    every_kind: bool = False
    pace: float = 1.0


@dataclass
class Outcome:
    """What a run came to. `failures`: what the harness saw itself, such as a process that died or never came level."""

    title: str
    report: Report
    fault_counts: Counter[str]
    operations: int
    seconds: float
    failures: list[str]
    footprint: Footprint
    recoveries_s: list[float]

    @property
    def is_clean(self) -> bool:
        """Nothing lost, doubled, resurrected, leaked, unmarked or late, and nothing that the harness saw."""
        return self.report.is_clean and not self.failures

    def lines(self) -> list[str]:
        """For people; the last is the line of counts."""
        by_kind = ", ".join(f"{kind} {count}" for kind, count in sorted(self.fault_counts.items()))
        slowest = max(self.recoveries_s, default=0.0)
        rate = f"rate={self.operations / self.seconds:.1f}/s"
        counts = self.report.line(faults=self.fault_counts.total())
        return [
            *(f"failure: {text}" for text in self.failures),
            *(f"violation: {text}" for text in self.report.violations[:50]),
            f"faults: {by_kind}",
            f"answers: {', '.join(f'{name} {count}' for name, count in self.report.codes.most_common())}",
            f"recovery: level again after at most {slowest:.1f} s, {len(self.recoveries_s)} times",
            *self.footprint.lines(),
            f"{self.title} operations={self.operations} seconds={self.seconds:.0f} {rate} {counts}",
        ]


@dataclass
class _Run:
    stack: Stack
    plan: Plan
    workload: Workload
    levels: Levels
    faults: HistoryWriter
    say: Say
    failures: list[str] = field(default_factory=list)
    fault_counts: Counter[str] = field(default_factory=Counter)
    recoveries_s: list[float] = field(default_factory=list)
    footprint: Footprint = field(default_factory=Footprint)
    started_s: float = field(default_factory=lambda: asyncio.get_running_loop().time())

    @property
    def elapsed_s(self) -> float:
        return asyncio.get_running_loop().time() - self.started_s

    def tell(self, text: str) -> None:
        self.say(f"[{self.elapsed_s:7.1f} s {self.workload.operations:7d}] {text}")

    def fail(self, text: str) -> None:
        self.failures.append(f"at {self.elapsed_s:.1f} s: {text}")
        self.tell(f"FAILURE {text}")

    def is_over(self) -> bool:
        if self.elapsed_s > self.plan.seconds * LONGEST_FACTOR + LONGEST_MORE_S:
            self.fail(f"only {self.workload.operations} of {self.plan.operations} operations were answered")
            return True
        if self.elapsed_s < self.plan.seconds or self.workload.operations < self.plan.operations:
            return False
        return not self.plan.every_kind or self.fault_counts.keys() >= self.menu().keys()

    def menu(self) -> Menu:
        """What of the stack may break in this run."""
        menu = menu_of(self.stack)
        return {kind: targets for kind, targets in menu.items() if not self.plan.only or kind in self.plan.only}

    async def storm(self) -> None:
        """Round after round."""
        for each in rounds(self.plan.seed, self.menu(), self.plan.pace):
            if self.is_over():
                return
            await self._round(each)

    async def _round(self, each: Round) -> None:
        await asyncio.gather(*(self._strike(each, fault) for fault in each.faults))
        await self._heal()
        healed_s = self.elapsed_s
        left = await self.levels.wait(LEVEL_WITHIN_S, idle=False)
        if left:
            self.fail(f"not level {LEVEL_WITHIN_S:.0f} s after round {each.number}: {'; '.join(left)}")
        else:
            self.recoveries_s.append(self.elapsed_s - healed_s)
            last = f", then {'; '.join(self.levels.last)[:300]}" if self.levels.last else ""
            self.tell(f"level {self.recoveries_s[-1]:.1f} s after round {each.number}{last}")
        await asyncio.sleep(each.quiet_s)

    async def _strike(self, each: Round, fault: Fault) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(fault.start_s)
        self.tell(f"round {each.number}: {fault}")
        start_s = loop.time()
        try:
            async with strike(self.stack, fault):
                await asyncio.sleep(fault.duration_s)
        except Exception as error:  # noqa: BLE001 - a data plane that does not stop or start is a finding; told
            self.fail(f"{fault}: {type(error).__name__}: {str(error)[-1500:]}")
        self.fault_counts[fault.kind] += 1
        self.faults.add(
            Entry(
                client=HARNESS, tenant=HARNESS, intent=each.number, method="fault", start_s=start_s, end_s=loop.time(),
                asked={"kind": fault.kind, "target": fault.target},
            )
        )  # fmt: skip

    async def _heal(self) -> None:
        try:
            await heal_all(self.stack)
        except Exception as error:  # noqa: BLE001 - as above
            self.fail(f"cannot heal: {type(error).__name__}: {str(error)[-1500:]}")

    async def watch(self) -> None:
        """Samples memory, and starts again what died by itself, as a supervisor would; that is a failure, though."""
        while True:
            self.footprint.sample(self.stack, self.workload.operations)
            for unit in self.stack.units.values():
                if unit.should_run and unit.pid is None:
                    await self._revive(unit)
            await asyncio.sleep(SAMPLE_S)

    async def _revive(self, unit: Unit) -> None:
        self.fail(f"{unit.name} ended by itself, exit code {unit.exit_code}")
        with suppress(Exception):  # told by `level`
            await unit.start()

    async def end(self) -> None:
        """Heals and waits until nothing is behind."""
        await self._heal()
        left = await self.levels.wait(IDLE_WITHIN_S, idle=True)
        if left:
            self.fail(f"not level {IDLE_WITHIN_S:.0f} s after the load: {'; '.join(left)}")
        else:
            self.tell("level without load; reading what is there")


async def run(options: Options, plan: Plan, say: Say = print) -> Outcome:
    """Runs it. The folder of `options` then holds the history and every log."""
    history, faults = options.folder / "history.jsonl", options.folder / "faults.jsonl"
    async with running(options) as stack:
        workload = Workload(stack.addresses, stack.api_keys, plan.seed, plan.clients, history)
        with workload.history, HistoryWriter(faults) as writer:
            run_ = _Run(stack, plan, workload, Levels(stack), writer, say)
            await run_.levels.learn()
            await _load_and_storm(run_)
        seconds = run_.elapsed_s
        await run_.end()
        entries = [*read_history(history), *read_history(faults)]
        for kind in plan.sabotage:
            say(f"sabotage: {kind} {await sabotage(kind, stack, entries)}")
        final = await read_final_state(stack.addresses, stack.api_keys, stack.places, entries)
        run_.tell("everything is read")
        _keep_logs(stack, options.folder)
    report = _judge(entries, final, run_.fault_counts)
    return Outcome(
        f"stores={options.stores} seed={plan.seed}",
        report,
        run_.fault_counts,
        workload.operations,
        seconds,
        run_.failures,
        run_.footprint,
        run_.recoveries_s,
    )


async def _load_and_storm(run_: _Run) -> None:
    until = asyncio.Event()
    load = asyncio.create_task(run_.workload.run(until))
    watch = asyncio.create_task(run_.watch())
    storm = asyncio.create_task(run_.storm())
    try:
        await asyncio.wait([load, watch, storm], return_when=asyncio.FIRST_COMPLETED)
        until.set()
        if not storm.done():
            storm.cancel()
        await load
    finally:
        watch.cancel()
        storm.cancel()
        ended = await asyncio.gather(load, watch, storm, return_exceptions=True)
    for each in ended:
        if isinstance(each, Exception):
            raise each


def _judge(entries: Sequence[Entry], final: FinalState, faults: Counter[str]) -> Report:
    return check(entries, final, clocks_skewed=faults["clock"] > 0)


def _keep_logs(stack: Stack, folder: Path) -> None:
    for name in stack.store_names:
        unit = cast(ServerUnit, stack.units[name])
        with suppress(OSError):
            shutil.copy(unit.server.process.log_file, folder / f"{name}.log")
