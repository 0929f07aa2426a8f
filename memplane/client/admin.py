"""The client of the control plane: one method for each RPC of PolicyAdminService."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from datetime import datetime, timedelta
from typing import Any, TypedDict, Unpack
from uuid import uuid4

from memplane.client.channel import Client, Connection
from memplane.client.convert import build
from memplane.client.tls import ClientTls
from memplane.v1 import policy_admin_service_pb2 as pb
from memplane.v1 import policy_admin_service_pb2_grpc as rpc
from memplane.v1 import policy_pb2


class ReloadFields(TypedDict, total=False):
    """Optional fields of `ReloadPolicySetRequest`."""

    validate_only: bool
    etag: str
    request_id: str
    comment: str
    allow_shrink: bool


class KeyFields(TypedDict, total=False):
    """Optional fields of `CreateApiKeyRequest`. Without `expire_time` the key does not end."""

    expire_time: datetime
    description: str
    request_id: str


class ExplainFields(TypedDict, total=False):
    """Optional fields of `ExplainDecisionRequest`: what a token claims, and the memory that it is about."""

    claims: Sequence[str]
    layer: str
    kind: str
    sensitivity: str


class RollbackFields(TypedDict, total=False):
    """Optional fields of `RollbackPolicySetRequest`."""

    etag: str
    request_id: str
    comment: str
    allow_shrink: bool


class AdminClient(Client):
    """Changes and shows policy, and shows which data plane runs which version. An async context manager.

    Every method raises `RpcError` when the call fails. Documents are `PolicyDocument`s; None means the folder that the
    control plane watches.

    Attributes:
        timeout_s: Deadline of each call in seconds, retries included; waiting for ACKs comes on top.
    """

    def __init__(
        self,
        target: str = "127.0.0.1:7700",
        api_key: str = "",
        timeout_s: float = 30.0,
        tls: ClientTls | None = None,
    ) -> None:
        self.timeout_s = timeout_s
        super().__init__(Connection(target, api_key, timeout_s, tls))
        self._stub = rpc.PolicyAdminServiceStub(self._connection.channel)

    async def reload(
        self,
        documents: Sequence[policy_pb2.PolicyDocument] | None = None,
        wait_for_acks_s: float = 0.0,
        **fields: Unpack[ReloadFields],
    ) -> pb.ReloadPolicySetResponse:
        """Checks a policy set and puts it in force; waits up to `wait_for_acks_s` (0 to 60) for the data planes."""
        values: dict[str, Any] = {**fields, "inline": _inline(documents)}
        values["request_id"] = values.get("request_id") or uuid4().hex
        values["wait_for_acks"] = timedelta(seconds=wait_for_acks_s) if wait_for_acks_s else None
        request = build(pb.ReloadPolicySetRequest, values)
        return await self._connection.call(self._stub.ReloadPolicySet, request, wait_for_acks_s)

    async def validate(
        self, documents: Sequence[policy_pb2.PolicyDocument] | None = None
    ) -> pb.ValidatePolicySetResponse:
        """What is to be said about a policy set; changes nothing."""
        request = build(pb.ValidatePolicySetRequest, {"inline": _inline(documents)})
        return await self._connection.call(self._stub.ValidatePolicySet, request)

    async def diff(
        self,
        documents: Sequence[policy_pb2.PolicyDocument] | None = None,
        generation: int = 0,
        base_generation: int = 0,
    ) -> pb.DiffPolicySetResponse:
        """What documents, or an earlier generation, would change against `base_generation` (0: the one in force)."""
        values = {"inline": _inline(documents), "generation": generation, "base_generation": base_generation}
        return await self._connection.call(self._stub.DiffPolicySet, build(pb.DiffPolicySetRequest, values))

    async def rollback(
        self, generation: int, wait_for_acks_s: float = 0.0, **fields: Unpack[RollbackFields]
    ) -> pb.RollbackPolicySetResponse:
        """Puts the documents of an earlier generation in force again; API keys stay as they are."""
        values: dict[str, Any] = {**fields, "generation": generation}
        values["request_id"] = values.get("request_id") or uuid4().hex
        values["wait_for_acks"] = timedelta(seconds=wait_for_acks_s) if wait_for_acks_s else None
        request = build(pb.RollbackPolicySetRequest, values)
        return await self._connection.call(self._stub.RollbackPolicySet, request, wait_for_acks_s)

    async def revision(self, generation: int = 0) -> policy_pb2.PolicyRevision:
        """One revision with its documents; 0 is the one in force."""
        request = build(pb.GetPolicySetRevisionRequest, {"generation": generation})
        return (await self._connection.call(self._stub.GetPolicySetRevision, request)).revision

    async def revisions(self, page_size: int = 0) -> AsyncIterator[policy_pb2.PolicyRevision]:
        """Every revision without its documents, newest first."""
        request = build(pb.ListPolicySetRevisionsRequest, {"page_size": page_size})
        while True:
            page = await self._connection.call(self._stub.ListPolicySetRevisions, request)
            for revision in page.revisions:
                yield revision
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def effective(self, namespace: str) -> pb.GetEffectivePolicyResponse:
        """The policy that governs a namespace, and where each value comes from."""
        request = build(pb.GetEffectivePolicyRequest, {"namespace": namespace})
        return await self._connection.call(self._stub.GetEffectivePolicy, request)

    async def explain(
        self,
        principal: str,
        permission: str,
        namespace: str = "",
        documents: Sequence[policy_pb2.PolicyDocument] | None = None,
        **fields: Unpack[ExplainFields],
    ) -> pb.ExplainDecisionResponse:
        """Whether a principal may do something in a namespace, and by which rules; None: those in force."""
        told = {"principal": principal, "permission": permission, "namespace": namespace}
        request = build(pb.ExplainDecisionRequest, {**fields, **told, "inline": _inline(documents)})
        return await self._connection.call(self._stub.ExplainDecision, request)

    async def data_planes(self, page_size: int = 0) -> pb.ListDataPlaneStatusesResponse:
        """Every data plane that has been heard, with the version in force; pages are put together."""
        request = build(pb.ListDataPlaneStatusesRequest, {"page_size": page_size})
        answer = await self._connection.call(self._stub.ListDataPlaneStatuses, request)
        while answer.next_page_token:
            request.page_token = answer.next_page_token
            page = await self._connection.call(self._stub.ListDataPlaneStatuses, request)
            answer.next_page_token = page.next_page_token
            answer.data_planes.extend(page.data_planes)
        return answer

    async def watch_data_planes(
        self, node_ids: Sequence[str] = ()
    ) -> AsyncGenerator[pb.WatchDataPlaneStatusesResponse, None]:
        """Every data plane (or those named), then what changes; after a renewed connection every one again.

        It ends when the control plane stops. Close it when you leave it early: `contextlib.aclosing`.
        """
        request = build(pb.WatchDataPlaneStatusesRequest, {"node_ids": node_ids})
        async with aclosing(self._connection.stream(self._stub.WatchDataPlaneStatuses, request)) as answers:
            async for answer in answers:
                yield answer

    async def create_key(self, principal: str, **fields: Unpack[KeyFields]) -> pb.CreateApiKeyResponse:
        """Makes an API key; `secret` has it, this once.

        It is empty when an earlier attempt of this call made the key and its answer was lost: revoke that one then.
        """
        values: dict[str, Any] = {**fields, "principal": principal}
        values["request_id"] = values.get("request_id") or uuid4().hex
        return await self._connection.call(self._stub.CreateApiKey, build(pb.CreateApiKeyRequest, values))

    async def keys(
        self, principal: str = "", *, include_ended: bool = False, page_size: int = 0
    ) -> AsyncIterator[policy_pb2.ApiKey]:
        """API keys without their secrets, newest first; those of one principal if it is named."""
        values = {"principal": principal, "include_ended": include_ended, "page_size": page_size}
        request = build(pb.ListApiKeysRequest, values)
        while True:
            page = await self._connection.call(self._stub.ListApiKeys, request)
            for key in page.api_keys:
                yield key
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def revoke_key(self, key_id: str, comment: str = "", wait_for_acks_s: float = 0.0) -> pb.RevokeApiKeyResponse:
        """Makes a key worthless; waits up to `wait_for_acks_s` (0 to 60) until the data planes know."""
        wait = timedelta(seconds=wait_for_acks_s) if wait_for_acks_s else None
        request = build(pb.RevokeApiKeyRequest, {"key_id": key_id, "comment": comment, "wait_for_acks": wait})
        return await self._connection.call(self._stub.RevokeApiKey, request, wait_for_acks_s)


def _inline(documents: Sequence[policy_pb2.PolicyDocument] | None) -> pb.InlineDocuments | None:
    return None if documents is None else build(pb.InlineDocuments, {"documents": documents})
