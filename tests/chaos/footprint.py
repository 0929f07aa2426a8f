"""How much memory the data planes take, and how it grows with operations.

Memory of a process's own (heap and stacks, `RssAnon`) is told apart from files that are mapped into it (`RssFile`,
`RssShmem`): the embedded indexes are such files, grow with what is stored, and can be dropped by the system at any
time. A leak is in the former.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.chaos.stack import Stack

WARM_UP = 15
"""Samples of each process that are left out: a new process fills its pools and caches."""
PER_OPERATIONS = 10_000


@dataclass(frozen=True)
class Sample:
    """The memory of a process in MiB after so many operations."""

    operations: int
    own: float
    mapped: float


@dataclass
class Footprint:
    """Samples by data plane and process."""

    samples: dict[tuple[str, int], list[Sample]] = field(default_factory=lambda: defaultdict(list))

    def sample(self, stack: Stack, operations: int) -> None:
        """Takes one of each data plane that runs."""
        for name in stack.plane_names:
            pid = stack.units[name].pid
            if pid is None:
                continue
            try:
                self.samples[name, pid].append(Sample(operations, *memory_of(pid)))
            except (FileNotFoundError, ProcessLookupError, KeyError):  # it has ended
                continue

    def peak_mib(self) -> float:
        """The most of its own that one process had."""
        return max((each.own for samples in self.samples.values() for each in samples), default=0.0)

    def peak_mapped_mib(self) -> float:
        """The most that was mapped into one process."""
        return max((each.mapped for samples in self.samples.values() for each in samples), default=0.0)

    def slopes(self) -> dict[str, float]:
        """Own MiB per PER_OPERATIONS operations of each data plane; nothing of one that never ran long enough."""
        by_plane: dict[str, list[Sequence[tuple[int, float]]]] = defaultdict(list)
        for (name, _), samples in self.samples.items():
            if len(samples) > WARM_UP + 2:
                by_plane[name].append([(each.operations, each.own) for each in samples[WARM_UP:]])
        return {name: slope(runs) * PER_OPERATIONS for name, runs in by_plane.items()}

    def lines(self) -> list[str]:
        """For people."""
        peak = f"memory: at most {self.peak_mib():.0f} MiB of its own in one data plane"
        return [f"{peak}, and {self.peak_mapped_mib():.0f} MiB of mapped files", *map(_told, self.slopes().items())]


def memory_of(pid: int) -> tuple[float, float]:
    """Own and mapped MiB of a process. Raises FileNotFoundError, ProcessLookupError or KeyError when it has ended."""
    lines = Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines()
    kib = {line.partition(":")[0]: int(line.split()[1]) for line in lines if line.startswith("Rss")}
    return kib["RssAnon"] / 1024, (kib["RssFile"] + kib["RssShmem"]) / 1024


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
    return f"memory: {item[0]} {item[1]:+.2f} MiB of its own per {PER_OPERATIONS} operations, without its start"
