"""What a client searches, reads and asks after."""

from collections.abc import Awaitable, Callable, Mapping, Sequence

from google.longrunning import operations_pb2

from memplane.v1 import memory_pb2
from memplane.v1 import memory_service_pb2 as pb
from tests.chaos.attempts import EVERYBODY, Attempts, Call
from tests.chaos.history import markers_in
from tests.chaos.intents import Intent, sentence
from tests.chaos.knowledge import Knowledge, Known, chosen

PAGE_SIZE = 10


class Reading:
    """Carries out intents that change nothing. `foreign` is what a client of another tenant knows."""

    def __init__(self, attempts: Attempts, knowledge: Knowledge, foreign: Callable[[], Sequence[Known]]):
        self._attempts = attempts
        self._knowledge = knowledge
        self._foreign = foreign
        self.does: Mapping[str, Callable[[Intent], Awaitable[None]]] = {
            "search": lambda intent: self._search(intent, chosen(self._seen, intent.pick), with_token=False),
            "search_fresh": lambda intent: self._search(intent, chosen(knowledge.own, intent.pick / 4)),
            "search_forgotten": lambda intent: self._search(intent, chosen(knowledge.forgotten, intent.pick)),
            "search_foreign": self._search_foreign,
            "context": self._context,
            "get": lambda intent: self._get(intent, chosen(self._seen, intent.pick)),
            "get_forgotten": lambda intent: self._get(intent, chosen(knowledge.forgotten, intent.pick)),
            "get_foreign": self._get_foreign,
            "list": self._list,
            "poll": self._poll,
        }

    @property
    def _seen(self) -> list[Known]:
        return [*self._knowledge.shared, *self._knowledge.own]

    async def _search(self, intent: Intent, known: Known | None, *, with_token: bool = True) -> None:
        if known is None:
            return
        request = self._question(known, known.token if with_token else "")
        asked = {"ns": known.namespace, "marker": known.marker, "token": request.at_least_as_fresh}
        answer = await self._attempts.call(intent, Call(request, "search", asked))
        if answer.response is not None and known.namespace == self._attempts.place.common:
            self._notice(answer.response.hits)

    def _question(self, known: Known, token: str) -> pb.SearchMemoriesRequest:
        return pb.SearchMemoriesRequest(
            namespace=known.namespace, query=sentence(known.marker), at_least_as_fresh=token
        )

    def _notice(self, hits: Sequence[memory_pb2.Hit]) -> None:
        """Learns of the memories that others wrote."""
        for memory in (hit.memory for hit in hits if hit.memory.subject_id == EVERYBODY):
            for word in markers_in(memory.content):
                kind = memory_pb2.Kind.Name(memory.kind).removeprefix("KIND_")
                known = Known(memory.namespace, EVERYBODY, kind, word, memory.id, memory.etag)
                self._knowledge.learn(known, is_shared=True)

    async def _search_foreign(self, intent: Intent) -> None:
        """Another tenant's text, once where it lies and once in the own namespace."""
        known = chosen(self._foreign(), intent.pick)
        if known is None:
            return
        namespace = self._attempts.place.foreign if intent.is_hard else self._attempts.place.own
        request = pb.SearchMemoriesRequest(namespace=namespace, query=sentence(known.marker))
        asked = {"ns": namespace, "marker": known.marker, "foreign": intent.is_hard}
        await self._attempts.call(intent, Call(request, "search", asked))

    async def _context(self, intent: Intent) -> None:
        known = chosen(self._seen, intent.pick)
        if known is None:
            return
        token = known.token if intent.has_etag else ""
        request = pb.GetContextRequest(search=self._question(known, token))
        asked = {"ns": known.namespace, "marker": known.marker, "token": token}
        await self._attempts.call(intent, Call(request, "context", asked))

    async def _get(self, intent: Intent, known: Known | None) -> None:
        if known is not None:
            request = pb.GetMemoryRequest(namespace=known.namespace, id=known.id)
            await self._attempts.call(intent, Call(request, "get", {"ns": known.namespace, "id": known.id}))

    async def _get_foreign(self, intent: Intent) -> None:
        known = chosen(self._foreign(), intent.pick)
        if known is not None:
            namespace = known.namespace if intent.is_hard else self._attempts.place.own
            request = pb.GetMemoryRequest(namespace=namespace, id=known.id)
            await self._attempts.call(intent, Call(request, "get", {"ns": namespace, "id": known.id, "foreign": True}))

    async def _list(self, intent: Intent) -> None:
        """Every page of what is known of one subject."""
        known = chosen(self._knowledge.own, intent.pick)
        if known is None:
            return
        token, page = "", 0
        while page == 0 or token:
            request = pb.ListMemoriesRequest(
                namespace=known.namespace, subject_id=known.subject, page_size=PAGE_SIZE, page_token=token
            )
            asked = {"ns": known.namespace, "subject": known.subject}
            answer = await self._attempts.call(intent, Call(request, "list", asked, item=page))
            token, page = answer.response.next_page_token if answer.response is not None else "", page + 1

    async def _poll(self, intent: Intent) -> None:
        """How the oldest queued write stands."""
        if not self._knowledge.operations:
            return
        name, known = self._knowledge.operations.popleft()
        request = operations_pb2.GetOperationRequest(name=name)
        answer = await self._attempts.call(intent, Call(request, "operation", {"operation": name}))
        if not answer.told.get("done"):
            self._knowledge.operations.append((name, known))
        elif answer.told.get("id") and answer.told["state"] == "ACTIVE":
            known.id, known.etag, known.token = (answer.told[part] for part in ("id", "etag", "token"))
            self._knowledge.learn(known, is_shared=known.namespace == self._attempts.place.common)
