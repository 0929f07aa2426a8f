"""Follows the files of one certificate: takes what can be used, and keeps what was in use until there is such a thing.

Files are compared by content, every second: a watch on events goes deaf when a folder is replaced, as Kubernetes does
with mounted secrets. New content must hold still for a moment, for a bundle that is half written can be well-formed.
"""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from memplane.rpc.certificates import BadCertificate, CertificateFact, TlsFiles, TlsMaterial, check, read_files
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

    `material` is replaced whole, by one assignment: any thread may read it; empty: nothing could be used yet.
    `problem` tells why the newest files are not in use; "": they are, or were replaced since the look before, for a
    tool takes a moment to write two files. `purpose` is `server` or `client`.
    `renewal_count` and `fault_count` count what was taken after the first, and unexpected faults.
    """

    def __init__(self, files: TlsFiles, purpose: str, clock: Clock, options: WatchOptions | None = None):
        self._files = files
        self.purpose = purpose
        self._clock = clock
        self._options = options or WatchOptions()
        self._facts: tuple[CertificateFact, ...] = ()
        self.material = TlsMaterial()
        self.problem = ""
        self._first_seen = ""
        self.renewal_count = 0
        self.fault_count = 0

    def load(self) -> None:
        """Takes the files as they are now. Blocking. Raises BadCertificate."""
        material = read_files(self._files)
        self._facts = check(self._files, material, self.purpose, self._clock.now_us())
        self.material = material

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
        """Looks once, and takes what is new and can be used. Never raises but for cancellation."""
        try:
            await self._take_newest()
        except BadCertificate as error:
            self._note(str(error))
        except Exception as error:  # noqa: BLE001 - the watch must live on: counted, logged, told, tried again
            self.fault_count += 1
            self._note(f"{type(error).__name__}: {error}")

    async def _take_newest(self) -> None:
        found = await asyncio.to_thread(read_files, self._files)
        if found == self.material:
            self._note("")
            return
        facts = check(self._files, found, self.purpose, self._clock.now_us())
        await asyncio.sleep(self._options.settle_s)
        if await asyncio.to_thread(read_files, self._files) != found:
            return  # still being written: looked at again at the next poll
        self.renewal_count += bool(self._facts)
        self.material, self._facts = found, facts
        self._note("")
        names = ", ".join(f"{fact.purpose} {fact.subject}" for fact in facts)
        log.info("certificate files are in use for new connections: %s", names)

    def _note(self, problem: str) -> None:
        """Tells a problem that two looks have found, or one where there is nothing in use."""
        seen_before, self._first_seen = bool(self._first_seen), problem
        if problem and self._facts and not seen_before:
            return
        if problem and problem != self.problem:
            kept = "those before stay in use" if self._facts else "there are none before"
            log.error("certificate files are not taken, %s: %s", kept, problem)
        self.problem = problem


def _status(fact: CertificateFact, problem: str) -> policy_pb2.CertificateStatus:
    status = policy_pb2.CertificateStatus(purpose=fact.purpose, subject=fact.subject, problem=problem)
    status.expire_time.FromMicroseconds(fact.expire_time_us)
    return status
