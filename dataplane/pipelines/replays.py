"""The first answer to a write is given again to whoever asks again under its request_id."""

import asyncio
from collections.abc import Mapping, Sequence

from dataplane.errors import BackendUnavailable
from dataplane.model import Draft
from dataplane.pipelines.caller import Caller
from dataplane.pipelines.requests import first_answers, identified
from dataplane.pipelines.settle import Settled
from dataplane.pipelines.sight import keep_readable
from dataplane.ports import Clock, RecordStore
from memplane.errors import MemPlaneError, Unavailable
from memplane.v1 import memory_pb2, memory_service_pb2

Drafts = Mapping[int, Draft]
_MET = (memory_pb2.DECISION_ACTION_MERGED, memory_pb2.DECISION_ACTION_UPDATED)


class Replays:
    """Finds first answers. A draft that is only tried has none."""

    def __init__(self, store: RecordStore, clock: Clock):
        self._store = store
        self._clock = clock

    async def of(self, draft: Draft, caller: Caller, deadline_s: float) -> Settled | None:
        """The first answer, if there was one; raises RequestIdReused."""
        if draft.validate_only:
            return None
        answer = await identified(draft).first_answer(self._store, caller, self._clock.now_us(), deadline_s)
        return None if answer is None else _replayed(answer, await self._store.last_position(deadline_s), caller)

    async def of_all(
        self, drafts: Sequence[Draft | MemPlaneError], caller: Caller, deadline_s: float
    ) -> dict[int, Settled | MemPlaneError]:
        """By index, what `of` gives or raises, Unavailable when that cannot be told; nothing of those without."""
        namespaces: dict[str, dict[int, Draft]] = {}
        for index, draft in enumerate(drafts):
            if isinstance(draft, Draft) and draft.request_id and not draft.validate_only:
                namespaces.setdefault(draft.namespace, {})[index] = draft
        found = await asyncio.gather(*(self._known(part, caller, deadline_s) for part in namespaces.values()))
        return {index: outcome for part in found for index, outcome in part.items()}

    async def of_first(self, draft: Draft, caller: Caller, deadline_s: float) -> Settled | MemPlaneError:
        """Another call with this request_id was stored first: its answer, or that it asked for something else."""
        try:
            answer = await identified(draft).answer_of_first(self._store, caller, self._clock.now_us(), deadline_s)
            return _replayed(answer, await self._store.last_position(deadline_s), caller)
        except MemPlaneError as error:
            return error
        except BackendUnavailable as error:
            return Unavailable(error.backend)

    async def _known(self, drafts: Drafts, caller: Caller, deadline_s: float) -> dict[int, Settled | MemPlaneError]:
        """Of drafts of one namespace."""
        requests = {index: identified(draft) for index, draft in drafts.items()}
        try:
            asked, now_us = list(requests.values()), self._clock.now_us()
            answers = await first_answers(asked, self._store, caller, now_us, deadline_s)
            position = await self._store.last_position(deadline_s) if answers else 0
        except BackendUnavailable as error:
            return {index: Unavailable(error.backend) for index in drafts}
        return {
            index: answer if isinstance(answer, MemPlaneError) else _replayed(answer, position, caller)
            for index, request in requests.items()
            if (answer := answers.get(request)) is not None
        }


def _replayed(answer: bytes, position: int, caller: Caller) -> Settled:
    """The first answer; of a memory that others may have written too, what the caller may still read."""
    if not answer:
        return Settled(_forgotten_since(), position)
    response = memory_service_pb2.WriteMemoryResponse.FromString(answer)
    if response.decision.action in _MET:
        keep_readable(response.memory, caller)
    return Settled(response, position)


def _forgotten_since() -> memory_service_pb2.WriteMemoryResponse:
    """What a retry hears whose memory was forgotten for good in between: it is not brought back."""
    response = memory_service_pb2.WriteMemoryResponse()
    response.decision.action = memory_pb2.DECISION_ACTION_REJECTED
    response.decision.reasons.add(
        code="FORGOTTEN", message="what this request stored was forgotten for good since; use a new request_id"
    )
    return response
