"""`memplane fleet --watch --json` beside real planes: a reload, a refusal, a loss, a restart of the control plane."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from memplane.cli.config import plane_environment
from tests.e2e.commands import COMMAND
from tests.e2e.control_process import (
    ADMIN_KEY,
    ControlProcess,
    control_plane,
    data_plane,
    foreign_key,
    node_options,
    top_k_yaml,
)
from tests.e2e.test_reload_acks import top_k_reload

WITHIN_S = 60.0
Line = dict[str, Any]


@dataclass
class Watch:
    """A watch that runs; every line so far is in `lines`."""

    process: asyncio.subprocess.Process
    lines: list[Line]

    async def until(self, wanted: Callable[[Line], bool]) -> Line:
        """Reads on until such a line comes."""
        assert self.process.stdout is not None
        async with asyncio.timeout(WITHIN_S):
            while True:
                self.lines.append(json.loads(await self.process.stdout.readline()))
                if wanted(self.lines[-1]):
                    return self.lines[-1]


@asynccontextmanager
async def watching(control: ControlProcess) -> AsyncIterator[Watch]:
    arguments = ("fleet", "--watch", "--json", "--control", control.address, "--api-key", ADMIN_KEY)
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *arguments,
        env=plane_environment({}),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=1024 * 1024,
    )
    try:
        yield Watch(process, [])
    finally:
        process.kill()
        await process.wait()


def is_of(node_id: str, **fields: Any) -> Callable[[Line], bool]:
    """Whether a line tells of the node, with these fields."""

    def tells(line: Line) -> bool:
        plane = line.get("data_plane", {})
        return bool(plane.get("node", {}).get("node_id") == node_id) and fields.items() <= plane.items()

    return tells


@pytest.mark.slow
async def test_a_watch_tells_every_change_of_the_fleet(tmp_path: Path) -> None:
    (tmp_path / "policies").mkdir()
    (tmp_path / "policies" / "a.yaml").write_text(top_k_yaml(1))
    async with control_plane(tmp_path) as control, AsyncExitStack() as stack:
        await stack.enter_async_context(data_plane(node_options(control, tmp_path, "good")))
        going = AsyncExitStack()
        await going.enter_async_context(data_plane(node_options(control, tmp_path, "going")))
        distrusting = replace(
            node_options(control, tmp_path, "distrusting"), trusted_key_file=foreign_key(tmp_path / "foreign.pub")
        )
        await stack.enter_async_context(data_plane(distrusting))
        watch = await stack.enter_async_context(watching(control))
        await watch.until(is_of("good", sync_state="SYNCED", generation=1))
        await control.call("ReloadPolicySet", top_k_reload(5))
        await watch.until(is_of("good", sync_state="SYNCED", generation=2))
        [refused, *_] = filter(is_of("distrusting", sync_state="ERROR"), watch.lines)
        assert "not trusted" in refused["data_plane"]["error_detail"]
        await going.aclose()
        lost = await watch.until(is_of("going", connected=False))
        assert "lost_for" in lost["data_plane"]
        assert await control.stop() == 0
        await control.start()
        again = await watch.until(is_of("good", sync_state="SYNCED", generation=2, connected=True))
        assert again["data_plane"]["policy_age"].endswith("s")
