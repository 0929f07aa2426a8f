"""From the edit of a large policy to its ACK, while searches run: none fails, none sees two versions."""

import asyncio
import time
from pathlib import Path

from bench.corpus import NAMESPACE
from memplane.cli.planes import RunningPlanes
from memplane.client import AdminClient, MemPlaneClient

EDITS = 5
NAMESPACES = 1_000
SEARCHERS = 4


def large_policy(threshold: float) -> str:
    """About 300 KB of YAML: 1,000 namespaces with overrides of their own."""
    lines = ["write_policy:", "  threshold: 0.0", "  short_term_threshold: 0.0", "  dedup: false"]
    lines += ["namespace_policy:", "  default_isolation: true", "  overrides:"]
    for number in range(NAMESPACES):
        lines += [
            f"    tenant.department_{number:04d}.agents:",
            "      write_policy:",
            f"        threshold: {threshold:.3f}",
            "        short_term_threshold: 0.100",
            f"        max_length: {256 + number % 200}",
            "      retrieve_policy:",
            f"        top_k: {3 + number % 10}",
            "        weights:",
            "          vector: 0.500",
            "          freshness: 0.300",
            "      decay_policy:",
            "        monthly_decay: 0.150",
        ]
    return "\n".join(lines) + "\n"


async def reload_under_load(running: RunningPlanes, policy: Path) -> None:
    """Edits the watched file and waits until the data plane acknowledged; prints seconds, and what searches saw."""
    stop = asyncio.Event()
    seen: list[tuple[float, float, str]] = []
    async with running.memory() as client, running.admin() as admin:
        searchers = [asyncio.create_task(_search(client, stop, seen)) for _ in range(SEARCHERS)]
        times, size = [], 0
        for number in range(EDITS):
            before = (await admin.data_planes()).generation
            text = large_policy(0.5 + number / 100)
            size = len(text)
            begun = time.perf_counter()
            (policy / "bench.yaml").write_text(text)
            await _acked(admin, before)
            times.append(time.perf_counter() - begun)
        stop.set()
        failed = [item for item in await asyncio.gather(*searchers, return_exceptions=True) if item is not None]
    versions = {version for _, _, version in seen}
    label = f"edit to ACK, {size // 1000} KB, {NAMESPACES} namespaces, seconds, worst of {EDITS} (goal < 4)"
    print(f"| {label} | {max(times):.2f} |")
    print(f"| searches meanwhile: failed / answered / versions seen | {len(failed)} / {len(seen)} / {len(versions)} |")
    print(f"| answers with an older version than an answer before them had | {_went_back(seen)} |")


async def _acked(admin: AdminClient, before: int) -> None:
    """Returns once a generation after `before` is in force and acknowledged by every data plane."""
    while True:
        statuses = await admin.data_planes()
        newest = statuses.generation
        if newest > before and all(item.generation == newest for item in statuses.data_planes):
            return
        await asyncio.sleep(0.02)


async def _search(client: MemPlaneClient, stop: asyncio.Event, seen: list[tuple[float, float, str]]) -> None:
    while not stop.is_set():
        begun = time.perf_counter()
        answer = await client.search(NAMESPACE, "who repaired the pump", record_access=False)
        seen.append((begun, time.perf_counter(), answer.policy_version))


def _went_back(seen: list[tuple[float, float, str]]) -> int:
    """Calls begun after an answer of a newer version was received, yet answered with an older one."""
    order = list(dict.fromkeys(version for _, _, version in sorted(seen, key=lambda item: item[1])))
    rank = {version: number for number, version in enumerate(order)}
    first_end = {version: min(end for _, end, other in seen if other == version) for version in order}
    return sum(any(begun > first_end[newer] for newer in order[rank[version] + 1 :]) for begun, _, version in seen)
