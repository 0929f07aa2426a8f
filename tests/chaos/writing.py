"""What a client writes, changes and forgets."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from google.protobuf import field_mask_pb2

from memplane.v1 import memory_pb2
from memplane.v1 import memory_service_pb2 as pb
from tests.chaos.attempts import EVERYBODY, Attempts, Call
from tests.chaos.calls import told_of_write
from tests.chaos.history import SHARED_WRITER, marker
from tests.chaos.intents import FACTS, SHARED_STATEMENTS, SUBJECT_SIZE, Intent, sentence
from tests.chaos.knowledge import Knowledge, Known, chosen

TTL_S = 2


class Writing:
    """Carries out intents that change something."""

    def __init__(self, attempts: Attempts, knowledge: Knowledge):
        self._attempts = attempts
        self._knowledge = knowledge
        self.does: Mapping[str, Callable[[Intent], Awaitable[None]]] = {
            "write": self._write,
            "write_fact": self._write_fact,
            "write_shared": self._write_shared,
            "write_passing": self._write_passing,
            "write_foreign": self._write_foreign,
            "batch": self._batch,
            "update": lambda intent: self._update(intent, knowledge.own),
            "update_shared": lambda intent: self._update(intent, knowledge.shared),
            "forget": lambda intent: self._forget(intent, knowledge.own),
            "forget_shared": lambda intent: self._forget(intent, knowledge.shared),
        }

    async def _write(self, intent: Intent) -> None:
        await self._propose(intent, self._own_statement(intent.number))

    async def _write_fact(self, intent: Intent) -> None:
        """A statement of its own of a fact that all clients of the tenant state."""
        word = marker(self._attempts.place.tenant, self._attempts.place.client, intent.number)
        known = Known(self._attempts.place.common, EVERYBODY, "FACT", word, "")
        await self._propose(intent, known, fact_key=f"{EVERYBODY}/{int(intent.pick * FACTS)}")

    async def _write_shared(self, intent: Intent) -> None:
        """A statement that all clients of the tenant write word for word."""
        word = marker(self._attempts.place.tenant, SHARED_WRITER, int(intent.pick * SHARED_STATEMENTS))
        await self._propose(intent, Known(self._attempts.place.common, EVERYBODY, "FACT", word, ""))

    async def _write_passing(self, intent: Intent) -> None:
        await self._propose(intent, self._own_statement(intent.number), ttl_s=TTL_S)

    async def _write_foreign(self, intent: Intent) -> None:
        known = self._own_statement(intent.number)
        known.namespace = self._attempts.place.foreign
        await self._propose(intent, known)

    def _own_statement(self, number: int) -> Known:
        word = marker(self._attempts.place.tenant, self._attempts.place.client, number)
        kind = "PREFERENCE" if number % 5 == 0 else "FACT"
        return Known(self._attempts.place.own, f"s{number // SUBJECT_SIZE}", kind, word, "")

    def _request_id(self, intent: Intent, item: int = 0) -> str:
        return f"r-{self._attempts.place.client}-{intent.index}-{item}"

    async def _propose(self, intent: Intent, known: Known, *, fact_key: str = "", ttl_s: int = 0) -> None:
        request, asked = self._proposal(intent, known, fact_key=fact_key)
        if ttl_s:
            request.ttl.seconds, asked["ttl"] = ttl_s, ttl_s
        answer = await self._attempts.call(intent, Call(request, "write", asked, is_safe=intent.has_request_id))
        if answer.response is not None:
            self._heed_write(known, answer.told, answer.response)

    def _proposal(
        self, intent: Intent, known: Known, *, fact_key: str = "", item: int = 0
    ) -> tuple[pb.WriteMemoryRequest, dict[str, Any]]:
        request_id = self._request_id(intent, item) if intent.has_request_id else ""
        request = pb.WriteMemoryRequest(
            namespace=known.namespace,
            content=sentence(known.marker),
            kind=memory_pb2.Kind.Value(f"KIND_{known.kind}"),
            subject_id=known.subject,
            fact_key=fact_key,
            request_id=request_id,
            delivery=pb.DELIVERY_QUEUED if intent.is_queued else pb.DELIVERY_SYNC,
        )
        asked: dict[str, Any] = {
            "ns": known.namespace,
            "subject": known.subject,
            "kind": known.kind,
            "marker": known.marker,
            "fact_key": fact_key,
            "request_id": request_id,
            "delivery": "QUEUED" if intent.is_queued else "SYNC",
            "foreign": known.namespace == self._attempts.place.foreign,
        }
        return request, asked

    def _heed_write(self, known: Known, told: Mapping[str, Any], response: pb.WriteMemoryResponse) -> None:
        if told["operation"]:
            self._knowledge.operations.append((told["operation"], known))
        elif told["id"] and told["state"] == "ACTIVE":
            known.id, known.etag, known.token = told["id"], response.memory.etag, told["token"]
            self._knowledge.learn(known, is_shared=known.namespace == self._attempts.place.common)

    async def _batch(self, intent: Intent) -> None:
        known = [self._own_statement(intent.number + item) for item in range(intent.size)]
        made = [self._proposal(intent, item, item=place) for place, item in enumerate(known)]
        request = pb.BatchWriteMemoriesRequest(requests=[proposal for proposal, _ in made])
        call = Call(request, "write", {}, is_safe=intent.has_request_id, parts=[asked for _, asked in made])
        answer = await self._attempts.call(intent, call)
        if answer.response is None:
            return
        for item, result in zip(known, answer.response.results, strict=True):
            if result.HasField("response"):
                self._heed_write(item, told_of_write(result.response), result.response)

    async def _update(self, intent: Intent, shelf: Sequence[Known]) -> None:
        known = chosen(shelf, intent.pick)
        if known is None:
            return
        word = marker(self._attempts.place.tenant, self._attempts.place.client, intent.number)
        request = pb.UpdateMemoryRequest(
            memory=memory_pb2.Memory(namespace=known.namespace, id=known.id, content=sentence(word)),
            update_mask=field_mask_pb2.FieldMask(paths=["content"]),
            etag=known.etag if intent.has_etag else "",
            request_id=self._request_id(intent) if intent.has_request_id else "",
        )
        asked = {"ns": known.namespace, "id": known.id, "marker": word, "request_id": request.request_id}
        answer = await self._attempts.call(intent, Call(request, "update", asked, is_safe=intent.has_request_id))
        if answer.response is not None:
            known.marker, known.etag, known.token = word, answer.response.memory.etag, answer.told["token"]

    async def _forget(self, intent: Intent, shelf: Sequence[Known]) -> None:
        known = chosen(shelf, intent.pick)
        if known is None:
            return
        mode = pb.FORGET_MODE_HARD if intent.is_hard else pb.FORGET_MODE_SOFT
        request = pb.ForgetMemoryRequest(
            namespace=known.namespace,
            id=known.id,
            mode=mode,
            request_id=self._request_id(intent) if intent.has_request_id else "",
        )
        asked = {"ns": known.namespace, "id": known.id, "mode": "HARD" if intent.is_hard else "SOFT"}
        answer = await self._attempts.call(intent, Call(request, "forget", asked, is_safe=intent.has_request_id))
        if answer.code in {"OK", "NOT_FOUND"}:
            self._knowledge.forget(known)
