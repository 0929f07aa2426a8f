"""Bad input: every call gets an error that names the field, nothing crashes, leaks or is half written."""

from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from google.protobuf.struct_pb2 import Struct
from google.rpc import error_details_pb2
from grpc_status import rpc_status

from memplane.policy.access import hash_api_key
from memplane.v1 import memory_pb2
from memplane.v1 import memory_service_pb2 as pb
from tests.integration.harness import NOW_US, Plane, as_user, contents, running_plane, search, write

READER_KEY = "mpk_00000001_reader-of-dept-sales"
RBAC = {
    "rbac": {
        "roles": {
            "reader": {"grants": [{"namespace": "dept.sales", "permissions": ["memory.read", "memory.write"]}]},
            "admin": {"grants": [{"namespace": "*", "permissions": ["*"]}]},
        },
        "principals": {"agent": {"api_key_sha256": [hash_api_key(READER_KEY)], "roles": ["reader"]}},
    },
    "write_policy": {"threshold": 0.0, "short_term_threshold": 0.0},
}


@pytest.fixture
async def plane() -> AsyncIterator[Plane]:
    async with running_plane(policy=RBAC) as running:
        yield running


def details(error: grpc.aio.AioRpcError) -> tuple[str, list[str]]:
    """The reason, and the fields that are named as wrong."""
    status = rpc_status.from_call(error)
    assert status is not None
    reason, fields = "", []
    for packed in status.details:
        info, bad = error_details_pb2.ErrorInfo(), error_details_pb2.BadRequest()
        if packed.Unpack(info):
            reason = info.reason
        elif packed.Unpack(bad):
            fields = [violation.field for violation in bad.field_violations]
    return reason, fields


def struct(**values: Any) -> Struct:
    made = Struct()
    made.update(values)
    return made


BAD_WRITES: list[tuple[str, dict[str, Any], str]] = [
    ("blank content", {"content": " \n\t "}, "content"),
    ("no content", {"content": ""}, "content"),
    ("zero-width content", {"content": "\u200b\u200d\ufeff\u2060"}, "content"),
    ("bidi controls alone", {"content": "\u202e\u2066\u2069"}, "content"),
    ("2 MB of content", {"content": "x" * 2_000_000}, "content"),
    ("more than the policy allows", {"content": "x" * 65_537}, "content"),
    ("namespace with a capital", {"namespace": "Dept.sales"}, "namespace"),
    ("empty namespace", {"namespace": ""}, "namespace"),
    ("namespace with a slash", {"namespace": "x/y"}, "namespace"),
    ("namespace with ten labels", {"namespace": "a.b.c.d.e.f.g.h.i.j"}, "namespace"),
    ("namespace with an empty label", {"namespace": "dept..sales"}, "namespace"),
    ("namespace with a newline", {"namespace": "dept.sales\n"}, "namespace"),
    ("unknown layer", {"layer_hint": 99}, "layer_hint"),
    ("unknown kind", {"kind": 99}, "kind"),
    ("unknown pool", {"pool": 7}, "pool"),
    ("unknown source", {"source": memory_pb2.Source(type=42)}, "source.type"),
    ("confidence above 1", {"confidence": 1.5}, "confidence"),
    ("confidence not a number", {"confidence": float("nan")}, "confidence"),
    ("negative sequence", {"sequence": -1}, "sequence"),
    ("65 tags", {"tags": [f"t{number}" for number in range(65)]}, "tags"),
    ("an empty tag", {"tags": [""]}, "tags[0]"),
    ("metadata that moves it", {"metadata": struct(namespace="victim")}, "metadata.namespace"),
    ("metadata that moves its user", {"metadata": struct(user_id="bob")}, "metadata.user_id"),
    ("metadata too large", {"metadata": struct(note="x" * 20_000)}, "metadata"),
    ("metadata not finite", {"metadata": struct(number=float("inf"))}, "metadata"),
    ("embedding of another size", {"embedding": [1.0, 2.0]}, "embedding"),
    ("embedding of zeros", {"embedding": [0.0] * 384}, "embedding"),
    ("embedding with NaN", {"embedding": [float("nan")] * 384}, "embedding"),
    ("a template that is not there", {"template": "invoice"}, "template"),
    ("subject of a kilobyte", {"subject_id": "s" * 1000}, "subject_id"),
]


@pytest.mark.parametrize(("fields", "field"), [row[1:] for row in BAD_WRITES], ids=[row[0] for row in BAD_WRITES])
async def test_a_bad_write_names_its_field_and_stores_nothing(plane: Plane, fields: dict[str, Any], field: str) -> None:
    request = pb.WriteMemoryRequest(**{"namespace": "dept.sales", "content": "fine", **fields})
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await plane.stub.WriteMemory(request, metadata=as_user())
    assert failed.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert details(failed.value) == ("INVALID_FIELD", [field])
    assert await plane.stores.records.count(1e12) == 0


async def test_an_event_in_the_future_is_refused(plane: Plane) -> None:
    request = pb.WriteMemoryRequest(namespace="dept.sales", content="fine")
    request.event_time.FromMicroseconds(NOW_US + 25 * 3600 * 1_000_000)
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await plane.stub.WriteMemory(request, metadata=as_user())
    assert details(failed.value)[1] == ["event_time"]


async def test_odd_text_is_cleaned_and_kept(plane: Plane) -> None:
    for given, kept in (
        ("a\x00b", "ab"),
        ("pay\u202eload\u202c", "payload"),
        ("<|endoftext|> is a token", "<|endoftext|> is a token"),
        ("👨\u200d👩\u200d👧 came by", "👨\u200d👩\u200d👧 came by"),
        ("e\u0301tude", "étude"),
    ):
        assert (await write(plane, given)).memory.content == kept


async def test_ten_thousand_emoji_are_kept(plane: Plane) -> None:
    stored = (await write(plane, "🎉" * 10_000)).memory
    assert stored.content


BAD_SEARCHES: list[tuple[str, dict[str, Any], str]] = [
    ("no query", {"query": ""}, "query"),
    ("20 KB of query", {"query": "x" * 20_000}, "query"),
    ("negative top_k", {"top_k": -1}, "top_k"),
    ("top_k 10,000", {"top_k": 10_000}, "top_k"),
    ("confidence above 1", {"min_confidence": 2.0}, "min_confidence"),
    ("unknown layer", {"layers": [99]}, "layers[0]"),
    ("unspecified kind", {"kinds": [0]}, "kinds[0]"),
    ("a token of nothing", {"at_least_as_fresh": "yesterday"}, "at_least_as_fresh"),
    ("a token of another store", {"at_least_as_fresh": "c1.999999"}, "at_least_as_fresh"),
    ("21 turns", {"context_turns": ["hm"] * 21}, "context_turns"),
    ("101 namespaces", {"namespaces": [f"n{number}" for number in range(101)]}, "namespaces"),
    (
        "an unknown filter field",
        {
            "filter": memory_pb2.Filter(
                condition=memory_pb2.FilterCondition(
                    field="user_id",
                    operator=memory_pb2.FILTER_OPERATOR_EQUALS,
                    values=[memory_pb2.FilterValue(string_value="bob")],
                )
            )
        },
        "filter.condition.field",
    ),
    ("an empty filter", {"filter": memory_pb2.Filter()}, "filter"),
    ("an empty group", {"filter": memory_pb2.Filter(all_of=memory_pb2.FilterGroup())}, "filter.all_of.filters"),
]


@pytest.mark.parametrize(("fields", "field"), [row[1:] for row in BAD_SEARCHES], ids=[row[0] for row in BAD_SEARCHES])
async def test_a_bad_search_names_its_field(plane: Plane, fields: dict[str, Any], field: str) -> None:
    request = pb.SearchMemoriesRequest(**{"namespace": "dept.sales", "query": "fine", **fields})
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await plane.stub.SearchMemories(request, metadata=as_user())
    assert failed.value.code() is grpc.StatusCode.INVALID_ARGUMENT
    assert details(failed.value) == ("INVALID_FIELD", [field])


@pytest.mark.parametrize(
    "query", ["the of", r"C:\repo\a.py", "foo AND (", "*", '"', "~", "x", ")", "不", "\\", "' OR 1=1"]
)
async def test_an_odd_query_is_answered(plane: Plane, query: str) -> None:
    await write(plane, r"The script C:\repo\a.py runs foo AND (bar) of the day")
    found = await search(plane, query)
    assert not found.degraded


async def test_a_page_token_of_another_query_is_refused(plane: Plane) -> None:
    for number in range(3):
        await write(plane, f"Pallet {number} is blue")
    first = pb.ListMemoriesRequest(namespace="dept.sales", page_size=1)
    token = (await plane.stub.ListMemories(first, metadata=as_user())).next_page_token
    for other in (
        pb.ListMemoriesRequest(namespace="dept.hr", page_token=token),
        pb.ListMemoriesRequest(namespace="dept.sales", subject_id="bob", page_token=token),
        pb.ListMemoriesRequest(namespace="dept.sales", page_token="AAAA"),
        pb.ListMemoriesRequest(namespace="dept.sales", page_token="%%%"),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await plane.stub.ListMemories(other, metadata=as_user())
        assert details(failed.value) == ("PAGE_TOKEN_MISMATCH", ["page_token"])


async def test_a_request_id_gives_the_first_answer_and_refuses_another_payload(plane: Plane) -> None:
    first = await write(plane, "The toner is ordered", request_id="r-1")
    again = await write(plane, "The toner is ordered", request_id="r-1")
    assert again.memory.id == first.memory.id
    assert again.decision.action == first.decision.action
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await write(plane, "The toner is not ordered", request_id="r-1")
    assert failed.value.code() is grpc.StatusCode.ALREADY_EXISTS
    assert details(failed.value)[0] == "REQUEST_ID_REUSED"
    assert contents(await search(plane, "toner")) == ["The toner is ordered"]


@pytest.mark.parametrize("metadata", [(), (("authorization", "Bearer nobody"),), (("authorization", "Basic x"),)])
async def test_without_credentials_nothing_is_answered(plane: Plane, metadata: tuple[tuple[str, str], ...]) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await plane.stub.SearchMemories(pb.SearchMemoriesRequest(namespace="a", query="b"), metadata=metadata)
    assert failed.value.code() is grpc.StatusCode.UNAUTHENTICATED


async def test_without_a_policy_nothing_is_allowed(plane: Plane) -> None:
    plane.snapshot = None
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await search(plane, "anything")
    assert failed.value.code() is grpc.StatusCode.UNAVAILABLE
    assert details(failed.value)[0] == "POLICY_NOT_LOADED"
    assert dict(failed.value.trailing_metadata() or ())["grpc-retry-pushback-ms"] == "2000"


@pytest.mark.parametrize("namespace", ["dept.salesforce", "dept", "dept.sales_eu", "hr"])
async def test_a_grant_covers_its_subtree_and_no_neighbour(plane: Plane, namespace: str) -> None:
    written = await write(plane, "Secret of another tenant", namespace)
    await write(plane, "Sales knows this", "dept.sales.agent_a")
    user = as_user(READER_KEY)
    inside = pb.SearchMemoriesRequest(namespace="dept.sales.agent_a", query="this")
    assert contents(await plane.stub.SearchMemories(inside, metadata=user)) == ["Sales knows this"]
    for call in (
        plane.stub.SearchMemories(pb.SearchMemoriesRequest(namespace=namespace, query="secret"), metadata=user),
        plane.stub.GetMemory(pb.GetMemoryRequest(namespace=namespace, id=written.memory.id), metadata=user),
        plane.stub.GetMemory(pb.GetMemoryRequest(namespace=namespace, id="mem_none"), metadata=user),
        plane.stub.ListMemories(pb.ListMemoriesRequest(namespace=namespace), metadata=user),
        plane.stub.ForgetMemory(pb.ForgetMemoryRequest(namespace=namespace, id=written.memory.id), metadata=user),
        plane.stub.WriteMemory(pb.WriteMemoryRequest(namespace=namespace, content="x y"), metadata=user),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await call
        assert failed.value.code() is grpc.StatusCode.PERMISSION_DENIED


async def test_another_tenants_id_is_not_found_in_ones_own_namespace(plane: Plane) -> None:
    theirs = (await write(plane, "Salary of Eve is 1", "hr")).memory
    user = as_user(READER_KEY)
    changed = memory_pb2.Memory(namespace="dept.sales", id=theirs.id, content="mine now")
    update = pb.UpdateMemoryRequest(memory=changed)
    update.update_mask.paths.append("content")
    for call in (
        plane.stub.GetMemory(pb.GetMemoryRequest(namespace="dept.sales", id=theirs.id), metadata=user),
        plane.stub.UpdateMemory(update, metadata=user),
        plane.stub.ListMemoryVersions(
            pb.ListMemoryVersionsRequest(namespace="dept.sales", id=theirs.id), metadata=user
        ),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await call
        assert failed.value.code() is grpc.StatusCode.NOT_FOUND
        assert "Salary" not in str(failed.value)


async def test_among_several_namespaces_the_unreadable_are_left_out_and_named(plane: Plane) -> None:
    await write(plane, "Sales target is 9", "dept.sales")
    await write(plane, "HR target is 3", "hr")
    request = pb.SearchMemoriesRequest(namespaces=["dept.sales", "hr"], query="target")
    found = await plane.stub.SearchMemories(request, metadata=as_user(READER_KEY))
    assert contents(found) == ["Sales target is 9"]
    assert list(found.omitted_namespaces) == ["hr"]


async def test_an_update_cannot_move_a_memory(plane: Plane) -> None:
    written = (await write(plane, "The van is white")).memory
    for paths, metadata in ((["namespace"], {}), (["metadata"], {"namespace": "victim"}), (["subject_id"], {})):
        changed = memory_pb2.Memory(
            namespace="dept.sales", id=written.id, subject_id="bob", metadata=struct(**metadata)
        )
        request = pb.UpdateMemoryRequest(memory=changed)
        request.update_mask.paths.extend(paths)
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await plane.stub.UpdateMemory(request, metadata=as_user())
        assert failed.value.code() is grpc.StatusCode.INVALID_ARGUMENT


async def test_a_stale_etag_changes_nothing(plane: Plane) -> None:
    written = (await write(plane, "Door code is 1")).memory
    for content, etag in (("Door code is 2", written.etag), ("Door code is 3", written.etag)):
        changed = memory_pb2.Memory(namespace="dept.sales", id=written.id, content=content)
        request = pb.UpdateMemoryRequest(memory=changed, etag=etag)
        request.update_mask.paths.append("content")
        if content.endswith("2"):
            await plane.stub.UpdateMemory(request, metadata=as_user())
            continue
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await plane.stub.UpdateMemory(request, metadata=as_user())
        assert failed.value.code() is grpc.StatusCode.ABORTED
    assert contents(await search(plane, "door code")) == ["Door code is 2"]


async def test_each_item_of_a_batch_has_its_own_outcome(plane: Plane) -> None:
    request = pb.BatchWriteMemoriesRequest(
        requests=[
            pb.WriteMemoryRequest(namespace="dept.sales", content="Good one", session_id="s"),
            pb.WriteMemoryRequest(namespace="dept.sales", content=" "),
            pb.WriteMemoryRequest(namespace="hr", content="Not mine", session_id="s"),
        ]
    )
    written = await plane.stub.BatchWriteMemories(request, metadata=as_user(READER_KEY))
    assert [item.WhichOneof("result") for item in written.results] == ["response", "error", "error"]
    assert [item.error.code for item in written.results] == [0, 3, 7]


@pytest.mark.parametrize("count", [0, 1001])
async def test_a_batch_has_1_to_1000_items(plane: Plane, count: int) -> None:
    request = pb.BatchWriteMemoriesRequest(requests=[pb.WriteMemoryRequest()] * count)
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await plane.stub.BatchWriteMemories(request, metadata=as_user())
    assert details(failed.value)[1] == ["requests"]


async def test_a_request_id_of_another_namespace_is_refused_by_every_verb(plane: Plane) -> None:
    await write(plane, "First use of it", "dept.sales", request_id="shared-id")
    written = (await write(plane, "Something else", "hr")).memory
    changed = memory_pb2.Memory(namespace="hr", id=written.id, content="Changed")
    update = pb.UpdateMemoryRequest(memory=changed, request_id="shared-id")
    update.update_mask.paths.append("content")
    forget = pb.ForgetMemoryRequest(namespace="hr", id=written.id, request_id="shared-id")
    rewrite = pb.WriteMemoryRequest(namespace="hr", content="New", session_id="s", request_id="shared-id")
    for call in (
        plane.stub.UpdateMemory(update, metadata=as_user()),
        plane.stub.ForgetMemory(forget, metadata=as_user()),
        plane.stub.WriteMemory(rewrite, metadata=as_user()),
    ):
        with pytest.raises(grpc.aio.AioRpcError) as failed:
            await call
        assert details(failed.value)[0] == "REQUEST_ID_REUSED"


async def test_an_end_before_its_beginning_is_refused(plane: Plane) -> None:
    request = pb.WriteMemoryRequest(namespace="dept.sales", content="fine")
    request.valid_from.FromMicroseconds(NOW_US)
    request.valid_to.FromMicroseconds(NOW_US - 1)
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await plane.stub.WriteMemory(request, metadata=as_user())
    assert details(failed.value)[1] == ["valid_to"]


async def test_an_update_keeps_to_the_rules_of_a_write(plane: Plane) -> None:
    written = (await write(plane, "The plan is short")).memory
    long = " ".join(f"Sentence number {number} tells of room {number}." for number in range(1_000))
    changed = memory_pb2.Memory(namespace="dept.sales", id=written.id, content=long)
    request = pb.UpdateMemoryRequest(memory=changed)
    request.update_mask.paths.append("content")
    updated = (await plane.stub.UpdateMemory(request, metadata=as_user())).memory
    assert updated.provenance.condensed
    assert updated.provenance.original_content == long
    assert len(updated.content) < len(long)
    ahead = memory_pb2.Memory(namespace="dept.sales", id=written.id)
    ahead.event_time.FromMicroseconds(NOW_US + 25 * 3600 * 1_000_000)
    request = pb.UpdateMemoryRequest(memory=ahead)
    request.update_mask.paths.append("event_time")
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await plane.stub.UpdateMemory(request, metadata=as_user())
    assert details(failed.value)[1] == ["memory.event_time"]
