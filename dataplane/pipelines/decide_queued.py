"""Decides a batch of queued writes: subjects side by side, the writes of one in order.

Rules:
1. Entries with one order key are decided by one task. A run goes through the write pipeline together; it is of one
   identity, and of one order key it holds a fact key once, so that a later statement of a fact never passes an earlier
   one that could not be decided: entries behind such a one wait with it.
2. An entry that fails by a defect is told apart from the others of its run. It is tried MOST_TRIES times in all.
"""

import asyncio
import logging
import secrets
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from dataplane.changes import QueueEntry
from dataplane.model import Draft
from dataplane.pipelines.caller import Caller
from dataplane.pipelines.enqueue import QueuedForm
from dataplane.pipelines.shares import shares
from dataplane.pipelines.write import Outcome, WritePipeline
from memplane.errors import Defect, MemPlaneError, Retryable
from memplane.identity import Identity
from memplane.policy.snapshot import PolicySnapshot

log = logging.getLogger("memplane.queue")

MOST_TRIES = 5
SIDE_BY_SIDE = 16
"""How many shares of a batch are decided at once, so that the record store commits them together. Unmeasured."""

CALL_S = 30.0
WRITE_S = 0.5
"""How long a run may take: so much, and so much more for each write in it. Unmeasured."""


@dataclass(frozen=True, slots=True)
class _Item:
    entry: QueueEntry
    identity: Identity
    draft: Draft | MemPlaneError

    @property
    def key(self) -> str:
        """What is decided in order."""
        return self.entry.write.order_key

    @property
    def fact_key(self) -> str:
        """The fact that it states; "" for none."""
        return self.draft.fact_key if isinstance(self.draft, Draft) else ""


class QueuedDecisions:
    """Decides entries through the write pipeline."""

    def __init__(self, write: WritePipeline, form: QueuedForm):
        self._write = write
        self._form = form
        self._tries: Counter[str] = Counter()

    async def outcomes(self, entries: Sequence[QueueEntry], snapshot: PolicySnapshot) -> list[Outcome]:
        """The outcome of each entry, index-aligned; a Retryable one means that it is not decided yet."""
        outcomes: dict[str, Outcome] = {}
        items = [_Item(entry, self._form.identity(entry.write), self._draft(entry)) for entry in entries]
        dealt = shares(items, lambda item: item.key, SIDE_BY_SIDE)
        await asyncio.gather(*(self._decide(share, snapshot, outcomes) for share in dealt))
        return [outcomes[entry.entry_id] for entry in entries]

    def let_go(self, entry_id: str) -> None:
        """Forgets how often an entry was tried."""
        self._tries.pop(entry_id, None)

    async def _decide(self, share: Sequence[_Item], snapshot: PolicySnapshot, outcomes: dict[str, Outcome]) -> None:
        waiting: set[str] = set()
        for run in _runs(share):
            outcomes.update((item.entry.entry_id, Retryable("waits behind another write")) for item in run)
            ready = [item for item in run if item.key not in waiting]
            if not ready:
                continue
            decided = await self._together(ready, Caller(ready[0].identity, snapshot))
            for item, outcome in zip(ready, decided, strict=True):
                outcomes[item.entry.entry_id] = outcome
                if not is_final(outcome):
                    waiting.add(item.key)

    async def _together(self, run: Sequence[_Item], caller: Caller) -> list[Outcome]:
        """Outcomes of a run; where all fail by a defect, of each alone."""
        deadline_s = asyncio.get_running_loop().time() + CALL_S + WRITE_S * len(run)
        try:
            return await self._write.write_batch([item.draft for item in run], caller, deadline_s)
        except Exception as error:  # noqa: BLE001 - a defect must not stop the queue: it is logged and counted
            if len(run) == 1:
                return [self._failure(run[0].entry, error)]
            log.warning("%d queued writes failed together and are applied one at a time", len(run))
        return [(await self._together([item], caller))[0] for item in run]

    def _draft(self, entry: QueueEntry) -> Draft | MemPlaneError:
        try:
            return self._form.draft(entry.write)
        except MemPlaneError as error:
            return error

    def _failure(self, entry: QueueEntry, error: Exception) -> Outcome:
        """Something to try again, until it was tried often enough."""
        self._tries[entry.entry_id] += 1
        if entry.deliveries - 1 + self._tries[entry.entry_id] >= MOST_TRIES:
            return given_up(entry, error)
        log.warning("queued write %s failed and is tried again", entry.write.operation, exc_info=error)
        return Retryable("not decided yet")


def is_final(outcome: Outcome) -> bool:
    """Whether trying again is of no use."""
    return not isinstance(outcome, Retryable)


def given_up(entry: QueueEntry, error: Exception | None) -> Defect:
    """The outcome of an entry that is not tried any more; the log tells why (None: it ended its processes)."""
    correlation_id = secrets.token_hex(8)
    told = "queued write %s is set aside after %d deliveries, correlation id %s"
    log.error(told, entry.write.operation, entry.deliveries, correlation_id, exc_info=error)
    return Defect(correlation_id)


def _runs(share: Sequence[_Item]) -> Iterator[list[_Item]]:
    """Items grouped as rule 1 says, those of one key in order."""
    groups: dict[Identity, list[_Item]] = {}
    identity_of: dict[str, Identity] = {}
    facts: set[tuple[str, str]] = set()
    for item in share:
        fact = (item.key, item.fact_key)
        if identity_of.get(item.key, item.identity) != item.identity or fact in facts:
            yield from groups.values()
            groups, identity_of, facts = {}, {}, set()
        identity_of[item.key] = item.identity
        groups.setdefault(item.identity, []).append(item)
        if item.fact_key:
            facts.add(fact)
    yield from groups.values()
