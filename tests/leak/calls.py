"""A generator of random requests for every RPC of every service of the data plane, by its full name.

A test compares the names with the services' descriptors: an RPC without a generator fails it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from google.longrunning import operations_pb2
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from memplane.v1 import maintenance_service_pb2 as upkeep
from memplane.v1 import memory_pb2
from memplane.v1 import memory_service_pb2 as pb
from tests.integration.harness import NOW_US
from tests.leak.draws import TOPICS, Draws
from tests.leak.world import FORGET, MAINTENANCE, READ, REVIEW, SHARE, WRITE, Principal

MEMORY, UPKEEP, OPERATIONS = (
    "memplane.v1.MemoryService",
    "memplane.v1.MaintenanceService",
    "google.longrunning.Operations",
)
SERVICES = {
    MEMORY: pb.DESCRIPTOR.services_by_name["MemoryService"],
    UPKEEP: upkeep.DESCRIPTOR.services_by_name["MaintenanceService"],
    OPERATIONS: operations_pb2.DESCRIPTOR.services_by_name["Operations"],
}
"""The services that a data plane offers, but for health and reflection, which know nothing of memories."""

Need = tuple[str, str | None]
"""A permission, and the namespace on which it is needed."""


@dataclass(frozen=True)
class Asked:
    """A request of somebody. `needs`: what he must have, all of it; `any_of`: at least one of these namespaces.

    `method`: `SERVICE/METHOD`. `plants`: the namespaces into which its markers may come, each with the part of the
    request that goes there.
    """

    method: str
    principal: Principal
    request: Message
    needs: tuple[Need, ...] = ()
    any_of: tuple[str, ...] = ()
    plants: tuple[tuple[str, Message], ...] = ()


Generator = Callable[[Draws, Principal], Asked]


def names_of_rpcs() -> Iterator[str]:
    """Every RPC of the services, by its full name."""
    return (f"{name}/{method.name}" for name, service in SERVICES.items() for method in service.methods)


def draft(draws: Draws, principal: Principal) -> pb.WriteMemoryRequest:
    """A memory proposed, with a marker in each of its texts."""
    words, draw = draws.words, draws.random
    topic = draw.choice(TOPICS)
    request = pb.WriteMemoryRequest(
        namespace=draws.of(principal),
        content=f"The {topic} {words.marker()} is beside the {words.marker()}",
        kind=memory_pb2.Kind.ValueType(draw.randrange(8)),
        layer_hint=memory_pb2.Layer.ValueType(draw.choice((0, 0, 1, 3, 4))),
        subject_id=draw.choice(("", "customer-1", words.marker())),
        session_id=words.marker(),
        speaker=words.marker(),
        category=draw.choice(("", words.marker())),
        tags=[words.marker(), topic],
        metadata=draws.struct(),
        structured=draws.struct(),
        agent_id=words.marker(),
        source_id=words.marker(),
        entity_type=words.marker(),
        request_id=draws.request_id(principal),
        pool=memory_pb2.POOL_SHARED if draws.chance(0.2) else memory_pb2.POOL_PRIVATE,
        delivery=pb.DELIVERY_QUEUED if draws.chance(0.15) else pb.DELIVERY_SYNC,
        validate_only=draws.chance(0.05),
    )
    request.source.CopyFrom(memory_pb2.Source(ref=words.marker(), operator_id=words.marker()))
    if draws.chance(0.3):
        request.fact_key = draw.choice(("customer-1/drink", words.marker()))
    if draws.chance(0.1):  # what both tenants say, word for word
        request.content = f"Everybody knows where the {topic} is"
    return request


def _write_needs(request: pb.WriteMemoryRequest) -> tuple[Need, ...]:
    share = ((SHARE, request.namespace),) if request.pool == memory_pb2.POOL_SHARED else ()
    return ((WRITE, request.namespace), *share)


def write(draws: Draws, principal: Principal) -> Asked:
    """WriteMemory."""
    request = draft(draws, principal)
    plants = ((request.namespace, request),)
    return Asked(f"{MEMORY}/WriteMemory", principal, request, _write_needs(request), plants=plants)


def batch(draws: Draws, principal: Principal) -> Asked:
    """BatchWriteMemories."""
    drafts = [draft(draws, principal) for _ in range(draws.random.randrange(1, 6))]
    plants = tuple((each.namespace, each) for each in drafts)
    return Asked(
        f"{MEMORY}/BatchWriteMemories", principal, pb.BatchWriteMemoriesRequest(requests=drafts), plants=plants
    )


def question(draws: Draws, principal: Principal) -> pb.SearchMemoriesRequest:
    """A search with everything that a search can have."""
    draw = draws.random
    request = pb.SearchMemoriesRequest(
        namespace=draws.of(principal) if draws.chance(0.9) else "",
        namespaces=[draws.of(principal) for _ in range(draw.randrange(4))] if draws.chance(0.3) else [],
        include_shared=draws.chance(0.4),
        query=draws.query(),
        subject_id=draw.choice(("", "", "", "customer-1")),
        top_k=draw.choice((0, 1, 5, 50)),
        context_turns=[draws.query()] if draws.chance(0.1) else [],
        task_type=draws.words.marker() if draws.chance(0.1) else "",
        at_least_as_fresh=draws.consistency_token(),
        include_cold=draws.chance(0.2),
        explain=draws.chance(0.3),
    )
    request.layers.extend(memory_pb2.Layer.ValueType(each) for each in draws.names((1, 2, 3, 4)))
    request.kinds.extend(memory_pb2.Kind.ValueType(each) for each in draws.names((1, 2, 3, 4, 5, 6, 7)))
    if draws.chance(0.3):
        request.filter.CopyFrom(draws.filter())
    if draws.chance(0.15):
        request.as_of.CopyFrom(Timestamp(seconds=NOW_US // 1_000_000 + draw.randrange(-9, 400)))
    if draws.chance(0.5):
        request.record_access = False
    return request


def _places(request: pb.SearchMemoriesRequest) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*((request.namespace,) if request.namespace else ()), *request.namespaces)))


def search(draws: Draws, principal: Principal) -> Asked:
    """SearchMemories; often the same question as somebody asked before, word for word."""
    request = question(draws, principal)
    asked = [each for name, each in draws.seen.asked if name.endswith("SearchMemories")]
    if asked and draws.chance(0.4):
        request = pb.SearchMemoriesRequest.FromString(draws.random.choice(asked[-20:]))
    return Asked(f"{MEMORY}/SearchMemories", principal, request, any_of=_places(request))


def context(draws: Draws, principal: Principal) -> Asked:
    """GetContext."""
    request = pb.GetContextRequest(search=question(draws, principal), token_budget=draws.random.choice((0, 64, 2000)))
    return Asked(f"{MEMORY}/GetContext", principal, request, any_of=_places(request.search))


def get(draws: Draws, principal: Principal) -> Asked:
    """GetMemory."""
    namespace = draws.of(principal)
    version = draws.random.choice((0, 0, 1, 2, 7))
    request = pb.GetMemoryRequest(namespace=namespace, id=draws.memory_id(namespace), version=version)
    return Asked(f"{MEMORY}/GetMemory", principal, request, ((READ, namespace),))


def listing(draws: Draws, principal: Principal) -> Asked:
    """ListMemories."""
    draw, method = draws.random, f"{MEMORY}/ListMemories"
    request = pb.ListMemoriesRequest(
        namespace=draws.of(principal),
        subject_id=draw.choice(("", "", "customer-1")),
        page_size=draw.choice((0, 1, 2, 7, 1000)),
    )
    request.layers.extend(memory_pb2.Layer.ValueType(each) for each in draws.names((1, 2, 3, 4)))
    request.kinds.extend(memory_pb2.Kind.ValueType(each) for each in draws.names((1, 2, 3, 4, 5, 6, 7)))
    request.states.extend(memory_pb2.State.ValueType(each) for each in draws.names((1, 2, 3, 4, 5, 6), 3))
    if draws.chance(0.3):
        request.filter.CopyFrom(draws.filter())
    request.page_token = draws.page_token(method)
    page = draws.next_page(method, principal)
    if page is not None:
        asked, token = page
        request = pb.ListMemoriesRequest.FromString(asked)
        request.page_token = token
    return Asked(method, principal, request, listing_needs(request))


def listing_needs(request: pb.ListMemoriesRequest) -> tuple[Need, ...]:
    """What a list asks for, by its states."""
    needs: list[Need] = [(READ, request.namespace)]
    if memory_pb2.STATE_SOFT_DELETED in request.states:
        needs.append((FORGET, request.namespace))
    if {memory_pb2.STATE_PENDING_REVIEW, memory_pb2.STATE_QUARANTINED} & set(request.states):
        needs.append((REVIEW, request.namespace))
    return tuple(needs)


def update(draws: Draws, principal: Principal) -> Asked:
    """UpdateMemory."""
    draw, namespace = draws.random, draws.of(principal)
    memory = memory_pb2.Memory(
        namespace=namespace,
        id=draws.memory_id(namespace),
        content=f"The {draw.choice(TOPICS)} {draws.words.marker()} was moved",
        tags=[draws.words.marker()],
        metadata=draws.struct(),
        category=draws.words.marker(),
        kind=memory_pb2.Kind.ValueType(draw.randrange(1, 8)),
        sensitivity=memory_pb2.Sensitivity.ValueType(draw.randrange(5)),
    )
    fields = ("content", "tags", "metadata", "category", "kind", "sensitivity", "sensitivity")
    request = pb.UpdateMemoryRequest(memory=memory, reason=draws.words.marker())
    request.update_mask.paths.extend(sorted(set(draw.sample(fields, 2))))
    request.etag, request.request_id = draw.choice(("", "", "v1", "v9")), draws.request_id(principal)
    plants = ((namespace, request),)
    return Asked(f"{MEMORY}/UpdateMemory", principal, request, ((WRITE, namespace),), plants=plants)


def forget(draws: Draws, principal: Principal) -> Asked:
    """ForgetMemory."""
    namespace = draws.of(principal)
    request = pb.ForgetMemoryRequest(
        namespace=namespace,
        id=draws.memory_id(namespace),
        mode=draws.random.choice((pb.FORGET_MODE_UNSPECIFIED, pb.FORGET_MODE_SOFT, pb.FORGET_MODE_HARD)),
        etag=draws.random.choice(("", "", "", "v1", "v8")),
        reason=draws.words.marker(),
        request_id=draws.request_id(principal),
    )
    return Asked(f"{MEMORY}/ForgetMemory", principal, request, ((FORGET, namespace),), plants=((namespace, request),))


def versions(draws: Draws, principal: Principal) -> Asked:
    """ListMemoryVersions."""
    namespace, method = draws.of(principal), f"{MEMORY}/ListMemoryVersions"
    request = pb.ListMemoryVersionsRequest(namespace=namespace, id=draws.memory_id(namespace))
    request.page_size, request.page_token = draws.random.choice((0, 1, 2)), draws.page_token(method)
    return Asked(method, principal, request, ((READ, namespace),))


def _upkeep(name: str, make: Callable[[Draws], Message]) -> Generator:
    def generate(draws: Draws, principal: Principal) -> Asked:
        return Asked(f"{UPKEEP}/{name}", principal, make(draws), ((MAINTENANCE, None),))

    return generate


def _kind(draws: Draws) -> upkeep.IndexKind.ValueType:
    return upkeep.IndexKind.ValueType(draws.random.randrange(3))


def _operations(name: str, make: Callable[[Draws], Message]) -> Generator:
    def generate(draws: Draws, principal: Principal) -> Asked:
        return Asked(f"{OPERATIONS}/{name}", principal, make(draws))

    return generate


def _listed(draws: Draws) -> Message:
    token = draws.page_token(f"{OPERATIONS}/ListOperations")
    return operations_pb2.ListOperationsRequest(page_size=draws.random.choice((0, 1, 2)), page_token=token)


def _waiting(draws: Draws) -> Message:
    request = operations_pb2.WaitOperationRequest(name=draws.operation())
    request.timeout.FromMilliseconds(draws.random.randrange(20))
    return request


GENERATORS: Mapping[str, Generator] = {
    f"{MEMORY}/WriteMemory": write,
    f"{MEMORY}/BatchWriteMemories": batch,
    f"{MEMORY}/SearchMemories": search,
    f"{MEMORY}/GetContext": context,
    f"{MEMORY}/GetMemory": get,
    f"{MEMORY}/ListMemories": listing,
    f"{MEMORY}/UpdateMemory": update,
    f"{MEMORY}/ForgetMemory": forget,
    f"{MEMORY}/ListMemoryVersions": versions,
    f"{UPKEEP}/CheckIndexes": _upkeep(
        "CheckIndexes", lambda draws: upkeep.CheckIndexesRequest(index=_kind(draws), full=draws.chance(0.5))
    ),
    f"{UPKEEP}/Reindex": _upkeep("Reindex", lambda draws: upkeep.ReindexRequest(index=_kind(draws), repair_only=True)),
    f"{UPKEEP}/ListDeadLetters": _upkeep(
        "ListDeadLetters", lambda draws: upkeep.ListDeadLettersRequest(index=_kind(draws), page_size=1)
    ),
    f"{UPKEEP}/ReplayDeadLetters": _upkeep(
        "ReplayDeadLetters", lambda _: upkeep.ReplayDeadLettersRequest(index_name="text_index")
    ),
    f"{UPKEEP}/ListSetAsideWrites": _upkeep(
        "ListSetAsideWrites", lambda _: upkeep.ListSetAsideWritesRequest(page_size=2)
    ),
    f"{UPKEEP}/ReplaySetAsideWrites": _upkeep("ReplaySetAsideWrites", lambda _: upkeep.ReplaySetAsideWritesRequest()),
    f"{OPERATIONS}/ListOperations": _operations("ListOperations", _listed),
    f"{OPERATIONS}/GetOperation": _operations(
        "GetOperation", lambda draws: operations_pb2.GetOperationRequest(name=draws.operation())
    ),
    f"{OPERATIONS}/WaitOperation": _operations("WaitOperation", _waiting),
    f"{OPERATIONS}/CancelOperation": _operations(
        "CancelOperation", lambda draws: operations_pb2.CancelOperationRequest(name=draws.operation())
    ),
    f"{OPERATIONS}/DeleteOperation": _operations(
        "DeleteOperation", lambda draws: operations_pb2.DeleteOperationRequest(name=draws.operation())
    ),
}

_SHARES: Mapping[str, int] = {"WriteMemory": 8, "BatchWriteMemories": 2, "SearchMemories": 14, "GetContext": 5} | {
    "GetMemory": 5, "ListMemories": 7, "UpdateMemory": 5, "ForgetMemory": 4, "ListMemoryVersions": 4
}  # fmt: skip


def drawn(draws: Draws, principal: Principal) -> Asked:
    """A call at random; the more frequent ones are those that hold content. Some are made again, word for word."""
    again = draws.seen.made[principal.name]
    if again and draws.chance(0.08):
        return draws.random.choice(again)
    methods: Sequence[str] = tuple(GENERATORS)
    shares = [_SHARES.get(name.rpartition("/")[2], 1) for name in methods]
    return GENERATORS[draws.random.choices(methods, shares)[0]](draws, principal)
