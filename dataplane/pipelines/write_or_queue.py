"""A write that is decided at once, or accepted into the queue while the record store cannot decide it.

Why none is applied twice. A commit that failed may have been stored all the same, or may be stored yet. So every write
that may end in the queue goes to its commit under an id, and is queued under the same one: the caller's request_id, or
one made up here (`Draft.attempt_id`). The record store keeps the id with what it stores, in one commit, and takes it
once for each principal. Whichever comes second, the commit in flight or the queued write, is refused, and gets the
first one's answer.

Equal content would not do in place of an id: a memory that was stored after all and forgotten before the queue comes
to it would be made anew. An id that is made up costs a row in the record store for 24 hours: writes without a
request_id take 1.15 times as long by 16 callers, 1.21 times in batches of 100 (`python -m bench.write_ids`: SQLite,
embeddings by hash, 2026-11). Where there is no queue none is made up.

What was said later of a subject is decided later: a write whose subject has one in the queue, put there by this data
plane, waits until that one is applied, which takes a second or two once the record store is back. If it takes longer it
is queued behind it. Waiting comes first, for a busy subject's writes that were always queued behind others would find
one in the queue for ever. Another data plane does not know of all this and may decide its own first.

What is queued waits up to as long as an id is kept; a record store that is away for longer may keep both the write of
a commit in flight and the queued one, as two memories only where they say different things.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from dataplane.model import Draft
from dataplane.pipelines.caller import Caller
from dataplane.pipelines.degraded import DegradedNotes
from dataplane.pipelines.enqueue import EnqueuePipeline, Proposal, order_key
from dataplane.pipelines.settle import Settled
from dataplane.pipelines.write import Outcome, WritePipeline
from memplane.errors import MemPlaneError, Overloaded, Unavailable

BACKEND: Final = "record_store"
FALLBACK: Final = "accepted into the queue; the operation tells what becomes of it"
BEHIND: Final = "accepted into the queue behind an earlier write of the subject; the operation tells what becomes of it"

KEPT_SHARE: Final = 0.25
KEPT_S: Final = 1.0
"""What is kept of a call's time for the queue: a share of it, at most so much. Unmeasured."""

PATIENCE_S: Final = 3.0
"""How long a write waits for earlier ones of its subject. Unmeasured, as the pause between two looks."""
LOOK_S: Final = 0.05

MOST_SUBJECTS: Final = 10_000
"""So many subjects with a write in the queue are remembered, the latest ones. Unmeasured."""

Given = Proposal | MemPlaneError


class WriteOrQueue:
    """Writes with delivery SYNC. `enqueue` None: there is no queue, and what cannot be decided is UNAVAILABLE."""

    def __init__(self, write: WritePipeline, enqueue: EnqueuePipeline | None, new_id: Callable[[], str]):
        self._write = write
        self._enqueue = enqueue
        self._new_id = new_id
        self._waiting: OrderedDict[str, str] = OrderedDict()

    async def write(self, proposal: Proposal, caller: Caller, deadline_s: float) -> Settled:
        """The outcome of one; raises what stood in its way."""
        outcome = (await self.write_batch([proposal], caller, deadline_s))[0]
        if isinstance(outcome, MemPlaneError):
            raise outcome
        return outcome

    async def write_batch(self, given: Sequence[Given], caller: Caller, deadline_s: float) -> list[Outcome]:
        """The outcome of each, index-aligned; an error given is its own outcome."""
        if self._enqueue is None:
            return await self._write.write_batch([_draft_of(item) for item in given], caller, deadline_s)
        named = [self._named(item) for item in given]
        behind, is_up = await self._behind(self._enqueue, named, caller, deadline_s)
        now = {index: item for index, item in enumerate(named) if index not in behind}
        drafts = [_draft_of(item) for item in now.values()]
        decided = dict(zip(now, await self._write.write_batch(drafts, caller, _earlier(deadline_s)), strict=True))
        undecided = {index: now[index] for index, outcome in decided.items() if _may_wait(now[index], outcome)}
        queued = await self._queued(self._enqueue, undecided, caller, deadline_s, is_up=False)
        after = await self._queued(self._enqueue, behind, caller, deadline_s, is_up=is_up)
        outcomes = {**decided, **queued, **after}
        return [outcomes[index] for index in range(len(given))]

    def _named(self, item: Given) -> Given:
        """The proposal under an id of its own, where the caller gave none."""
        if isinstance(item, MemPlaneError) or item.draft.request_id or item.draft.validate_only:
            return item
        return replace(item, draft=replace(item.draft, attempt_id=self._new_id()))

    async def _behind(
        self, enqueue: EnqueuePipeline, given: Sequence[Given], caller: Caller, deadline_s: float
    ) -> tuple[dict[int, Proposal], bool]:
        """Those whose subject has a write in the queue, though it was waited for; whether the record store answers.

        Who may not write there waits for nothing, and so learns nothing.
        """
        asked = {
            index: item
            for index, item in enumerate(given)
            if isinstance(item, Proposal)
            and not item.draft.validate_only
            and order_key(item) in self._waiting
            and caller.may("memory.write", item.draft.namespace)
        }
        is_up = not asked or await enqueue.store_takes(_earlier(deadline_s))
        if is_up:
            await self._applied(enqueue, {order_key(item) for item in asked.values()}, deadline_s)
        return {index: item for index, item in asked.items() if order_key(item) in self._waiting}, is_up

    async def _applied(self, enqueue: EnqueuePipeline, keys: set[str], deadline_s: float) -> None:
        """Waits, if not for long, until the queue holds nothing of these subjects."""
        now_s = asyncio.get_running_loop().time
        until_s = min(now_s() + PATIENCE_S, _earlier(deadline_s))
        for key in keys:
            while (operation := self._waiting.get(key)) is not None:
                if not await enqueue.still_waits(operation, deadline_s):
                    self._let_go(key, operation)
                elif now_s() >= until_s:
                    break
                else:
                    await asyncio.sleep(LOOK_S)

    def _let_go(self, key: str, operation: str) -> None:
        """Forgets a write that was applied, if no later one of its subject was queued meanwhile."""
        if self._waiting.get(key) == operation:
            del self._waiting[key]

    async def _queued(
        self, enqueue: EnqueuePipeline, items: Mapping[int, Given], caller: Caller, deadline_s: float, *, is_up: bool
    ) -> dict[int, Outcome]:
        """The outcomes of accepting these into the queue."""
        if not items:
            return {}
        outcomes = await enqueue.enqueue_batch(list(items.values()), caller, deadline_s, asks_store=is_up)
        for item, outcome in zip(items.values(), outcomes, strict=True):
            if isinstance(outcome, Settled) and outcome.response.operation.name:
                self._note(item, outcome, BEHIND if is_up else FALLBACK)
        return dict(zip(items, (_refusal(outcome) for outcome in outcomes), strict=True))

    def _note(self, item: Given, settled: Settled, fallback: str) -> None:
        notes = DegradedNotes()
        notes.add(BACKEND, "BACKEND_UNAVAILABLE", fallback)
        settled.response.degraded.extend(notes.messages())
        self._waiting[order_key(item)] = settled.response.operation.name
        self._waiting.move_to_end(order_key(item))
        if len(self._waiting) > MOST_SUBJECTS:
            self._waiting.popitem(last=False)


def _draft_of(item: Given) -> Draft | MemPlaneError:
    return item.draft if isinstance(item, Proposal) else item


def _may_wait(item: Given, outcome: Outcome) -> bool:
    """Whether the record store stood in the way of something that is to be stored."""
    is_down = isinstance(outcome, Unavailable) and outcome.metadata.get("backend") == BACKEND
    return is_down and isinstance(item, Proposal) and not item.draft.validate_only


def _refusal(outcome: Outcome) -> Outcome:
    """The outcome, in words for a caller who did not ask for the queue."""
    if isinstance(outcome, Overloaded):
        return Overloaded(f"{BACKEND} is unavailable and the queue of writes is full", outcome.retry_after_s)
    return Unavailable(BACKEND) if isinstance(outcome, Unavailable) else outcome


def _earlier(deadline_s: float) -> float:
    """Until when the record store may take, so that there is time for the queue."""
    remaining_s = deadline_s - asyncio.get_running_loop().time()
    return deadline_s - min(KEPT_S, max(0.0, KEPT_SHARE * remaining_s))
