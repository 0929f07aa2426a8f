"""ExplainDecision over gRPC."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from controlplane.documents import Document
from controlplane.reload import Command
from memplane.policy.access import hash_api_key
from memplane.policy.rbac import BOOTSTRAP_ADMIN
from memplane.v1 import memory_pb2, policy_pb2
from memplane.v1 import policy_admin_service_pb2 as pb
from tests.unit.controlplane.serving import ADMIN, Serving, serving

READER = (("authorization", "Bearer mpk_reader"),)
RBAC = f"""\
rbac:
  principals:
    ann:
      grants:
        - {{namespace: dept.sales, permissions: [memory.read], kinds: [FACT]}}
    reader:
      api_key_sha256: ["{hash_api_key("mpk_reader")}"]
      grants:
        - {{namespace: dept.sales, permissions: [policy.read]}}
"""


@pytest.fixture
async def plane(tmp_path: Path) -> AsyncIterator[Serving]:
    async with serving(tmp_path) as running:
        await running.reloader.reload(Command([Document("rbac.yaml", RBAC.encode())], "test"))
        yield running


async def explained(plane: Serving, metadata: Any = ADMIN, **fields: Any) -> pb.ExplainDecisionResponse:
    told = {"principal": "ann", "permission": "memory.read", "namespace": "dept.sales.x", **fields}
    return await plane.admin.ExplainDecision(pb.ExplainDecisionRequest(**told), metadata=metadata)


async def test_a_decision_is_told_with_the_line_and_the_version(plane: Serving) -> None:
    told = await explained(plane)
    assert (told.allowed, told.conditional, told.generation) == (True, True, 1)
    (rule,) = told.rules
    assert (rule.file, rule.line, rule.path) == ("rbac.yaml", 5, "rbac.principals.ann.grants[0]")
    assert rule.condition == "kinds FACT"
    assert not (await explained(plane, kind=memory_pb2.KIND_FACT)).conditional
    assert not (await explained(plane, kind=memory_pb2.KIND_DOCUMENT)).allowed
    near = await explained(plane, namespace="dept.salesforce")
    assert near.summary.endswith("the nearest is dept.sales at rbac.yaml:5")
    assert (await explained(plane, principal=BOOTSTRAP_ADMIN)).allowed


async def test_other_documents_can_be_asked_and_are_not_taken(plane: Serving) -> None:
    document = policy_pb2.PolicyDocument(name="rbac.yaml", content=b"rbac:\n  principals:\n    ann: {}\n")
    told = await explained(plane, inline=pb.InlineDocuments(documents=[document]))
    assert (told.allowed, told.generation) == (False, 0)
    assert told.summary.endswith("no grant gives memory.read; there is none at all")
    assert (await explained(plane)).allowed


async def test_who_reads_policy_of_a_subtree_is_told_of_that_alone(plane: Serving) -> None:
    assert (await explained(plane, READER)).allowed
    document = policy_pb2.PolicyDocument(name="rbac.yaml", content=RBAC.encode())
    for fields in ({"namespace": "dept.hr"}, {"namespace": ""}, {"inline": pb.InlineDocuments(documents=[document])}):
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await explained(plane, READER, **fields)
        assert raised.value.code() is grpc.StatusCode.PERMISSION_DENIED


@pytest.mark.parametrize(
    "fields",
    [
        {"principal": ""},
        {"permission": "memory.raed"},
        {"namespace": "Bad Name"},
        {"kind": 99},
        {"claims": ["x"] * 1001},
    ],
)
async def test_a_malformed_question_names_its_field(plane: Serving, fields: dict[str, Any]) -> None:
    with pytest.raises(grpc.aio.AioRpcError) as raised:
        await explained(plane, **fields)
    assert raised.value.code() is grpc.StatusCode.INVALID_ARGUMENT
