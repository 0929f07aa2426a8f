"""Asks a module of the data plane in a child process, since the command line imports no plane.

Such a module takes all its lines from stdin and answers them in order on stdout; its last word on stderr says why it
failed. See `dataplane.embed` and `dataplane.judge`.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Iterable
from typing import Any

from memplane.cli.config import plane_environment

LONGEST_LINE = 16 * 1024 * 1024
"""Bytes of an answer; a vector of 65,536 dimensions in base64 takes 350 kB."""


class ChildFailed(Exception):
    """The module did not answer every line; the text says why and what to do."""


async def answers(module: str, lines: Iterable[object], count: int) -> AsyncIterator[Any]:
    """Its `count` answers to the lines, each when it comes. Raises ChildFailed."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", module),
        env=plane_environment({}),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=LONGEST_LINE,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    complaints = asyncio.create_task(process.stderr.read())
    try:
        await _ask(process, lines)
        answered = 0
        while answered < count and (line := await process.stdout.readline()):
            yield json.loads(line)
            answered += 1
        if await process.wait() or answered < count:
            raise ChildFailed(_last_line(await complaints) or f"{module} ended with {process.returncode}")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
        complaints.cancel()


async def _ask(process: asyncio.subprocess.Process, lines: Iterable[object]) -> None:
    assert process.stdin is not None
    try:
        for line in lines:
            process.stdin.write(json.dumps(line).encode() + b"\n")
            await process.stdin.drain()
        process.stdin.close()
    except (BrokenPipeError, ConnectionResetError):
        return  # It has ended; its exit code and its last words tell why.


def _last_line(complaints: bytes) -> str:
    lines = complaints.decode("utf-8", "replace").strip().splitlines()
    return lines[-1] if lines else ""
