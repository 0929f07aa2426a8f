"""PolicyAdminService: takes requests apart, asks who may, and hands on."""

from dataclasses import dataclass
from typing import Any

import grpc

from controlplane.admin_access import AccessAdmin
from controlplane.admin_door import AdminDoor
from controlplane.admin_fleet import FleetAdmin, FleetView
from controlplane.admin_keys import KeysAdmin
from controlplane.admin_revisions import RevisionsAdmin
from controlplane.compile import effective_values
from controlplane.convert import diagnostic_messages, effective_value_message, revision_message
from controlplane.key_changes import KeyChanges
from controlplane.page_tokens import page_size, page_token, position_of
from controlplane.reload import Command, Reloader
from controlplane.requests import (
    MAX_COMMENT_BYTES,
    MAX_REQUEST_ID_BYTES,
    check_bytes,
    inline_of,
    payload_sha256,
    wait_s_of,
)
from controlplane.revisions import RevisionStore
from controlplane.snapshots import Snapshots
from memplane.errors import InvalidField, PageTokenMismatch, PolicyNotLoaded, RevisionNotFound
from memplane.policy.names import is_namespace
from memplane.v1 import policy_admin_service_pb2 as admin_pb2
from memplane.v1.policy_admin_service_pb2_grpc import PolicyAdminServiceServicer

_MAX_GENERATION = 2**63 - 1

_Context = grpc.aio.ServicerContext[Any, Any]


@dataclass(frozen=True, slots=True)
class AdminParts:
    """What PolicyAdminService works with."""

    door: AdminDoor
    reloader: Reloader
    keys: KeyChanges
    store: RevisionStore
    snapshots: Snapshots
    view: FleetView


class PolicyAdminServicer(AccessAdmin, FleetAdmin, KeysAdmin, RevisionsAdmin, PolicyAdminServiceServicer):
    """Serves administrators. Every method asks for its permission first."""

    def __init__(self, parts: AdminParts):
        self._door = parts.door
        self._reloader = parts.reloader
        self._keys = parts.keys
        self._store = parts.store
        self._snapshots = parts.snapshots
        self._view = parts.view
        self._fleet = parts.view.fleet
        self._clock = parts.view.clock

    async def ReloadPolicySet(  # noqa: N802 - named by the contract
        self, request: admin_pb2.ReloadPolicySetRequest, context: _Context
    ) -> admin_pb2.ReloadPolicySetResponse:
        """Puts a set in force, and waits for data planes when asked to."""
        author = self._require(context, "policy.reload")
        wait_s = wait_s_of(request)
        command = _command(request, author)
        expected = self._fleet.connected_ids()
        response = await self._reloader.reload(command, lambda: self._require(context, "policy.reload"))
        response.propagation.CopyFrom(await self._propagation(response, expected, wait_s))
        return response

    async def ValidatePolicySet(  # noqa: N802 - named by the contract
        self, request: admin_pb2.ValidatePolicySetRequest, context: _Context
    ) -> admin_pb2.ValidatePolicySetResponse:
        """Checks a set."""
        self._require(context, "policy.read")
        compiled = await self._reloader.compile(inline_of(request))
        return admin_pb2.ValidatePolicySetResponse(
            valid=compiled.policy is not None,
            diagnostics=diagnostic_messages(compiled.diagnostics),
            total_diagnostics=len(compiled.diagnostics),
            version_info=compiled.version if compiled.policy is not None else "",
        )

    async def GetPolicySetRevision(  # noqa: N802 - named by the contract
        self, request: admin_pb2.GetPolicySetRevisionRequest, context: _Context
    ) -> admin_pb2.GetPolicySetRevisionResponse:
        """Reads one revision. Raises RevisionNotFound."""
        self._require(context, "policy.read")
        if request.generation < 0:
            raise InvalidField.one("generation", "0 for the one in force, or a generation from 1")
        current = self._snapshots.current
        if request.generation == 0:
            found = current.revision if current is not None else None
        else:
            found = await self._store.get(request.generation)
        if found is None:
            raise RevisionNotFound(request.generation)
        return admin_pb2.GetPolicySetRevisionResponse(revision=revision_message(found, documents=True))

    async def ListPolicySetRevisions(  # noqa: N802 - named by the contract
        self, request: admin_pb2.ListPolicySetRevisionsRequest, context: _Context
    ) -> admin_pb2.ListPolicySetRevisionsResponse:
        """One page, newest first."""
        self._require(context, "policy.read")
        size = page_size(request.page_size, 50)
        found = await self._store.page(_generation_of(request.page_token), size + 1)
        response = admin_pb2.ListPolicySetRevisionsResponse(revisions=[revision_message(item) for item in found[:size]])
        if len(found) > size:
            response.next_page_token = page_token("ListPolicySetRevisions", str(found[size - 1].generation))
        return response

    async def GetEffectivePolicy(  # noqa: N802 - named by the contract
        self, request: admin_pb2.GetEffectivePolicyRequest, context: _Context
    ) -> admin_pb2.GetEffectivePolicyResponse:
        """Every value that governs a namespace; a grant of `policy.read` on the namespace is enough."""
        namespace = request.namespace if is_namespace(request.namespace) else None
        self._require(context, "policy.read", namespace)
        if namespace is None:
            raise InvalidField.one("namespace", "required: 1 to 9 dotted labels of 1 to 63 characters [a-z0-9_-]")
        current = self._snapshots.current
        if current is None:
            raise PolicyNotLoaded
        return admin_pb2.GetEffectivePolicyResponse(
            values=[effective_value_message(item) for item in effective_values(current.compiled, namespace)],
            version_info=current.revision.version,
            generation=current.revision.generation,
        )

    def _require(self, context: _Context, permission: str, namespace: str | None = None) -> str:
        """See AdminPart."""
        return self._door.require(context, permission, namespace)


def _command(request: admin_pb2.ReloadPolicySetRequest, author: str) -> Command:
    check_bytes("request_id", request.request_id, MAX_REQUEST_ID_BYTES)
    check_bytes("comment", request.comment, MAX_COMMENT_BYTES)
    return Command(
        documents=inline_of(request),
        author=author,
        comment=request.comment,
        etag=request.etag,
        validate_only=request.validate_only,
        allow_shrink=request.allow_shrink,
        request_id=request.request_id,
        payload_sha256=payload_sha256(request, "request_id", "wait_for_acks"),
    )


def _generation_of(token: str) -> int:
    """The generation below which a page of revisions starts."""
    position = position_of("ListPolicySetRevisions", token)
    if position is None:
        return _MAX_GENERATION
    if not position.isascii() or not position.isdecimal() or len(position) > 18:
        raise PageTokenMismatch
    return int(position)
