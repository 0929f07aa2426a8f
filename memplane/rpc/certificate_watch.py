"""Follows the files of one certificate: takes what can be used, and keeps what was in use until there is such a thing.

Files are compared by content, every second: a watch on events goes deaf when a folder is replaced, as Kubernetes does
with mounted secrets. New content must hold still for a moment, for a bundle that is half written can be well-formed.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from memplane.rpc.certificates import BadCertificate, CertificateFact, TlsFiles, check, read_files
from memplane.v1 import policy_pb2

log = logging.getLogger("memplane.rpc.tls")


class Clock(Protocol):
    """Tells the time."""

    def now_us(self) -> int:
        """Microseconds since 1970-01-01 UTC."""
        ...


@dataclass(frozen=True, slots=True)
class WatchOptions:
    """How often to look, and how long content must hold still. The policy watch's values; unmeasured."""

    poll_s: float = 1.0
    settle_s: float = 0.1


class CertificateWatch:
    """The material in use, and its facts.

    `material` is replaced whole, by one assignment: any thread may read it. `problem` tells why the newest files are
    not in use; "": they are. `purpose` is `server` or `client`.
    """

    def __init__(self, files: TlsFiles, purpose: str, clock: Clock, options: WatchOptions | None = None):
        """Reads the files. Raises BadCertificate."""
        self._files = files
        self._purpose = purpose
        self._clock = clock
        self._options = options or WatchOptions()
        self.material = read_files(files)
        self._facts = check(files, self.material, purpose, clock.now_us())
        self.problem = ""
        self.renewal_count = 0

    @property
    def facts(self) -> Sequence[CertificateFact]:
        """What is in use: its own certificate first, then the authorities that end soonest."""
        return self._facts

    def statuses(self) -> list[policy_pb2.CertificateStatus]:
        """The facts for reports, the problem with each."""
        return [_status(fact, self.problem) for fact in self._facts]

    async def run(self) -> None:
        """Follows the files until cancelled."""
        while True:
            await asyncio.sleep(self._options.poll_s)
            await self.look()

    async def look(self) -> None:
        """Looks once, and takes what is new and can be used."""
        try:
            await self._take_newest()
        except BadCertificate as error:
            self._note(str(error))

    async def _take_newest(self) -> None:
        found = await asyncio.to_thread(read_files, self._files)
        if found == self.material:
            self._note("")
            return
        facts = check(self._files, found, self._purpose, self._clock.now_us())
        await asyncio.sleep(self._options.settle_s)
        if await asyncio.to_thread(read_files, self._files) != found:
            return  # still being written: looked at again at the next poll
        self.material, self._facts = found, facts
        self.renewal_count += 1
        self._note("")
        ends = ", ".join(f"{fact.purpose} {fact.subject}" for fact in facts)
        log.info("new files are in use for new connections: %s", ends)

    def _note(self, problem: str) -> None:
        if problem and problem != self.problem:
            log.error("new certificate files are not taken, those before stay in use: %s", problem)
        self.problem = problem


def _status(fact: CertificateFact, problem: str) -> policy_pb2.CertificateStatus:
    status = policy_pb2.CertificateStatus(purpose=fact.purpose, subject=fact.subject, problem=problem)
    status.expire_time.FromMicroseconds(fact.expire_time_us)
    return status
