"""Pairs of calls that must look alike: one asks for what is there and not one's own, the other for what is nowhere."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import grpc
from google.longrunning import operations_pb2
from google.protobuf.message import Message

from memplane.v1 import memory_pb2
from memplane.v1 import memory_service_pb2 as pb
from tests.leak.calls import MEMORY, OPERATIONS
from tests.leak.draws import Draws
from tests.leak.line import Answer, Line
from tests.leak.truth import Truth
from tests.leak.world import FORGET, READ, WRITE, Principal


@dataclass(frozen=True)
class Twins:
    """Two requests for one method. `hide`: the names in which they differ."""

    what: str
    method: str
    principal: Principal
    there: Message
    nowhere: Message
    hide: tuple[str, ...]


@dataclass(frozen=True)
class Target:
    """A method that names a memory, and the permission that it needs."""

    method: str
    permission: str
    make: Callable[[str, str], Message]


def _update(namespace: str, memory_id: str) -> Message:
    request = pb.UpdateMemoryRequest(memory=memory_pb2.Memory(namespace=namespace, id=memory_id, category="c"))
    request.update_mask.paths.append("category")
    return request


TARGETS = (
    Target("GetMemory", READ, lambda namespace, each: pb.GetMemoryRequest(namespace=namespace, id=each)),
    Target("GetMemory", READ, lambda namespace, each: pb.GetMemoryRequest(namespace=namespace, id=each, version=1)),
    Target("GetMemory", READ, lambda namespace, each: pb.GetMemoryRequest(namespace=namespace, id=each, version=99)),
    Target("ListMemoryVersions", READ, lambda place, each: pb.ListMemoryVersionsRequest(namespace=place, id=each)),
    Target("UpdateMemory", WRITE, _update),
    Target("ForgetMemory", FORGET, lambda namespace, each: pb.ForgetMemoryRequest(namespace=namespace, id=each)),
    Target(
        "ForgetMemory",
        FORGET,
        lambda place, each: pb.ForgetMemoryRequest(namespace=place, id=each, etag="v1", mode=pb.FORGET_MODE_HARD),
    ),
)

PLACES: Sequence[tuple[str, Callable[[str], Message]]] = (
    ("SearchMemories", lambda place: pb.SearchMemoriesRequest(namespace=place, query="ladder")),
    ("SearchMemories", lambda place: pb.SearchMemoriesRequest(namespaces=[place], query="x", include_shared=True)),
    ("GetContext", lambda place: pb.GetContextRequest(search=pb.SearchMemoriesRequest(namespace=place, query="x"))),
    ("ListMemories", lambda place: pb.ListMemoriesRequest(namespace=place)),
    ("WriteMemory", lambda place: pb.WriteMemoryRequest(namespace=place, content="x", validate_only=True)),
    (
        "BatchWriteMemories",
        lambda place: pb.BatchWriteMemoriesRequest(requests=[pb.WriteMemoryRequest(namespace=place)]),
    ),
)


def twins(draws: Draws, principal: Principal) -> Iterator[Twins]:
    """One pair of each sort, as far as there is something to ask for."""
    yield from _elsewhere(draws, principal)
    yield from _unreadable(draws, principal)
    yield from _places(draws, principal)
    yield from _operations(draws, principal)


def _elsewhere(draws: Draws, principal: Principal) -> Iterator[Twins]:
    """A memory of another namespace, asked for in one of his own."""
    truth, namespace, target = draws.truth, draws.of(principal), draws.random.choice(TARGETS)
    others = [each for each, entry in truth.memories.items() if entry.namespace != namespace]
    if others:
        yield _pair("elsewhere", draws, principal, target, (namespace, draws.random.choice(others)))


def _unreadable(draws: Draws, principal: Principal) -> Iterator[Twins]:
    """A memory that he may not read, or not any more, asked for where it is."""
    truth, target = draws.truth, draws.random.choice(TARGETS)
    hidden = [each for each in truth.memories if _is_hidden(truth, principal, each, target)]
    if hidden:
        memory_id = draws.random.choice(hidden)
        yield _pair("unreadable", draws, principal, target, (truth.memories[memory_id].namespace, memory_id))


def _is_hidden(truth: Truth, principal: Principal, memory_id: str, target: Target) -> bool:
    entry = truth.memories[memory_id]
    if entry.gone == "HARD":
        return True
    if target.permission == READ:
        return not truth.sees_memory(principal, memory_id, forgotten_too=False)
    return not truth.world.may(principal, target.permission, entry.namespace)


def _pair(what: str, draws: Draws, principal: Principal, target: Target, place: tuple[str, str]) -> Twins:
    namespace, memory_id = place
    made_up = draws.words.memory_id()
    there, nowhere = target.make(namespace, memory_id), target.make(namespace, made_up)
    return Twins(what, f"{MEMORY}/{target.method}", principal, there, nowhere, (memory_id, made_up))


def _places(draws: Draws, principal: Principal) -> Iterator[Twins]:
    """A namespace that he has no right on, and one beside it that nothing ever was in."""
    world = draws.world
    closed = [
        name
        for name in world.namespaces
        if not any(world.may(principal, each, name) for each in (READ, WRITE, FORGET))
        and not any(world.may(principal, each, f"{name}-none") for each in (READ, WRITE, FORGET))
    ]
    if closed:
        name, (method, make) = draws.random.choice(closed), draws.random.choice(PLACES)
        empty = f"{name}-none"
        yield Twins("place", f"{MEMORY}/{method}", principal, make(name), make(empty), (name, empty))


def _operations(draws: Draws, principal: Principal) -> Iterator[Twins]:
    """An operation of somebody else."""
    others = [name for name, owner in draws.truth.operations.items() if owner != principal.name]
    if not others:
        return
    name = draws.random.choice(others)
    made_up = draws.words.operation_like(name)
    for kind in ("GetOperation", "CancelOperation", "DeleteOperation"):
        make = getattr(operations_pb2, f"{kind}Request")
        yield Twins(
            "operation", f"{OPERATIONS}/{kind}", principal, make(name=name), make(name=made_up), (name, made_up)
        )


async def compare(pair: Twins, line: Line) -> str:
    """What tells them apart; "" for nothing."""
    key = pair.principal.key
    there = await line.send(pair.method, pair.there.SerializeToString(), key)
    nowhere = await line.send(pair.method, pair.nowhere.SerializeToString(), key)
    seen, expected = (_form(each, pair.hide) for each in (there, nowhere))
    if seen == expected:
        return ""
    asked = " ".join(str(pair.there).split())
    return f"{pair.what}: {pair.principal.name} {pair.method} {asked}: {seen!r} where nothing is: {expected!r}"


def _form(answer: Answer, hide: Sequence[str]) -> str:
    """All of an error; of an answer that stood in both cases its size alone matters, for its ids differ."""
    if answer.code is grpc.StatusCode.OK:
        return f"OK {[len(each) for each in answer.messages]}"
    return answer.plain(hide=hide)


async def borrowed_request_id(draws: Draws, principal: Principal, line: Line) -> str:
    """A write under a request_id that somebody else used there: it must be as good as a new one; "" if it is."""
    own = set(draws.seen.request_ids[principal.name])
    namespaces = [name for name in draws.seen.used if name and draws.world.may(principal, WRITE, name)]
    if not namespaces:
        return ""
    namespace = draws.random.choice(namespaces)
    strange = [each for name, each in draws.seen.used[namespace] if name != principal.name and each not in own]
    if not strange:
        return ""
    content = " ".join(draws.words.marker() for _ in range(6))
    request = pb.WriteMemoryRequest(namespace=namespace, content=content, request_id=draws.random.choice(strange))
    draws.truth.plant(namespace, request.SerializeToString())
    draws.truth.written_by(principal, request.SerializeToString())
    draws.seen.request_ids[principal.name].append(request.request_id)
    answer = await line.send(f"{MEMORY}/WriteMemory", request.SerializeToString(), principal.key)
    is_known = answer.code is grpc.StatusCode.ALREADY_EXISTS
    return f"request_id of others: {principal.name} {namespace}: {answer.told}" if is_known else ""
