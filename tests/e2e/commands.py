"""Runs the `memplane` command as a user would: as a process of its own."""

import asyncio
import json
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memplane.cli.config import plane_environment

COMMAND = (sys.executable, "-m", "memplane.cli.main")
TIMEOUT_S = 150.0


@dataclass(frozen=True)
class Finished:
    """How a command ended."""

    code: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        """What it printed, as JSON."""
        return json.loads(self.stdout)


async def memplane(*arguments: str, cwd: Path, env: Mapping[str, str] | None = None) -> Finished:
    """Runs a command to its end."""
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *arguments,
        cwd=cwd,
        env=plane_environment(env or {}),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    out, err = await asyncio.wait_for(process.communicate(), TIMEOUT_S)
    return Finished(process.returncode or 0, out.decode(), err.decode())


@asynccontextmanager
async def started(*arguments: str, cwd: Path) -> AsyncIterator[tuple[asyncio.subprocess.Process, dict[str, Any]]]:
    """A command that runs until it is told to stop; yields the process and the JSON that it announced."""
    process = await asyncio.create_subprocess_exec(
        *COMMAND,
        *arguments,
        cwd=cwd,
        env=plane_environment({}),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        announced = await asyncio.wait_for(process.stdout.readuntil(b"}\n"), TIMEOUT_S)
        yield process, json.loads(announced)
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await asyncio.wait_for(process.wait(), TIMEOUT_S)


def up(cwd: Path) -> AbstractAsyncContextManager[tuple[asyncio.subprocess.Process, dict[str, Any]]]:
    """`memplane up` on free ports with the quick embedder."""
    return started("up", "--control-port", "0", "--data-port", "0", "--embedder", "hash", "--json", cwd=cwd)


def connection(announced: Mapping[str, Any], key: str | None = None) -> dict[str, str]:
    """The environment in which commands reach the announced planes."""
    return {
        "MEMPLANE_TARGET": announced["data"],
        "MEMPLANE_CONTROL": announced["control"],
        "MEMPLANE_API_KEY": key or announced["admin_key"] or "",
    }
