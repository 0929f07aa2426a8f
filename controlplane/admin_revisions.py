"""PolicyAdminService, the part about revisions: what differs between two, and the way back to an earlier one."""

import asyncio
from typing import Any

import grpc

from controlplane.admin_part import AdminPart
from controlplane.compile import Compiled
from controlplane.convert import access_change_message, diagnostic_messages, value_change_message
from controlplane.diff import Difference, difference
from controlplane.fleet import Fleet, Target
from controlplane.reload import Command, Reloader
from controlplane.requests import (
    MAX_COMMENT_BYTES,
    MAX_REQUEST_ID_BYTES,
    check_bytes,
    inline_of,
    payload_sha256,
    wait_s_of,
)
from controlplane.revisions import Revision, RevisionStore
from controlplane.snapshots import Snapshots
from memplane.errors import InvalidField, RevisionNotFound
from memplane.v1 import policy_admin_service_pb2 as admin_pb2
from memplane.v1 import policy_pb2

ORIGIN = "rollback"
_MOST = 2**31 - 1
"""What fits into the contract's counts."""

_Context = grpc.aio.ServicerContext[Any, Any]


class RevisionsAdmin(AdminPart):
    """Compares policy sets and goes back to earlier ones."""

    _reloader: Reloader
    _store: RevisionStore
    _snapshots: Snapshots
    _fleet: Fleet

    async def DiffPolicySet(  # noqa: N802 - named by the contract
        self, request: admin_pb2.DiffPolicySetRequest, context: _Context
    ) -> admin_pb2.DiffPolicySetResponse:
        """Tells what would change; compared off the event loop."""
        self._require(context, "policy.read")
        _check_diff(request)
        base = await self._base(request.base_generation)
        proposed = await self._proposed(request)
        response = admin_pb2.DiffPolicySetResponse(
            diagnostics=diagnostic_messages(proposed.diagnostics), total_diagnostics=len(proposed.diagnostics)
        )
        if proposed.policy is not None:
            _fill(response, await asyncio.to_thread(difference, base, proposed))
        return response

    async def RollbackPolicySet(  # noqa: N802 - named by the contract
        self, request: admin_pb2.RollbackPolicySetRequest, context: _Context
    ) -> admin_pb2.RollbackPolicySetResponse:
        """Puts old documents in force, compiled again by this build; API keys stay as they are."""
        author = self._require(context, "policy.reload")
        wait_s = wait_s_of(request)
        command = await self._rollback(request, author)
        expected = self._fleet.connected_ids()
        taken = await self._reloader.reload(command, lambda: self._require(context, "policy.reload"))
        return admin_pb2.RollbackPolicySetResponse(
            revision=taken.revision if taken.HasField("revision") else None,
            propagation=await self._propagation(taken, expected, wait_s),
            diagnostics=taken.diagnostics,
            accepted=taken.accepted,
            total_diagnostics=taken.total_diagnostics,
        )

    async def _propagation(
        self, taken: admin_pb2.ReloadPolicySetResponse, expected: frozenset[str], wait_s: float
    ) -> policy_pb2.PropagationSummary:
        """How far a revision has come, after waiting for the data planes that were connected, when asked to."""
        target = Target(taken.revision.version_info, taken.revision.generation)
        if taken.accepted and wait_s > 0 and expected:
            return await self._fleet.wait_for_acks(target, expected, wait_s)
        return self._fleet.propagation(target, expected)

    async def _rollback(self, request: admin_pb2.RollbackPolicySetRequest, author: str) -> Command:
        check_bytes("request_id", request.request_id, MAX_REQUEST_ID_BYTES)
        check_bytes("comment", request.comment, MAX_COMMENT_BYTES)
        if request.generation < 1:
            raise InvalidField.one("generation", "required: the generation to go back to, from 1")
        revision = await self._revision(request.generation)
        return Command(
            documents=revision.documents,
            author=author,
            origin=ORIGIN,
            comment=request.comment or f"back to generation {request.generation}",
            etag=request.etag,
            allow_shrink=request.allow_shrink,
            request_id=request.request_id,
            payload_sha256=payload_sha256(request, "request_id", "wait_for_acks"),
        )

    async def _base(self, generation: int) -> Compiled | None:
        """What is compared with; None: nothing is in force."""
        current = self._snapshots.current
        if generation == 0 or (current is not None and current.revision.generation == generation):
            return current.compiled if current is not None else None
        revision = await self._revision(generation)
        compiled = await self._reloader.compile(revision.documents, with_cases=False)
        if compiled.policy is None:
            raise InvalidField.one("base_generation", f"generation {generation} does not compile with this build")
        return compiled

    async def _proposed(self, request: admin_pb2.DiffPolicySetRequest) -> Compiled:
        if request.generation == 0:
            return await self._reloader.compile(inline_of(request))
        return await self._reloader.compile((await self._revision(request.generation)).documents)

    async def _revision(self, generation: int) -> Revision:
        found = await self._store.get(generation)
        if found is None:
            raise RevisionNotFound(generation)
        return found


def _check_diff(request: admin_pb2.DiffPolicySetRequest) -> None:
    for field, value in (("generation", request.generation), ("base_generation", request.base_generation)):
        if value < 0:
            raise InvalidField.one(field, "a generation from 1, or 0")
    if request.generation and request.HasField("inline"):
        raise InvalidField.one("generation", "`inline` is given, too; propose one of the two")


def _fill(response: admin_pb2.DiffPolicySetResponse, found: Difference) -> None:
    response.values.extend(value_change_message(each) for each in found.values)
    response.total_values = found.total_values
    response.accesses.extend(access_change_message(each) for each in found.accesses)
    response.total_accesses = min(found.total_accesses, _MOST)
    response.shrinks.extend(found.shrinks)
