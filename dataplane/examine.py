"""Looks at every backend now and then: who answers, how fast, and what is wrong though it answers."""

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from dataplane.errors import BackendUnavailable
from dataplane.ports import Backend, Examination

log = logging.getLogger("memplane.dataplane.examine")

INTERVAL_S = 10.0
TIMEOUT_S = 5.0
"""How long one examination may take; a backend that needs longer is told as not answering. Both are unmeasured."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The last examination of a backend. `problem` says why there was no answer; then `examination` is an older one."""

    examination: Examination = field(default_factory=lambda: Examination(""))
    latency_s: float = 0.0
    problem: str = ""


class Examiner:
    """Examines the backends, each by itself, so that a slow one delays no other."""

    def __init__(self, backends: Mapping[str, Backend]):
        self.findings: dict[str, Finding] = {}
        self._backends = dict(backends)

    async def run(self) -> None:
        """Examines until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(INTERVAL_S)

    async def look(self) -> None:
        """Examines each once."""
        await asyncio.gather(*(self._examine(name, backend) for name, backend in self._backends.items()))

    async def _examine(self, name: str, backend: Backend) -> None:
        before = self.findings.get(name, Finding())
        loop = asyncio.get_running_loop()
        started_s = loop.time()
        try:
            async with asyncio.timeout(TIMEOUT_S):
                found = await backend.examine(started_s + TIMEOUT_S)
            now = Finding(found, loop.time() - started_s)
        except BackendUnavailable as error:
            now = Finding(before.examination, before.latency_s, error.words)
        except TimeoutError:
            now = Finding(before.examination, before.latency_s, f"did not answer within {TIMEOUT_S:g} s")
        except Exception:  # the loop must live on: the other backends are to be looked at
            log.exception("%s could not be examined", name)
            now = Finding(before.examination, before.latency_s, "its examination failed; the log says how")
        _tell(name, before, now)
        self.findings[name] = now


def _tell(name: str, before: Finding, now: Finding) -> None:
    if now.problem != before.problem:
        log.log(logging.WARNING if now.problem else logging.INFO, "%s: %s", name, now.problem or "answers again")
    known = {problem.code for problem in before.examination.problems}
    for problem in now.examination.problems:
        if problem.code not in known:
            log.warning("%s: %s", name, problem.message)
