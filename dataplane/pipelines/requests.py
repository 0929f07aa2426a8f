"""Makes retries safe: the first answer to a request_id is given again, another payload under it is refused."""

from dataclasses import dataclass

from dataplane.changes import RequestRecord
from dataplane.model import DAY_US, Scope
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
        if not self.request_id:
            return None
        scope = Scope((self.namespace,))
        known = await store.find_request(scope, caller.principal_id, self.request_id, now_us, deadline_s)
        if known is None:
            return None
        if known.payload_hash != self.payload_hash:
            raise RequestIdReused(self.request_id)
        return known.response

    async def answer_of_first(self, store: RecordStore, caller: Caller, now_us: int, deadline_s: float) -> bytes:
        """The answer of the call that took this request_id; RequestIdReused when that one asked for something else."""
        known = await self.first_answer(store, caller, now_us, deadline_s)
        if known is None:  # taken in another namespace
            raise RequestIdReused(self.request_id)
        return known

    def record(self, caller: Caller, response: bytes, now_us: int) -> RequestRecord | None:
        """What to store beside the change, for 24 hours; None when the caller gave no id."""
        if not self.request_id:
            return None
        return RequestRecord(caller.principal_id, self.request_id, self.payload_hash, response, now_us + DAY_US)
