"""PolicyAdminService, the part about the fleet: which data plane runs which policy."""

from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any

import grpc

from controlplane.admin_part import AdminPart
from controlplane.fleet import Fleet
from controlplane.page_tokens import page_size, page_token, position_of
from controlplane.standing import Clock
from controlplane.watching import FleetWatches
from memplane.rpc.lifetime import RENEW
from memplane.v1 import policy_admin_service_pb2 as admin_pb2

_Context = grpc.aio.ServicerContext[Any, Any]


@dataclass(frozen=True, slots=True)
class FleetView:
    """What is told of the fleet, and by whose clock.

    `folder_error` tells why the policy folder's content is not taken; empty: it is, or there is none.
    """

    fleet: Fleet
    watches: FleetWatches
    clock: Clock
    folder_error: Callable[[], str]


class FleetAdmin(AdminPart):
    """Lists and watches data planes."""

    _view: FleetView

    async def ListDataPlaneStatuses(  # noqa: N802 - named by the contract
        self, request: admin_pb2.ListDataPlaneStatusesRequest, context: _Context
    ) -> admin_pb2.ListDataPlaneStatusesResponse:
        """One page in the order of node ids."""
        self._require(context, "policy.read")
        size, fleet = page_size(request.page_size, 100), self._view.fleet
        after = position_of("ListDataPlaneStatuses", request.page_token) or ""
        found = fleet.page(after, size + 1, self._view.clock.now_us())
        response = admin_pb2.ListDataPlaneStatusesResponse(
            data_planes=found[:size],
            version_info=fleet.target.version,
            generation=fleet.target.generation,
            folder_error=self._view.folder_error(),
        )
        if len(found) > size:
            response.next_page_token = page_token("ListDataPlaneStatuses", found[size - 1].node.node_id)
        return response

    async def WatchDataPlaneStatuses(  # noqa: N802 - named by the contract
        self, request: admin_pb2.WatchDataPlaneStatusesRequest, context: _Context
    ) -> AsyncIterator[admin_pb2.WatchDataPlaneStatusesResponse]:
        """Everything, then what changes."""
        answers = self._view.watches.watch(
            request.node_ids,
            authorise=lambda: self._require(context, "policy.read"),
            renew=lambda: context.set_trailing_metadata(RENEW),
        )
        async with aclosing(answers):
            async for answer in answers:
                yield answer
