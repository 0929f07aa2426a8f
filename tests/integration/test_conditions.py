"""Grants with conditions, through the service: who may touch some memories of a namespace touches no others."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import grpc
import pytest

from memplane.policy.access import hash_api_key
from memplane.v1 import memory_pb2 as mem
from memplane.v1 import memory_service_pb2 as pb
from tests.integration.faulty import faulty_plane
from tests.integration.harness import KEEP_ALL, Plane, as_user, running_plane, search, write

SPACE = "dept.sales"
READ, WRITE, FORGET = "memory.read", "memory.write", "memory.forget"


def grant(*permissions: str, **conditions: Any) -> Mapping[str, Any]:
    return {"namespace": "dept", "permissions": list(permissions), **conditions}


WHO: Mapping[str, Sequence[Mapping[str, Any]]] = {
    "facts": [grant(READ, FORGET, kinds=["FACT"])],
    "no-secrets": [
        grant(READ, WRITE, FORGET),
        grant("*", effect="deny", sensitivities=["RESTRICTED"]),
    ],
    "notes": [grant(READ, WRITE, FORGET, layers=["WORKING", "SHORT_TERM"])],
    "writes-facts": [grant(READ), grant(WRITE, FORGET, kinds=["FACT"])],
}
POLICY = {
    **KEEP_ALL,
    "rbac": {
        "principals": {
            name: {"api_key_sha256": [hash_api_key(f"mpk_{name}")], "grants": list(grants)}
            for name, grants in WHO.items()
        }
    },
}


@pytest.fixture
async def plane() -> AsyncIterator[Plane]:
    async with running_plane(policy=POLICY) as running:
        yield running


async def restricted(plane: Plane, memory: mem.Memory) -> mem.Memory:
    """The memory, made RESTRICTED."""
    memory.sensitivity = mem.SENSITIVITY_RESTRICTED
    request = pb.UpdateMemoryRequest(memory=memory)
    request.update_mask.paths.append("sensitivity")
    return (await plane.stub.UpdateMemory(request, metadata=as_user())).memory


async def contents(plane: Plane, who: str, query: str, **fields: Any) -> set[str]:
    request = pb.SearchMemoriesRequest(namespace=SPACE, query=query, top_k=20, **fields)
    answer = await plane.stub.SearchMemories(request, metadata=as_user(f"mpk_{who}"))
    return {hit.memory.content for hit in answer.hits}


async def listed(plane: Plane, who: str, page_size: int = 1, **fields: Any) -> list[str]:
    """The contents of all pages."""
    found, token = [], ""
    while True:
        request = pb.ListMemoriesRequest(namespace=SPACE, page_size=page_size, page_token=token, **fields)
        page = await plane.stub.ListMemories(request, metadata=as_user(f"mpk_{who}"))
        found += [memory.content for memory in page.memories]
        token = page.next_page_token
        if not token:
            return found


async def code_of(call: Any) -> grpc.StatusCode:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call
    return raised.value.code()


async def test_searches_lists_and_contexts_give_readable_memories_alone(plane: Plane) -> None:
    await write(plane, "the rate of Acme is 4 percent", kind=mem.KIND_FACT)
    await write(plane, "Acme likes letters on paper", kind=mem.KIND_PREFERENCE)
    assert await contents(plane, "facts", "Acme") == {"the rate of Acme is 4 percent"}
    assert await listed(plane, "facts") == ["the rate of Acme is 4 percent"]
    context = pb.GetContextRequest(search=pb.SearchMemoriesRequest(namespace=SPACE, query="Acme"))
    told = await plane.stub.GetContext(context, metadata=as_user("mpk_facts"))
    assert "4 percent" in told.context
    assert "letters" not in told.context


async def test_an_answer_that_one_principal_got_is_not_given_to_another(plane: Plane) -> None:
    await write(plane, "the rate of Acme is 4 percent", kind=mem.KIND_FACT)
    await write(plane, "Acme likes letters on paper", kind=mem.KIND_PREFERENCE)
    for _ in range(2):
        assert len((await search(plane, "Acme")).hits) == 2
        assert len(await contents(plane, "facts", "Acme")) == 1
        assert len(await contents(plane, "no-secrets", "Acme")) == 2


async def test_what_becomes_restricted_is_gone_for_whom_it_is_denied_also_in_the_past(plane: Plane) -> None:
    given = await write(plane, "the takeover of Acme is planned")
    before = plane.clock.now_us()
    plane.clock.forward(days=1)
    await restricted(plane, given.memory)
    as_of = {"as_of": mem.Memory().create_time}
    as_of["as_of"].FromMicroseconds(before)
    assert not await contents(plane, "no-secrets", "Acme")
    assert not await contents(plane, "no-secrets", "Acme", **as_of)
    assert await contents(plane, "writes-facts", "Acme", **as_of)
    assert not await listed(plane, "no-secrets")
    get = pb.GetMemoryRequest(namespace=SPACE, id=given.memory.id, version=1)
    assert await code_of(plane.stub.GetMemory(get, metadata=as_user("mpk_no-secrets"))) is grpc.StatusCode.NOT_FOUND


async def test_what_may_not_be_read_is_as_if_it_were_not_there(plane: Plane) -> None:
    given = await write(plane, "Acme likes letters on paper", kind=mem.KIND_PREFERENCE)
    for memory_id in (given.memory.id, "mem_nothing"):
        get = pb.GetMemoryRequest(namespace=SPACE, id=memory_id)
        assert await code_of(plane.stub.GetMemory(get, metadata=as_user("mpk_facts"))) is grpc.StatusCode.NOT_FOUND
        history = pb.ListMemoryVersionsRequest(namespace=SPACE, id=memory_id)
        call = plane.stub.ListMemoryVersions(history, metadata=as_user("mpk_facts"))
        assert await code_of(call) is grpc.StatusCode.NOT_FOUND
        forget = pb.ForgetMemoryRequest(namespace=SPACE, id=memory_id)
        assert (
            await code_of(plane.stub.ForgetMemory(forget, metadata=as_user("mpk_facts"))) is grpc.StatusCode.NOT_FOUND
        )


async def test_a_history_shows_readable_versions_alone(plane: Plane) -> None:
    given = await write(plane, "Acme likes letters on paper", kind=mem.KIND_PREFERENCE)
    request = pb.UpdateMemoryRequest(memory=given.memory)
    request.memory.kind = mem.KIND_FACT
    request.update_mask.paths.append("kind")
    await plane.stub.UpdateMemory(request, metadata=as_user())
    history = pb.ListMemoryVersionsRequest(namespace=SPACE, id=given.memory.id, page_size=1)
    page = await plane.stub.ListMemoryVersions(history, metadata=as_user("mpk_facts"))
    assert [version.memory.version for version in page.versions] == [2]
    old = pb.GetMemoryRequest(namespace=SPACE, id=given.memory.id, version=1)
    assert await code_of(plane.stub.GetMemory(old, metadata=as_user("mpk_facts"))) is grpc.StatusCode.NOT_FOUND


async def test_a_write_is_refused_by_the_kind_and_by_the_layer_that_the_gate_chose(plane: Plane) -> None:
    async def written(who: str, content: str, **fields: Any) -> pb.WriteMemoryResponse:
        request = pb.WriteMemoryRequest(namespace=SPACE, content=content, **fields)
        return await plane.stub.WriteMemory(request, metadata=as_user(f"mpk_{who}"))

    denied = grpc.StatusCode.PERMISSION_DENIED
    assert await code_of(written("writes-facts", "Acme likes paper", kind=mem.KIND_PREFERENCE)) is denied
    assert await code_of(written("notes", "remember: Acme pays late")) is denied
    assert not (await search(plane, "Acme")).hits
    kept = await written("notes", "Acme called", session_id="s1", layer_hint=mem.LAYER_WORKING)
    assert kept.memory.layer == mem.LAYER_WORKING


async def test_a_repeat_of_a_memory_that_one_may_not_write_is_refused_and_changes_nothing(plane: Plane) -> None:
    given = await write(plane, "remember: Acme pays late")
    assert given.memory.layer == mem.LAYER_LONG_TERM
    memory = await restricted(plane, given.memory)
    request = pb.WriteMemoryRequest(namespace=SPACE, content="remember: Acme pays late")
    call = plane.stub.WriteMemory(request, metadata=as_user("mpk_no-secrets"))
    assert await code_of(call) is grpc.StatusCode.PERMISSION_DENIED
    get = pb.GetMemoryRequest(namespace=SPACE, id=memory.id)
    stands = (await plane.stub.GetMemory(get, metadata=as_user())).memory
    assert (stands.version, stands.strength) == (memory.version, memory.strength)


async def test_a_change_is_refused_before_and_after(plane: Plane) -> None:
    fact = (await write(plane, "the rate of Acme is 4 percent", kind=mem.KIND_FACT)).memory
    wish = (await write(plane, "Acme likes letters on paper", kind=mem.KIND_PREFERENCE)).memory
    for memory in (fact, wish):
        request = pb.UpdateMemoryRequest(memory=memory)
        request.memory.kind = mem.KIND_PREFERENCE if memory is fact else mem.KIND_FACT
        request.update_mask.paths.append("kind")
        call = plane.stub.UpdateMemory(request, metadata=as_user("mpk_writes-facts"))
        assert await code_of(call) is grpc.StatusCode.PERMISSION_DENIED
    forget = pb.ForgetMemoryRequest(namespace=SPACE, id=wish.id, mode=pb.FORGET_MODE_HARD)
    call = plane.stub.ForgetMemory(forget, metadata=as_user("mpk_writes-facts"))
    assert await code_of(call) is grpc.StatusCode.PERMISSION_DENIED
    allowed = pb.ForgetMemoryRequest(namespace=SPACE, id=fact.id)
    await plane.stub.ForgetMemory(allowed, metadata=as_user("mpk_writes-facts"))


async def test_conditions_hold_while_the_record_store_is_down() -> None:
    async with faulty_plane(POLICY) as faulty:
        await write(faulty.plane, "the rate of Acme is 4 percent", kind=mem.KIND_FACT)
        await write(faulty.plane, "Acme likes letters on paper", kind=mem.KIND_PREFERENCE)
        faulty.cut_off("records")
        assert await contents(faulty.plane, "facts", "Acme") == {"the rate of Acme is 4 percent"}
        assert len((await search(faulty.plane, "Acme")).hits) == 2
