"""What is there once everything healed: every memory, every queued write, and searches for some of them."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from google.longrunning import operations_pb2
from google.protobuf.message import Message

from memplane.v1 import memory_pb2
from memplane.v1 import memory_service_pb2 as pb
from tests.chaos.calls import Answer, Connection, state_name
from tests.chaos.history import Entry, FinalMemory, FinalOperation, FinalState, markers_in
from tests.chaos.intents import sentence
from tests.chaos.leftovers import Places, leftovers

STATES = (
    memory_pb2.STATE_ACTIVE,
    memory_pb2.STATE_COLD,
    memory_pb2.STATE_SUPERSEDED,
    memory_pb2.STATE_SOFT_DELETED,
)
DEADLINE_S = 10.0
TRIES, PAUSE_S = 10, 1.0
PAGE_SIZE = 500
SAMPLE = 100
"""Of each tenant so many of the memories there, and of those forgotten, are searched for on every data plane."""

OBSERVER = -2
"""The client of what is asked at the end."""


async def read_final_state(
    addresses: Sequence[str], api_keys: Mapping[str, str], places: Places, history: Iterable[Entry]
) -> FinalState:
    """Everything that the tenants can see, and what of erased memories lies in the stores.

    Raises AssertionError when a data plane does not answer within some ten seconds.
    """
    entries = list(history)
    seen = await asyncio.gather(
        *(_of_tenant(addresses, key, tenant, entries) for tenant, key in enumerate(api_keys.values()))
    )
    memories = tuple(memory for each in seen for memory in each.memories)
    operations = tuple(operation for each in seen for operation in each.operations)
    return FinalState(
        memories=memories,
        operations=operations,
        reads=tuple(read for each in seen for read in each.reads),
        raw_leftovers=await leftovers(places, erased(entries, memories, operations)),
    )


async def _of_tenant(addresses: Sequence[str], key: str, tenant: int, entries: Sequence[Entry]) -> FinalState:
    own = [entry for entry in entries if entry.tenant == tenant and not entry.asked.get("foreign")]
    observer = _Observer(addresses, key, tenant)
    memories = await observer.memories(sorted({entry.asked["ns"] for entry in own if entry.asked.get("ns")}))
    operations = await observer.operations(dict.fromkeys(entry.told.get("operation", "") for entry in own))
    reads = await observer.searches(_to_search(own, memories))
    await observer.close()
    return FinalState(memories=tuple(memories), operations=tuple(operations), reads=tuple(reads))


def _to_search(own: Sequence[Entry], seen: Sequence[FinalMemory]) -> list[tuple[str, str]]:
    """(namespace, marker) of some memories there and some not there any more, spread over the run."""
    there = [(memory.namespace, memory.marker) for memory in seen if memory.state == "ACTIVE"]
    names = {memory.marker for memory in seen if memory.state == "ACTIVE"}
    gone = [
        (entry.asked["ns"], entry.asked["marker"])
        for entry in own
        if entry.method == "write" and entry.asked["marker"] not in names
    ]
    return [*_spread(there), *_spread(gone)]


def _spread(items: Sequence[tuple[str, str]]) -> Sequence[tuple[str, str]]:
    return items[:: len(items) // SAMPLE + 1]


def erased(
    entries: Sequence[Entry], memories: Iterable[FinalMemory], operations: Iterable[FinalOperation]
) -> list[str]:
    """Markers of all that was said only by memories whose erasure was acknowledged.

    A queued write says in the end what its operation made, of which the answer tells the id alone.
    """
    hard = {entry.asked["id"] for entry in entries if _erases(entry)}
    said: dict[str, set[str]] = defaultdict(set)
    queued = {entry.told["operation"]: entry.asked["marker"] for entry in entries if _queues(entry)}
    made = [(entry.asked["operation"], entry.told.get("id")) for entry in entries if entry.method == "operation"]
    for name, memory_id in (*made, *((each.name, each.memory_id) for each in operations)):
        if memory_id and name in queued:
            said[queued[name]].add(memory_id)
    for entry in entries:
        if entry.method in {"write", "update", "operation"} and entry.told.get("id"):
            for word in entry.told.get("markers", ()):
                said[word].add(entry.told["id"])
        for memory_id, _, word, _ in entry.told.get("hits", ()):
            said[word].add(memory_id)
    there = {memory.marker for memory in memories}
    return sorted(word for word, ids in said.items() if ids <= hard and word not in there)


def _queues(entry: Entry) -> bool:
    return entry.method == "write" and bool(entry.told.get("operation"))


def _erases(entry: Entry) -> bool:
    return entry.method == "forget" and entry.code == "OK" and entry.asked["mode"] == "HARD"


class _Observer:
    """Reads everything of one tenant, patiently."""

    def __init__(self, addresses: Sequence[str], api_key: str, tenant: int):
        self._connections = [Connection([address], api_key, 0) for address in addresses]
        self._tenant = tenant
        self._count = 0

    async def memories(self, namespaces: Iterable[str]) -> list[FinalMemory]:
        """Those of the namespaces, in every state that may be listed."""
        found: list[FinalMemory] = []
        for namespace in namespaces:
            token, more = "", True
            while more:
                request = pb.ListMemoriesRequest(
                    namespace=namespace, states=STATES, page_size=PAGE_SIZE, page_token=token
                )
                page = (await self._ask(request)).response
                found += [self._final(memory) for memory in page.memories]
                token = page.next_page_token
                more = bool(token)
        return found

    def _final(self, memory: memory_pb2.Memory) -> FinalMemory:
        words = markers_in(memory.content)
        return FinalMemory(
            id=memory.id,
            tenant=self._tenant,
            namespace=memory.namespace,
            subject=memory.subject_id,
            kind=memory_pb2.Kind.Name(memory.kind).removeprefix("KIND_"),
            state=state_name(memory.state),
            version=memory.version,
            marker=words[0] if words else "",
            fact_key=memory.fact_key,
        )

    async def operations(self, names: Iterable[str]) -> list[FinalOperation]:
        """How the queued writes of these names ended."""
        return [await self._operation(name) for name in names if name]

    async def _operation(self, name: str) -> FinalOperation:
        answer = await self._ask(operations_pb2.GetOperationRequest(name=name), good=("OK", "NOT_FOUND"))
        told = answer.told
        if answer.code == "NOT_FOUND":
            return FinalOperation(name=name, done=False, code="NOT_FOUND")
        return FinalOperation(
            name=name,
            done=told["done"],
            code=told["error"],
            memory_id=told.get("id", ""),
            action=told.get("action", ""),
            state=told.get("state", ""),
        )

    async def searches(self, wanted: Iterable[tuple[str, str]]) -> list[Entry]:
        """What each data plane answers to the texts of (namespace, marker)."""
        entries: list[Entry] = []
        for namespace, word in wanted:
            request = pb.SearchMemoriesRequest(namespace=namespace, query=sentence(word))
            for connection in self._connections:
                answer = await connection.attempt(request, DEADLINE_S)
                entries.append(self._entry(answer, {"ns": namespace, "marker": word, "token": ""}))
        return entries

    def _entry(self, answer: Answer, asked: dict[str, Any]) -> Entry:
        self._count += 1
        return Entry(
            client=OBSERVER,
            tenant=self._tenant,
            intent=self._count + 1_000_000 * self._tenant,
            method="search",
            start_s=answer.start_s,
            end_s=answer.end_s,
            deadline_s=DEADLINE_S,
            code=answer.code,
            asked=asked,
            told=answer.told,
        )

    async def _ask(self, request: Message, good: Sequence[str] = ("OK",)) -> Answer:
        for attempt in range(TRIES):
            answer = await self._connections[attempt % len(self._connections)].attempt(request, DEADLINE_S)
            if answer.code in good:
                return answer
            await asyncio.sleep(PAUSE_S)
        raise AssertionError(f"after {TRIES} tries {answer.code} {answer.told}")

    async def close(self) -> None:
        for connection in self._connections:
            await connection.close()
