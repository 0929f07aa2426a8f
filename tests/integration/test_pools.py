"""The shared pool: who may change it, and that repeats neither share nor unshare behind anybody's back."""

from collections.abc import AsyncIterator

import grpc
import pytest

from memplane.policy.access import hash_api_key
from memplane.v1 import memory_pb2
from memplane.v1 import memory_service_pb2 as pb
from tests.integration.harness import Plane, as_user, contents, running_plane, search, write

WRITER_KEY = "mpk_00000002_writes-and-proposes-nothing"
SHARED = memory_pb2.POOL_SHARED
RBAC = {
    "roles": {"writer": {"grants": [{"namespace": "dept", "permissions": ["memory.read", "memory.write"]}]}},
    "principals": {"writer": {"api_key_sha256": [hash_api_key(WRITER_KEY)], "roles": ["writer"]}},
}


def policy(*, approval: bool) -> dict[str, object]:
    return {
        "write_policy": {"threshold": 0.0, "short_term_threshold": 0.0},
        "namespace_policy": {"shared_pool_approval": approval},
        "rbac": RBAC,
    }


@pytest.fixture
async def plane() -> AsyncIterator[Plane]:
    async with running_plane(policy=policy(approval=False)) as running:
        yield running


async def denied(call: grpc.aio.UnaryUnaryCall) -> bool:
    return await call.code() is grpc.StatusCode.PERMISSION_DENIED


async def test_a_shared_memory_is_found_from_below_when_asked_for(plane: Plane) -> None:
    await write(plane, "Visitors sign in at gate two", "dept.sales", pool=SHARED)
    await write(plane, "The sales safe code is 9", "dept.sales")
    below = "dept.sales.agent_a"
    assert contents(await search(plane, "gate code", below)) == []
    assert contents(await search(plane, "gate code", below, include_shared=True)) == ["Visitors sign in at gate two"]


async def test_proposing_and_changing_shared_memories_needs_its_permission(plane: Plane) -> None:
    user = as_user(WRITER_KEY)
    proposal = pb.WriteMemoryRequest(namespace="dept.sales", content="All is free", session_id="s", pool=SHARED)
    assert await denied(plane.stub.WriteMemory(proposal, metadata=user))
    shared = (await write(plane, "The gate opens at six", "dept.sales", pool=SHARED, fact_key="gate/opens")).memory
    changed = memory_pb2.Memory(namespace="dept.sales", id=shared.id, content="The gate never opens")
    update = pb.UpdateMemoryRequest(memory=changed)
    update.update_mask.paths.append("content")
    assert await denied(plane.stub.UpdateMemory(update, metadata=user))
    rival = pb.WriteMemoryRequest(
        namespace="dept.sales", content="The gate opens at nine", session_id="s", fact_key="gate/opens"
    )
    assert await denied(plane.stub.WriteMemory(rival, metadata=user))
    assert contents(await search(plane, "gate opens", "dept.sales")) == ["The gate opens at six"]


async def test_a_private_rewording_does_not_touch_the_shared_memory(plane: Plane) -> None:
    plane.use(
        policy(approval=False)
        | {"write_policy": {"threshold": 0.0, "short_term_threshold": 0.0, "dedup_similarity": 0.5}}
    )
    shared = (await write(plane, "The gate opens at six today", "dept.sales", pool=SHARED)).memory
    private = await write(plane, "Today the gate opens at six", "dept.sales")
    assert private.memory.id != shared.id
    kept = await plane.stub.GetMemory(pb.GetMemoryRequest(namespace="dept.sales", id=shared.id), metadata=as_user())
    assert (kept.memory.pool, kept.memory.content) == (SHARED, "The gate opens at six today")


async def test_sharing_what_is_already_kept_privately_shares_it(plane: Plane) -> None:
    first = (await write(plane, "The gate opens at six", "dept.sales")).memory
    second = (await write(plane, "The gate opens at six", "dept.sales", pool=SHARED)).memory
    assert (second.id, second.pool, second.version) == (first.id, SHARED, 2)
    third = (await write(plane, "The gate opens at six", "dept.sales")).memory
    assert (third.id, third.pool) == (first.id, SHARED)
    found = await search(plane, "gate opens", "dept.sales.agent_a", include_shared=True)
    assert contents(found) == ["The gate opens at six"]


async def test_with_approval_a_proposal_and_a_change_wait_for_a_person(plane: Plane) -> None:
    shared = (await write(plane, "The gate opens at six", "dept.sales", pool=SHARED)).memory
    plane.use(policy(approval=True), generation=2)
    proposal = await write(plane, "The canteen is closed", "dept.sales", pool=SHARED)
    assert proposal.decision.action == memory_pb2.DECISION_ACTION_PENDING_REVIEW
    changed = memory_pb2.Memory(namespace="dept.sales", id=shared.id, content="The gate opens at seven")
    update = pb.UpdateMemoryRequest(memory=changed)
    update.update_mask.paths.append("content")
    updated = await plane.stub.UpdateMemory(update, metadata=as_user())
    assert updated.memory.state == memory_pb2.STATE_PENDING_REVIEW
    assert contents(await search(plane, "gate canteen", "dept.sales")) == []
