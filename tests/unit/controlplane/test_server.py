import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf import duration_pb2
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from controlplane.documents import Document
from controlplane.reload import Command
from memplane.policy.access import hash_api_key
from memplane.v1 import policy_admin_service_pb2 as admin_pb2
from memplane.v1 import policy_pb2
from tests.deadline import eventually
from tests.unit.controlplane.parts import BROKEN, policy
from tests.unit.controlplane.serving import ADMIN, FOLDER_ERROR, Serving, serving

METHODS = admin_pb2.DESCRIPTOR.services_by_name["PolicyAdminService"].methods
SALES_READER = (("authorization", "Bearer mpk_sales-key"),)
RBAC = f"""
rbac:
  principals:
    sales:
      api_key_sha256: ["{hash_api_key("mpk_sales-key")}"]
      grants:
        - namespace: dept.sales
          permissions: [policy.read]
""".encode()


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[Serving]:
    async with serving(tmp_path) as running:
        yield running


def inline(documents: list[Document]) -> admin_pb2.InlineDocuments:
    return admin_pb2.InlineDocuments(
        documents=[policy_pb2.PolicyDocument(name=item.name, content=item.content) for item in documents]
    )


def reload_request(documents: list[Document], **fields: Any) -> admin_pb2.ReloadPolicySetRequest:
    return admin_pb2.ReloadPolicySetRequest(inline=inline(documents), **fields)


async def call(plane: Serving, method: str, request: Any = None, metadata: Any = ADMIN) -> Any:
    made = getattr(admin_pb2, f"{method}Request")() if request is None else request
    answer = getattr(plane.admin, method)(made, metadata=metadata)
    return await (answer.read() if hasattr(answer, "read") else answer)  # a stream's first message


async def failure(plane: Serving, method: str, request: Any = None, metadata: Any = ADMIN) -> grpc.aio.AioRpcError:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await call(plane, method, request, metadata)
    return raised.value


def fields_of(error: grpc.aio.AioRpcError) -> list[str]:
    """The fields that BadRequest names."""
    status = rpc_status.from_call(error)  # type: ignore[arg-type]  # the stubs want a sync call's error
    assert status is not None
    bad = error_details_pb2.BadRequest()
    for detail in status.details:
        if detail.Is(bad.DESCRIPTOR):
            detail.Unpack(bad)
    return [violation.field for violation in bad.field_violations]


@pytest.mark.parametrize("method", [method.name for method in METHODS])
@pytest.mark.parametrize(
    "metadata",
    [
        (),
        (("authorization", "Bearer wrong"),),
        (("authorization", "Basic mpk_admin-key"),),
        (("x-api-key", "mpk_admin-key"),),
    ],
    ids=["no credentials", "wrong key", "wrong scheme", "wrong header"],
)
async def test_no_method_answers_without_a_known_key(plane: Serving, method: str, metadata: Any) -> None:
    assert (await failure(plane, method, metadata=metadata)).code() == grpc.StatusCode.UNAUTHENTICATED


@pytest.mark.parametrize("method", [method.name for method in METHODS])
async def test_no_method_is_open_to_a_grant_on_a_subtree(plane: Serving, method: str) -> None:
    await plane.reloader.reload(Command([Document("r.yaml", RBAC)], "test"))
    assert (await failure(plane, method, metadata=SALES_READER)).code() == grpc.StatusCode.PERMISSION_DENIED


async def test_the_effective_policy_is_open_to_a_grant_on_its_namespace_only(plane: Serving) -> None:
    await plane.reloader.reload(Command([Document("r.yaml", RBAC)], "test"))
    own = admin_pb2.GetEffectivePolicyRequest(namespace="dept.sales.agent_a")
    assert (await call(plane, "GetEffectivePolicy", own, SALES_READER)).values
    sibling = admin_pb2.GetEffectivePolicyRequest(namespace="dept.salesforce")
    denied = await failure(plane, "GetEffectivePolicy", sibling, SALES_READER)
    assert denied.code() == grpc.StatusCode.PERMISSION_DENIED


async def test_an_unknown_method_is_not_offered(plane: Serving) -> None:
    unknown: Any = plane.channel.unary_unary("/memplane.v1.PolicyAdminService/OpenAllDoors")
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await unknown(b"", metadata=ADMIN)
    assert raised.value.code() == grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize(
    ("method", "request_message", "field"),
    [
        ("ReloadPolicySet", admin_pb2.ReloadPolicySetRequest(), "inline"),
        ("ReloadPolicySet", reload_request([]), "inline.documents"),
        ("ValidatePolicySet", admin_pb2.ValidatePolicySetRequest(inline=inline([])), "inline.documents"),
        ("ReloadPolicySet", reload_request(policy(7), request_id="x" * 129), "request_id"),
        ("ReloadPolicySet", reload_request(policy(7), comment="记" * 342), "comment"),
        (
            "ReloadPolicySet",
            reload_request(policy(7), wait_for_acks=duration_pb2.Duration(seconds=61)),
            "wait_for_acks",
        ),
        (
            "ReloadPolicySet",
            reload_request(policy(7), wait_for_acks=duration_pb2.Duration(seconds=-1)),
            "wait_for_acks",
        ),
        ("GetPolicySetRevision", admin_pb2.GetPolicySetRevisionRequest(generation=-1), "generation"),
        ("ListPolicySetRevisions", admin_pb2.ListPolicySetRevisionsRequest(page_size=-1), "page_size"),
        ("ListPolicySetRevisions", admin_pb2.ListPolicySetRevisionsRequest(page_size=1001), "page_size"),
        ("ListPolicySetRevisions", admin_pb2.ListPolicySetRevisionsRequest(page_token="made up"), "page_token"),
        ("ListDataPlaneStatuses", admin_pb2.ListDataPlaneStatusesRequest(page_size=1001), "page_size"),
        ("ListDataPlaneStatuses", admin_pb2.ListDataPlaneStatusesRequest(page_token="\u200b"), "page_token"),
        ("GetEffectivePolicy", admin_pb2.GetEffectivePolicyRequest(), "namespace"),
        ("GetEffectivePolicy", admin_pb2.GetEffectivePolicyRequest(namespace="Dept/Sales"), "namespace"),
    ],
)
async def test_bad_input_is_refused_and_its_field_named(
    plane: Serving, method: str, request_message: Any, field: str
) -> None:
    error = await failure(plane, method, request_message)
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert fields_of(error) == [field]
    assert plane.parts.snapshots.current is None


@pytest.mark.parametrize("method", [method.name for method in METHODS])
async def test_bytes_that_are_no_message_are_refused_and_nothing_leaks(plane: Serving, method: str) -> None:
    garbage: Any = plane.channel.unary_unary(f"/memplane.v1.PolicyAdminService/{method}")
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await garbage(b"\xff\xff\xff", metadata=ADMIN)
    assert raised.value.code() == grpc.StatusCode.INVALID_ARGUMENT
    assert fields_of(raised.value) == ["request"]
    assert "DecodeError" not in str(raised.value.details())


async def test_a_token_of_one_list_is_no_token_of_the_other(plane: Serving) -> None:
    for top_k in (1, 2):
        await plane.put_in_force(top_k)
    page = await call(plane, "ListPolicySetRevisions", admin_pb2.ListPolicySetRevisionsRequest(page_size=1))
    request = admin_pb2.ListDataPlaneStatusesRequest(page_token=page.next_page_token)
    assert fields_of(await failure(plane, "ListDataPlaneStatuses", request)) == ["page_token"]


async def test_pages_of_revisions_go_back_to_the_first(plane: Serving) -> None:
    for top_k in range(1, 6):
        await plane.put_in_force(top_k)
    seen: list[int] = []
    request = admin_pb2.ListPolicySetRevisionsRequest(page_size=2)
    while True:
        page = await call(plane, "ListPolicySetRevisions", request)
        seen += [revision.generation for revision in page.revisions]
        if not page.next_page_token:
            break
        request.page_token = page.next_page_token
    assert seen == [5, 4, 3, 2, 1]


async def test_pages_of_data_planes_follow_their_ids(plane: Serving) -> None:
    for name in ("b", "a", "c"):
        plane.parts.fleet.connect(policy_pb2.NodeInfo(node_id=name), plane.parts.fleet.target, 1)
    first = await call(plane, "ListDataPlaneStatuses", admin_pb2.ListDataPlaneStatusesRequest(page_size=2))
    request = admin_pb2.ListDataPlaneStatusesRequest(page_size=2, page_token=first.next_page_token)
    second = await call(plane, "ListDataPlaneStatuses", request)
    assert [item.node.node_id for item in (*first.data_planes, *second.data_planes)] == ["a", "b", "c"]
    assert second.next_page_token == ""


async def test_a_reload_answers_with_revision_and_propagation(plane: Serving) -> None:
    plane.parts.fleet.connect(policy_pb2.NodeInfo(node_id="a"), plane.parts.fleet.target, 1)
    response = await call(plane, "ReloadPolicySet", reload_request(policy(7), comment="why"))
    assert response.accepted
    assert (response.revision.generation, response.revision.author) == (1, "bootstrap-admin")
    assert response.propagation == policy_pb2.PropagationSummary(connected=1, pending=1)


async def test_a_reload_waits_for_acks(plane: Serving) -> None:
    fleet = plane.parts.fleet
    fleet.connect(policy_pb2.NodeInfo(node_id="a"), fleet.target, 1)
    request = reload_request(policy(7), wait_for_acks=duration_pb2.Duration(seconds=30))
    waiting = asyncio.create_task(call(plane, "ReloadPolicySet", request))
    while not fleet.target.generation:  # noqa: ASYNC110 - nothing to wait on but the loop's next turn
        await asyncio.sleep(0)
    fleet.acked("a", fleet.target, 2)
    assert (await waiting).propagation == policy_pb2.PropagationSummary(connected=1, acked=1, complete=True)


async def test_a_refused_reload_is_an_answer_with_diagnostics(plane: Serving) -> None:
    await plane.put_in_force(7)
    response = await call(plane, "ReloadPolicySet", reload_request(BROKEN))
    assert not response.accepted
    assert response.revision.generation == 1
    assert response.diagnostics[0].line == 2


async def test_a_thousand_faults_fit_into_the_answer(plane: Serving) -> None:
    lines = "".join(f"  key{number}: 1\n" for number in range(1500))
    request = reload_request([Document("w.yaml", f"write_policy:\n{lines}".encode())])
    response = await call(plane, "ReloadPolicySet", request)
    assert len(response.diagnostics) == 1000
    assert response.total_diagnostics == 1500


async def test_a_fifty_kilobyte_key_is_a_diagnostic_and_not_a_broken_call(plane: Serving) -> None:
    request = reload_request([Document("w.yaml", f"write_policy:\n  ? {'k' * 50_000}\n  : 1\n".encode())])
    response = await call(plane, "ReloadPolicySet", request)
    assert not response.accepted
    assert response.total_diagnostics >= 1


async def test_a_retry_with_the_same_request_id_gets_the_same_answer_and_another_payload_an_error(
    plane: Serving,
) -> None:
    first = await call(plane, "ReloadPolicySet", reload_request(policy(7), request_id="r"))
    retried = reload_request(policy(7), request_id="r", wait_for_acks=duration_pb2.Duration(nanos=1))
    assert await call(plane, "ReloadPolicySet", retried) == first
    error = await failure(plane, "ReloadPolicySet", reload_request(policy(8), request_id="r"))
    assert error.code() == grpc.StatusCode.ALREADY_EXISTS


async def test_a_stale_etag_is_aborted(plane: Serving) -> None:
    await plane.put_in_force(7)
    error = await failure(plane, "ReloadPolicySet", reload_request(policy(8), etag="1-stale"))
    assert error.code() == grpc.StatusCode.ABORTED


async def test_validation_tells_the_version_that_a_reload_would_give(plane: Serving) -> None:
    checked = await call(plane, "ValidatePolicySet", admin_pb2.ValidatePolicySetRequest(inline=inline(policy(7))))
    assert checked.valid
    assert plane.parts.snapshots.current is None
    reloaded = await call(plane, "ReloadPolicySet", reload_request(policy(7)))
    assert reloaded.revision.version_info == checked.version_info


async def test_a_revision_is_read_with_its_documents(plane: Serving) -> None:
    await plane.put_in_force(7)
    await plane.put_in_force(8)
    newest = await call(plane, "GetPolicySetRevision")
    oldest = await call(plane, "GetPolicySetRevision", admin_pb2.GetPolicySetRevisionRequest(generation=1))
    assert b"top_k: 8" in newest.revision.documents[0].content
    assert b"top_k: 7" in oldest.revision.documents[0].content
    missing = await failure(plane, "GetPolicySetRevision", admin_pb2.GetPolicySetRevisionRequest(generation=9))
    assert missing.code() == grpc.StatusCode.NOT_FOUND


async def test_the_effective_policy_tells_file_and_line(plane: Serving) -> None:
    await plane.put_in_force(9)
    response = await call(plane, "GetEffectivePolicy", admin_pb2.GetEffectivePolicyRequest(namespace="dept.sales"))
    values = {item.path: item for item in response.values}
    top_k = values["retrieve_policy.top_k"]
    assert (top_k.value.number_value, top_k.file, top_k.line, top_k.layer) == (9.0, "retrieve.yaml", 2, "base")
    assert values["write_policy.threshold"].layer == "default"


async def test_before_there_is_a_policy_the_effective_one_is_unavailable(plane: Serving) -> None:
    error = await failure(plane, "GetEffectivePolicy", admin_pb2.GetEffectivePolicyRequest(namespace="a"))
    assert error.code() == grpc.StatusCode.UNAVAILABLE


async def test_the_fleet_tells_why_the_folder_is_not_taken(plane: Serving) -> None:
    assert (await call(plane, "ListDataPlaneStatuses")).folder_error == FOLDER_ERROR


async def test_a_reload_whose_caller_is_let_in_no_more_when_its_turn_comes_is_refused(plane: Serving) -> None:
    await plane.put_in_force(7)
    rbac = RBAC.replace(b"dept.sales", b'"*"').replace(b"policy.read", b"policy.reload")
    await plane.reloader.reload(Command([Document("rbac.yaml", rbac)], "test"))
    standing = plane.reloader._standing
    async with standing._turn:
        queued = asyncio.create_task(failure(plane, "ReloadPolicySet", reload_request(policy(9)), SALES_READER))
        await eventually(lambda: len(standing._running), bool)
        plane.parts.snapshots.current = None
    assert (await queued).code() is grpc.StatusCode.UNAUTHENTICATED
    assert await plane.parts.store.get(3) is None
