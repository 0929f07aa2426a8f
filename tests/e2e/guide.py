"""A guide that is followed word by word: its shell blocks are run in order, their output is held against what it shows.

- ```` ```sh ```` is run by bash, which ends at the first failure; what it exports is there in the blocks after it.
- ```` ```text ```` right after it: lines that the output must have, in this order; `…` stands for anything. A last line
  `exit code N` says how the block ends, otherwise 0.
- ```` ```sh terminal ```` goes on in the background; with ```` ```sh terminal anew ```` what did so is ended first.
"""

import asyncio
import os
import re
import signal
import sys
from dataclasses import dataclass
from pathlib import Path

BLOCK = re.compile(r"^```(\S+)( terminal)?( anew)?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXIT_CODE = re.compile(r"exit code (\d+)")
STEP_WITHIN_S, STOP_WITHIN_S = 120, 90


@dataclass(frozen=True)
class Step:
    """A shell block: its commands, the lines to be seen, the exit code.

    `terminal`: it goes on in the background; `anew`: what did so until then is ended first.
    """

    commands: str
    shown: tuple[str, ...] = ()
    exit_code: int = 0
    terminal: bool = False
    anew: bool = False


def steps_of(text: str) -> list[Step]:
    """The steps of a guide in Markdown."""
    steps: list[Step] = []
    for language, terminal, anew, body in BLOCK.findall(text):
        if language == "sh":
            steps.append(Step(body, terminal=bool(terminal), anew=bool(anew)))
        elif language == "text" and steps:
            *lines, last = body.rstrip("\n").split("\n")
            ended = EXIT_CODE.fullmatch(last)
            shown = tuple(line for line in (*lines, *(() if ended else (last,))) if line.strip())
            steps[-1] = Step(steps[-1].commands, shown, int(ended[1]) if ended else 0)
    return steps


def missing(shown: tuple[str, ...], output: str) -> str:
    """The first line that the output lacks, or has too early; "" if it has all. Runs of blanks count as one."""
    lines = [" ".join(line.split()) for line in output.splitlines()]
    for wanted in shown:
        pattern = re.compile(".*".join(re.escape(part) for part in " ".join(wanted.split()).split("…")))
        at = next((number for number, line in enumerate(lines) if pattern.search(line)), None)
        if at is None:
            return wanted
        lines = lines[at + 1 :]
    return ""


class Shell:
    """Runs steps in a folder."""

    def __init__(self, folder: Path, environment: dict[str, str]):
        self._folder = folder
        self._environment = environment
        self._state = folder / ".exported"
        self._state.touch()
        self._background: list[asyncio.subprocess.Process] = []
        self._log = folder / ".terminal.log"

    async def follow(self, step: Step) -> None:
        """Runs it; raises AssertionError when something else comes of it than the guide shows."""
        if step.terminal:
            if step.anew:
                await self.stop()
            await self._start(step.commands)
            return
        code, output = await self._run(f"{step.commands}\nexport -p > {self._state}")
        assert code == step.exit_code, f"{step.commands}exit code {code}:\n{output}"
        lacking = missing(step.shown, output)
        assert not lacking, f"{step.commands}does not show {lacking!r} there:\n{output}"

    async def succeeds(self, commands: str) -> bool:
        """Whether they end well, here and now."""
        return (await self._run(commands))[0] == 0

    def told(self) -> str:
        """What the terminals have shown so far."""
        return self._log.read_text() if self._log.exists() else ""

    async def _run(self, commands: str) -> tuple[int | None, str]:
        script = f"set -e\nsource {self._state}\n{commands}"
        process = await asyncio.create_subprocess_exec(
            "bash", "-c", script,
            cwd=self._folder, env=self._environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        output = (await asyncio.wait_for(process.communicate(), STEP_WITHIN_S))[0].decode()
        return process.returncode, output

    async def _start(self, commands: str) -> None:
        with self._log.open("ab") as log:
            process = await asyncio.create_subprocess_exec(
                "bash", "-c", f"source {self._state}\nexec {commands}",
                cwd=self._folder, env=self._environment, stdout=log, stderr=log,
            )  # fmt: skip
        self._background.append(process)

    async def stop(self) -> None:
        """Ctrl-C in every terminal, the last one first."""
        while self._background:
            process = self._background.pop()
            if process.returncode is None:
                process.send_signal(signal.SIGINT)
                await asyncio.wait_for(process.wait(), STOP_WITHIN_S)


def environment(**more: str) -> dict[str, str]:
    """That of this process without any MEMPLANE_… of its own, with its Python's commands in PATH, and with `more`."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("MEMPLANE_")}
    return {**own, "PATH": f"{Path(sys.executable).parent}:{own['PATH']}", **more}
