"""Makes retries safe: the first answer to a request_id is given again, another payload under it is refused."""

from collections.abc import Sequence
from dataclasses import dataclass

from dataplane.changes import RequestRecord
from dataplane.model import DAY_US, Draft, Scope
from dataplane.pipelines.caller import Caller
from dataplane.ports import RecordStore
from memplane.errors import RequestIdReused


@dataclass(frozen=True, slots=True)
class Identified:
    """A request's id ("" for none) and payload hash, in a namespace."""

    namespace: str
    request_id: str
    payload_hash: str

    async def first_answer(self, store: RecordStore, caller: Caller, now_us: int, deadline_s: float) -> bytes | None:
        """The stored answer to this request; None when there is none; RequestIdReused for another payload."""
        answer = (await first_answers([self], store, caller, now_us, deadline_s)).get(self)
        if isinstance(answer, RequestIdReused):
            raise answer
        return answer

    async def answer_of_first(self, store: RecordStore, caller: Caller, now_us: int, deadline_s: float) -> bytes:
        """The answer of the call that took this request_id; RequestIdReused when that one asked for something else."""
        known = await self.first_answer(store, caller, now_us, deadline_s)
        if known is None:  # taken in another namespace
            raise RequestIdReused(self.request_id)
        return known

    def record(self, caller: Caller, response: bytes, now_us: int) -> RequestRecord | None:
        """What to store beside the change, for 24 hours; None when there is no id."""
        if not self.request_id:
            return None
        return RequestRecord(caller.principal_id, self.request_id, self.payload_hash, response, now_us + DAY_US)


def identified(draft: Draft) -> Identified:
    """The draft's request, for idempotency."""
    return Identified(draft.namespace, draft.request_id or draft.attempt_id, draft.payload_hash)


async def first_answers(
    requests: Sequence[Identified], store: RecordStore, caller: Caller, now_us: int, deadline_s: float
) -> dict[Identified, bytes | RequestIdReused]:
    """What `first_answer` gives or raises of each, but for those that are not known; of one namespace."""
    ids = [request.request_id for request in requests if request.request_id]
    if not ids:
        return {}
    scope = Scope((requests[0].namespace,))
    found = await store.find_requests(scope, caller.principal_id, ids, now_us, deadline_s)
    known = {record.request_id: record for record in found}
    return {request: _answer(request, known[request.request_id]) for request in requests if request.request_id in known}


def _answer(request: Identified, known: RequestRecord) -> bytes | RequestIdReused:
    return known.response if known.payload_hash == request.payload_hash else RequestIdReused(request.request_id)
