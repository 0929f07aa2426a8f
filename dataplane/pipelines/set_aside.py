"""Queued writes that were given up: listed, and queued again."""

from collections.abc import Sequence

from dataplane.changes import SetAsideWrite
from dataplane.errors import BackendUnavailable
from dataplane.pipelines.caller import Caller
from dataplane.ports import WriteQueue
from memplane.errors import NotOffered, Unavailable


class SetAsideWrites:
    """Lists them, and queues them again. `queue` None: there is no queue, and both raise NotOffered."""

    def __init__(self, queue: WriteQueue | None):
        self._queue = queue

    async def page(self, after_id: str, page_size: int, caller: Caller, deadline_s: float) -> list[SetAsideWrite]:
        """Those above an id, in the queue's order; raises Unavailable."""
        queue = self._offered(caller)
        try:
            return await queue.set_aside_writes(after_id, page_size, deadline_s)
        except BackendUnavailable as error:
            raise Unavailable(error.backend) from error

    async def replay(self, entry_ids: Sequence[str], caller: Caller, deadline_s: float) -> int:
        """How many are in the queue again; all of them for no ids. Raises Unavailable."""
        queue = self._offered(caller)
        try:
            return await queue.replay_set_aside(entry_ids, deadline_s)
        except BackendUnavailable as error:
            raise Unavailable(error.backend) from error

    def _offered(self, caller: Caller) -> WriteQueue:
        caller.require("maintenance", None)
        if self._queue is None:
            raise NotOffered("no durable queue is configured, so no write was set aside")
        return self._queue
