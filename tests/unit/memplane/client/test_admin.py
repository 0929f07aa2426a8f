import pytest
from google.protobuf.json_format import MessageToDict

from memplane.client import AdminClient, RpcError
from memplane.errors import PermissionDenied
from memplane.v1 import policy_admin_service_pb2 as pb
from memplane.v1 import policy_pb2
from tests.unit.memplane.client.fakes import AdminRecorder, WatchedControlPlane, served

DOCUMENT = policy_pb2.PolicyDocument(name="write.yaml", content=b"write_policy: {}\n")


async def test_a_reload_sends_documents_and_how_long_to_wait():
    recorder = AdminRecorder(ReloadPolicySet=lambda _: pb.ReloadPolicySetResponse(accepted=True))
    async with served(recorder) as target, AdminClient(target, "key") as client:
        assert (await client.reload([DOCUMENT], 2.5, comment="why", allow_shrink=True)).accepted
    (request,) = recorder.requests
    assert list(request.inline.documents) == [DOCUMENT]
    assert MessageToDict(request.wait_for_acks) == "2.500s"
    assert (request.comment, request.allow_shrink, bool(request.request_id)) == ("why", True, True)


async def test_a_reload_of_the_folder_sends_no_documents():
    recorder = AdminRecorder(ReloadPolicySet=lambda _: pb.ReloadPolicySetResponse())
    async with served(recorder) as target, AdminClient(target) as client:
        await client.reload()
    assert not recorder.requests[0].HasField("inline")
    assert not recorder.requests[0].HasField("wait_for_acks")


async def test_validate_revision_and_effective_ask_what_is_given():
    recorder = AdminRecorder(
        ValidatePolicySet=lambda _: pb.ValidatePolicySetResponse(valid=True),
        GetPolicySetRevision=lambda request: pb.GetPolicySetRevisionResponse(
            revision=policy_pb2.PolicyRevision(generation=request.generation)
        ),
        GetEffectivePolicy=lambda request: pb.GetEffectivePolicyResponse(version_info=request.namespace),
    )
    async with served(recorder) as target, AdminClient(target) as client:
        assert (await client.validate([DOCUMENT])).valid
        assert (await client.revision(3)).generation == 3
        assert (await client.effective("dept.sales")).version_info == "dept.sales"


async def test_revisions_and_data_planes_go_on_through_every_page():
    def revisions(request):
        token = "" if request.page_token else "next"
        return pb.ListPolicySetRevisionsResponse(
            revisions=[policy_pb2.PolicyRevision(generation=1 if request.page_token else 2)], next_page_token=token
        )

    def statuses(request):
        node = policy_pb2.NodeInfo(node_id="b" if request.page_token else "a")
        return pb.ListDataPlaneStatusesResponse(
            data_planes=[policy_pb2.DataPlaneStatus(node=node)],
            next_page_token="" if request.page_token else "next",
            generation=2,
        )

    recorder = AdminRecorder(ListPolicySetRevisions=revisions, ListDataPlaneStatuses=statuses)
    async with served(recorder) as target, AdminClient(target) as client:
        assert [revision.generation async for revision in client.revisions()] == [2, 1]
        fleet = await client.data_planes()
    assert [each.node.node_id for each in fleet.data_planes] == ["a", "b"]
    assert (fleet.generation, fleet.next_page_token) == (2, "")


async def test_a_watch_goes_on_over_renewed_streams_and_ends_when_the_control_plane_stops():
    first, second = (pb.WatchDataPlaneStatusesResponse(generation=number) for number in (1, 2))
    plane = WatchedControlPlane([first], [second], [], refusal=PermissionDenied("policy.read"))
    async with served(plane) as target, AdminClient(target, "key") as client:
        assert [answer.generation async for answer in client.watch_data_planes(["a"])] == [1, 2]
        with pytest.raises(RpcError, match="PERMISSION_DENIED"):
            await anext(client.watch_data_planes())
    assert [list(request.node_ids) for request in plane.requests] == [["a"], ["a"], ["a"], []]
