"""How much memory the data planes take, and how it grows with operations."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field

import psutil

from tests.chaos.stack import Stack

MIB = 1024 * 1024
WARM_UP = 15
"""Samples of each process that are left out: a new process fills its pools and caches."""
PER_OPERATIONS = 10_000


@dataclass
class Footprint:
    """Samples of (operations so far, RSS in MiB), by data plane and process."""

    samples: dict[tuple[str, int], list[tuple[int, float]]] = field(default_factory=lambda: defaultdict(list))

    def sample(self, stack: Stack, operations: int) -> None:
        """Takes one of each data plane that runs."""
        for name in stack.plane_names:
            pid = stack.units[name].pid
            if pid is None:
                continue
            try:
                self.samples[name, pid].append((operations, psutil.Process(pid).memory_info().rss / MIB))
            except psutil.NoSuchProcess:
                continue

    def peak_mib(self) -> float:
        """The most that one process had."""
        return max((rss for samples in self.samples.values() for _, rss in samples), default=0.0)

    def slopes(self) -> dict[str, float]:
        """MiB per PER_OPERATIONS operations of each data plane; nothing of one that never ran long enough."""
        by_plane: dict[str, list[Sequence[tuple[int, float]]]] = defaultdict(list)
        for (name, _), samples in self.samples.items():
            if len(samples) > WARM_UP + 2:
                by_plane[name].append(samples[WARM_UP:])
        return {name: slope(runs) * PER_OPERATIONS for name, runs in by_plane.items()}

    def lines(self) -> list[str]:
        """For people."""
        return [f"memory: at most {self.peak_mib():.0f} MiB in one data plane", *map(_told, self.slopes().items())]


def slope(runs: Sequence[Sequence[tuple[int, float]]]) -> float:
    """Least squares over the runs of a process that was restarted, each with an intercept of its own."""
    above = below = 0.0
    for run in runs:
        mean_x = sum(x for x, _ in run) / len(run)
        mean_y = sum(y for _, y in run) / len(run)
        above += sum((x - mean_x) * (y - mean_y) for x, y in run)
        below += sum((x - mean_x) ** 2 for x, _ in run)
    return above / below if below else 0.0


def _told(item: tuple[str, float]) -> str:
    return f"memory: {item[0]} {item[1]:+.2f} MiB per {PER_OPERATIONS} operations, without its start"
