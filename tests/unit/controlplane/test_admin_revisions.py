"""DiffPolicySet and RollbackPolicySet over gRPC."""

from pathlib import Path
from typing import Any

import grpc
import pytest

from controlplane.documents import Document
from controlplane.reload import Command
from controlplane.revisions import Change, Revision
from memplane.v1 import policy_admin_service_pb2 as admin_pb2
from memplane.v1 import policy_pb2
from tests.unit.controlplane.parts import BROKEN, policy
from tests.unit.controlplane.serving import ADMIN, Serving, serving

RBAC = "rbac:\n  principals:\n    ann:\n      grants:\n      - {{namespace: dept.{}, permissions: [memory.read]}}\n"
SALES, HR = (RBAC.format(name).encode() for name in ("sales", "hr"))


def inline(*documents: Document) -> admin_pb2.InlineDocuments:
    made = [policy_pb2.PolicyDocument(name=each.name, content=each.content) for each in documents]
    return admin_pb2.InlineDocuments(documents=made)


async def diff(serving: Serving, **fields: Any) -> admin_pb2.DiffPolicySetResponse:
    return await serving.admin.DiffPolicySet(admin_pb2.DiffPolicySetRequest(**fields), metadata=ADMIN)


async def rollback(serving: Serving, generation: int, **fields: Any) -> admin_pb2.RollbackPolicySetResponse:
    request = admin_pb2.RollbackPolicySetRequest(generation=generation, **fields)
    return await serving.admin.RollbackPolicySet(request, metadata=ADMIN)


async def code_of(call: Any) -> grpc.StatusCode:
    with pytest.raises(grpc.aio.AioRpcError) as refused:
        await call
    return refused.value.code()


async def test_a_difference_has_values_and_accesses_with_their_place(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await served.reloader.reload(Command([Document("r.yaml", SALES)], "test"))
        response = await diff(served, inline=inline(Document("r.yaml", HR), *policy(9)))
        assert [(each.path, each.file, each.line) for each in response.values] == [
            ("rbac.principals.ann.grants[0]", "r.yaml", 5),
            ("retrieve_policy.top_k", "retrieve.yaml", 2),
        ]
        assert response.values[1].after.number_value == 9
        none, everything = policy_pb2.ACCESS_EXTENT_NONE, policy_pb2.ACCESS_EXTENT_ALL
        assert [(each.namespace, each.before, each.after) for each in response.accesses] == [
            ("dept.hr", none, everything),
            ("dept.sales", everything, none),
        ]
        assert (response.total_values, response.total_accesses) == (2, 2)
        assert list(response.shrinks) == ["removes 1 of 1 grants, over 20%"]


async def test_earlier_generations_can_be_compared(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        for top_k in (3, 4, 5):
            await served.put_in_force(top_k)
        back = await diff(served, generation=1)
        assert [(each.before.number_value, each.after.number_value) for each in back.values] == [(5, 3)]
        between = await diff(served, generation=2, base_generation=1)
        assert [(each.before.number_value, each.after.number_value) for each in between.values] == [(3, 4)]


async def test_a_broken_set_is_not_compared(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await served.put_in_force(3)
        response = await diff(served, inline=inline(*BROKEN))
        assert [each.code for each in response.diagnostics] == ["UNKNOWN_KEY"]
        assert response.total_diagnostics == 1
        assert not response.values


async def test_what_cannot_be_compared_is_told(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await served.put_in_force(3)
        invalid = grpc.StatusCode.INVALID_ARGUMENT
        assert await code_of(diff(served, generation=-1)) is invalid
        assert await code_of(diff(served, generation=1, inline=inline(*policy(3)))) is invalid
        assert await code_of(diff(served)) is invalid  # no folder here
        assert await code_of(diff(served, generation=7)) is grpc.StatusCode.NOT_FOUND
        assert await code_of(diff(served, generation=1, base_generation=2**62)) is grpc.StatusCode.NOT_FOUND
        await served.parts.store.write(Change(Revision(2, "sha256:x", 1, "ann", "", "rpc", tuple(BROKEN))))
        assert await code_of(diff(served, generation=1, base_generation=2)) is invalid


async def test_a_rollback_is_a_new_generation_with_the_old_documents(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        for top_k in (3, 4):
            await served.put_in_force(top_k)
        response = await rollback(served, 1, comment="4 was too many")
        assert response.accepted
        revision = response.revision
        assert (revision.generation, revision.origin, revision.comment) == (3, "rollback", "4 was too many")
        first, third = await served.parts.store.get(1), await served.parts.store.get(3)
        assert first is not None
        assert third is not None
        assert (third.documents, third.version) == (first.documents, first.version)
        assert (await rollback(served, 2)).revision.comment == "back to generation 2"


async def test_a_rollback_that_loses_grants_needs_allow_shrink(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await served.put_in_force(3)
        await served.reloader.reload(Command([Document("r.yaml", SALES)], "test"))
        assert await code_of(rollback(served, 1)) is grpc.StatusCode.FAILED_PRECONDITION
        assert (await rollback(served, 1, allow_shrink=True)).revision.generation == 3


async def test_a_rollback_to_what_this_build_refuses_changes_nothing_and_tells_why(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await served.parts.store.write(Change(Revision(1, "sha256:x", 1, "ann", "", "rpc", tuple(BROKEN))))
        await served.put_in_force(3)
        response = await rollback(served, 1)
        assert (response.accepted, response.revision.generation) == (False, 2)
        assert [each.code for each in response.diagnostics] == ["UNKNOWN_KEY"]


async def test_a_rollback_with_a_stale_etag_or_an_id_used_otherwise_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        for top_k in (3, 4):
            await served.put_in_force(top_k)
        assert await code_of(rollback(served, 1, etag="1-0000")) is grpc.StatusCode.ABORTED
        first = await rollback(served, 1, request_id="r")
        await served.put_in_force(5)
        assert (await rollback(served, 1, request_id="r")).revision == first.revision
        for refused in (rollback(served, 2, request_id="r"), rollback(served, 1, request_id="r", comment="other")):
            assert await code_of(refused) in (grpc.StatusCode.ALREADY_EXISTS, grpc.StatusCode.INVALID_ARGUMENT)
        assert served.parts.snapshots.target.generation == 4


@pytest.mark.parametrize(
    ("generation", "code"),
    [
        (0, grpc.StatusCode.INVALID_ARGUMENT),
        (-3, grpc.StatusCode.INVALID_ARGUMENT),
        (7, grpc.StatusCode.NOT_FOUND),
        (2**63 - 1, grpc.StatusCode.NOT_FOUND),
    ],
)
async def test_a_rollback_to_no_generation_is_refused(tmp_path: Path, generation: int, code: grpc.StatusCode) -> None:
    async with serving(tmp_path) as served:
        await served.put_in_force(3)
        assert await code_of(rollback(served, generation)) is code
        assert served.parts.snapshots.target.generation == 1


async def test_a_comment_with_a_nul_is_refused(tmp_path: Path) -> None:
    async with serving(tmp_path) as served:
        await served.put_in_force(3)
        assert await code_of(rollback(served, 1, comment="a\0b")) is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_thousand_violations_and_more_are_all_counted_and_come_in_the_body(tmp_path: Path) -> None:
    broken = "write_policy:\n" + "".join(f"  unknown_key_{number:05d}: 1\n" for number in range(5_000))
    set_ = inline(Document("a.yaml", broken.encode()))
    async with serving(tmp_path) as served:
        reloaded = await served.admin.ReloadPolicySet(admin_pb2.ReloadPolicySetRequest(inline=set_), metadata=ADMIN)
        checked = await served.admin.ValidatePolicySet(admin_pb2.ValidatePolicySetRequest(inline=set_), metadata=ADMIN)
        for answer in (reloaded, checked, await diff(served, inline=set_)):
            assert (len(answer.diagnostics), answer.total_diagnostics) == (1000, 5000)
            assert {each.code for each in answer.diagnostics} == {"UNKNOWN_KEY"}
            assert [each.line for each in answer.diagnostics] == list(range(2, 1002))
        assert not reloaded.accepted
        assert served.parts.snapshots.current is None
