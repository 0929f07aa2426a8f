"""Holds every answer against the truth: what stands in it, whose it is, and what its form betrays."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

import grpc
from google.longrunning import operations_pb2

from memplane.v1 import memory_pb2
from memplane.v1 import memory_service_pb2 as pb
from tests.leak.calls import MEMORY, OPERATIONS, Asked
from tests.leak.line import Answer
from tests.leak.truth import Truth
from tests.leak.words import MARKER, MEMORY_ID, OPERATION, unfolded
from tests.leak.world import ADMIN, READ, SHARE

OK, DENIED = grpc.StatusCode.OK, grpc.StatusCode.PERMISSION_DENIED
MOST_KEPT = 50


@dataclass
class Verdicts:
    """What was found, by sort; `checks` counts what was looked at, `shown` the markers rightly seen."""

    faults: Counter[str] = field(default_factory=Counter)
    told: list[str] = field(default_factory=list)
    checks: Counter[str] = field(default_factory=Counter)
    calls: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    shown: int = 0
    degraded: int = 0

    def report(self, sort: str, what: str) -> None:
        """Notes a fault."""
        self.faults[sort] += 1
        if len(self.told) < MOST_KEPT:
            self.told.append(f"{sort}: {what}")


class Judge:
    """Judges answers, one at a time."""

    def __init__(self, truth: Truth, verdicts: Verdicts):
        self._truth = truth
        self._verdicts = verdicts
        self._special: Mapping[str, Callable[[Asked, bytes], None]] = {
            f"{MEMORY}/SearchMemories": self._search,
            f"{MEMORY}/GetContext": self._context,
            f"{MEMORY}/ListMemories": self._list,
            f"{MEMORY}/ListMemoryVersions": self._versions,
            f"{MEMORY}/BatchWriteMemories": self._batch,
            f"{OPERATIONS}/ListOperations": self._operations,
        }

    def judge(self, asked: Asked, answer: Answer) -> None:
        """Everything that is to be said of an answer."""
        self._verdicts.calls[asked.method] += 1
        self._verdicts.codes[answer.code.name] += 1
        self._content(asked, answer)
        self._access(asked, answer)
        self._token(asked, answer)
        if answer.code is grpc.StatusCode.INTERNAL:
            self._fault("defect", asked, answer.told)
        special = self._special.get(asked.method)
        if answer.code is OK and special is not None:
            special(asked, answer.messages[0])

    def _content(self, asked: Asked, answer: Answer) -> None:
        request, everything = asked.request.SerializeToString(), unfolded(answer.everything)
        said = set(MARKER.findall(request))
        too = _shows_forgotten(asked)
        for marker in set(MARKER.findall(everything)) - said:
            self._verdicts.checks["markers"] += 1
            if self._truth.sees_marker(asked.principal, marker, forgotten_too=too):
                self._verdicts.shown += 1
            else:
                self._fault("marker", asked, f"{marker.decode()} of {self._places_of(marker)}")
        for memory_id in set(MEMORY_ID.findall(everything)) - set(MEMORY_ID.findall(request)):
            self._verdicts.checks["ids"] += 1
            name = memory_id.decode()
            if name in self._truth.memories and not self._truth.knows_id(asked.principal, name):
                self._fault("id", asked, f"{name} of {self._truth.memories[name].namespace}")
        for operation in set(OPERATION.findall(everything)) - set(OPERATION.findall(request)):
            owner = self._truth.operations.get(operation.decode())
            if owner not in (None, asked.principal.name) and asked.principal is not ADMIN:
                self._fault("operation", asked, f"{operation.decode()} of {owner}")

    def _places_of(self, marker: bytes) -> list[str]:
        ids = self._truth.holding.get(marker, set())
        return sorted({f"{each}@{self._truth.memories[each].namespace}" for each in ids}) or ["nowhere"]

    def _access(self, asked: Asked, answer: Answer) -> None:
        self._verdicts.checks["access"] += 1
        world, who = self._truth.world, asked.principal
        is_allowed = all(world.may(who, *need) for need in asked.needs)
        if asked.any_of:
            is_allowed = any(world.may(who, READ, name) for name in asked.any_of)
        if answer.code is OK and not is_allowed:
            self._fault("admitted", asked, "though he lacks a right")
        if answer.code is DENIED and is_allowed and not self._depends(asked, answer):
            self._fault("refused", asked, answer.told)

    def _depends(self, asked: Asked, answer: Answer) -> bool:
        """Whether what is stored matters, too: the memory that is updated, a shared one that is contested."""
        request = asked.request
        if isinstance(request, pb.WriteMemoryRequest):
            contests = bool(request.fact_key) and f"permission {SHARE} " in answer.told
            return contests and not self._truth.world.may(asked.principal, SHARE, request.namespace)
        return isinstance(request, pb.UpdateMemoryRequest)

    def _token(self, asked: Asked, answer: Answer) -> None:
        """A page token is good for the query that made it and for who asked, and for nothing else."""
        token = getattr(asked.request, "page_token", "")
        if not token or answer.code is not OK:
            return
        self._verdicts.checks["page tokens"] += 1
        if self._truth.pages.get(token) != (asked.principal.name, query_of(asked)):
            self._fault("token", asked, f"a page token of {self._truth.pages.get(token)} was taken")

    def _search(self, asked: Asked, message: bytes) -> None:
        response, request = pb.SearchMemoriesResponse.FromString(message), asked.request
        assert isinstance(request, pb.SearchMemoriesRequest)
        self._verdicts.degraded += bool(response.degraded)
        self._found(
            asked, [hit.memory.id for hit in response.hits], request.include_shared, response.omitted_namespaces
        )

    def _context(self, asked: Asked, message: bytes) -> None:
        response, request = pb.GetContextResponse.FromString(message), asked.request
        assert isinstance(request, pb.GetContextRequest)
        self._found(asked, response.memory_ids, request.search.include_shared, response.omitted_namespaces)

    def _found(self, asked: Asked, ids: Iterable[str], is_wide: bool, omitted: Iterable[str]) -> None:
        """Hits lie in the namespaces that were asked for, or are shared ones above; the others are named."""
        world, who = self._truth.world, asked.principal
        readable = [name for name in asked.any_of if world.may(who, READ, name)]
        above = {name for each in readable for name in _above(each)}
        for memory_id in ids:
            self._verdicts.checks["hits"] += 1
            entry = self._truth.memories.get(memory_id)
            is_shared = entry is not None and is_wide and entry.is_shared and entry.namespace in above
            if entry is None or not (entry.namespace in readable or is_shared):
                self._fault("hit", asked, f"{memory_id} of {entry.namespace if entry else 'nowhere'}")
            elif not self._truth.sees_memory(who, memory_id, forgotten_too=False):
                self._fault("hit", asked, f"{memory_id} of {entry.namespace} {self._truth.cell_of(memory_id)}")
        named, may_be = set(omitted), set(asked.any_of) | (above if is_wide else set())
        if not set(asked.any_of) - set(readable) <= named <= may_be:
            self._fault("omitted", asked, f"names {sorted(named)}")

    def _list(self, asked: Asked, message: bytes) -> None:
        response, request = pb.ListMemoriesResponse.FromString(message), asked.request
        assert isinstance(request, pb.ListMemoriesRequest)
        for memory in response.memories:
            self._verdicts.checks["rows"] += 1
            if memory.namespace != request.namespace:
                self._fault("row", asked, f"{memory.id} of {memory.namespace}")
            elif not self._truth.sees_memory(asked.principal, memory.id, forgotten_too=_shows_forgotten(asked)):
                self._fault("row", asked, f"{memory.id} {self._truth.cell_of(memory.id)}")
        self._page(asked, len(response.memories), request.page_size or 50, response.next_page_token)

    def _versions(self, asked: Asked, message: bytes) -> None:
        response, request = pb.ListMemoryVersionsResponse.FromString(message), asked.request
        assert isinstance(request, pb.ListMemoryVersionsRequest)
        for version in response.versions:
            self._verdicts.checks["rows"] += 1
            if version.memory.id != request.id or version.memory.namespace != request.namespace:
                self._fault("row", asked, f"{version.memory.id} of {version.memory.namespace}")
        self._page(asked, len(response.versions), request.page_size or 50, response.next_page_token)

    def _page(self, asked: Asked, rows: int, page_size: int, token: str) -> None:
        """A page that is short, but not the last, tells of rows in between."""
        self._verdicts.checks["pages"] += 1
        if token and rows != page_size:
            self._fault("page", asked, f"{rows} rows of {page_size}, and yet not the last page")

    def _batch(self, asked: Asked, message: bytes) -> None:
        response, request = pb.BatchWriteMemoriesResponse.FromString(message), asked.request
        assert isinstance(request, pb.BatchWriteMemoriesRequest)
        for draft, result in zip(request.requests, response.results, strict=True):
            self._verdicts.checks["access"] += 1
            needed = ("memory.write", "share.propose") if draft.pool == memory_pb2.POOL_SHARED else ("memory.write",)
            may = all(self._truth.world.may(asked.principal, each, draft.namespace) for each in needed)
            if result.HasField("response") and not may:
                self._fault("admitted", asked, f"a draft for {draft.namespace!r}")

    def _operations(self, asked: Asked, message: bytes) -> None:
        response, request = operations_pb2.ListOperationsResponse.FromString(message), asked.request
        assert isinstance(request, operations_pb2.ListOperationsRequest)
        self._page(asked, len(response.operations), request.page_size or 50, response.next_page_token)

    def _fault(self, sort: str, asked: Asked, what: str) -> None:
        request = " ".join(str(asked.request).split())[:400]
        self._verdicts.report(
            sort, f"round {self._truth.round}: {asked.principal.name} {asked.method}: {what} | {request}"
        )


def query_of(asked: Asked) -> bytes:
    """What a page token belongs to: the method, and the request but for its page."""
    copy = type(asked.request).FromString(asked.request.SerializeToString())
    for name in ("page_token", "page_size"):
        copy.ClearField(name)
    return asked.method.encode() + copy.SerializeToString(deterministic=True)


def _above(namespace: str) -> list[str]:
    labels = namespace.split(".")
    return [".".join(labels[:count]) for count in range(1, len(labels))]


def _shows_forgotten(asked: Asked) -> bool:
    """A list of forgotten ones; and the first answer to a request_id, which is given again."""
    if isinstance(asked.request, pb.ListMemoriesRequest):
        return memory_pb2.STATE_SOFT_DELETED in asked.request.states
    return isinstance(asked.request, pb.UpdateMemoryRequest | pb.WriteMemoryRequest | pb.BatchWriteMemoriesRequest)
