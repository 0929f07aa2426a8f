"""The child process in which golden cases are tried: the data plane's code, which the control plane does not import."""

import asyncio
import json
import logging
import sys
from typing import Any

from memplane.errors import Unavailable

log = logging.getLogger("memplane.controlplane.case_child")

MODULE = "dataplane.policy_cases"
LONGEST_ANSWER = 64 * 1024 * 1024
"""Bytes: 1,000 cases of 4,000 characters each take 25 MB where all are escaped."""


class CaseChild:
    """One child, started when first asked and anew when it died; it is asked one question at a time.

    A question that takes longer than `deadline_s` costs the child its life.
    """

    def __init__(self, deadline_s: float = 60.0, module: str = MODULE):
        self._deadline_s = deadline_s
        self._module = module
        self._process: asyncio.subprocess.Process | None = None
        self._asking = asyncio.Lock()
        self._closed = False

    async def ask(self, question: bytes) -> list[Any]:
        """What came of the cases of a question; see `controlplane.trial`. Raises Unavailable when it may work later."""
        async with self._asking:
            if self._closed:
                raise Unavailable("policy cases")
            answer = b""
            try:
                async with asyncio.timeout(self._deadline_s):
                    answer = await self._answer(question)
            except (OSError, TimeoutError, ValueError) as error:
                log.warning("golden cases could not be tried: %r", error)
            finally:
                if not answer.endswith(b"\n"):  # also when the caller goes away: the next one must not get this answer
                    await self._end()
            if not answer.endswith(b"\n"):
                raise Unavailable("policy cases")
            came: list[Any] = json.loads(answer)["came"]
            return came

    async def close(self) -> None:
        """Ends the child, also in the midst of a question; calls that run or come later raise Unavailable."""
        self._closed = True
        await self._end()

    async def _answer(self, question: bytes) -> bytes:
        process = self._process
        if process is None or process.returncode is not None:
            process = self._process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", self._module),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                limit=LONGEST_ANSWER,
            )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(question)
        await process.stdin.drain()
        return await process.stdout.readline()

    async def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            if process.returncode is None:
                process.kill()
            await process.wait()
