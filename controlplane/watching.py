"""Watches of the fleet: everything first, then what changed, put together while the reader was busy.

Rules:
1. A watch keeps nothing of what it has not sent yet but the ids that its reader knows: it looks at the fleet when its
   reader is ready for more, and tells what is true then. A slow reader hears less often, and costs no memory.
2. States that a node left again before the reader was ready are not told.
3. The reader's permission is asked for before every answer: a reload or a revoked key ends its watches.
4. A watch ends in good order when the control plane stops, and before its connection is renewed (trailer `RENEW`).
"""

import asyncio
import secrets
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from controlplane.fleet import Fleet
from controlplane.standing import Clock
from memplane.errors import InvalidField
from memplane.v1 import policy_admin_service_pb2 as admin_pb2

MAX_WATCHED_IDS = 10_000
COALESCE_S = 0.2
"""Least time between two answers of a watch: a reload changes every data plane within a second. Unmeasured."""


@dataclass(slots=True)
class _Reader:
    """What a reader knows: ids told and not taken back, and up to which change. `only` empty: all data planes."""

    only: frozenset[str]
    known: set[str] = field(default_factory=set)
    change: int = -1


class FleetWatches:
    """Every open watch of one fleet. `max_age_s`: when connections are renewed, 0: never."""

    def __init__(self, fleet: Fleet, clock: Clock, max_age_s: float):
        self._fleet = fleet
        self._clock = clock
        self._max_age_s = max_age_s
        self._closing = False
        self._jitter = secrets.SystemRandom()

    def close(self) -> None:
        """Ends every watch, also those that come later."""
        self._closing = True
        self._fleet.wake_all()

    async def watch(
        self, node_ids: Sequence[str], authorise: Callable[[], object], renew: Callable[[], object]
    ) -> AsyncGenerator[admin_pb2.WatchDataPlaneStatusesResponse, None]:
        """What to send. `authorise` raises when the reader may not know; `renew` hears that the watch is too old."""
        if len(node_ids) > MAX_WATCHED_IDS:
            raise InvalidField.one("node_ids", f"{len(node_ids)} ids; at most {MAX_WATCHED_IDS}, or none for all")
        reader = _Reader(frozenset(node_ids))
        now_s = asyncio.get_running_loop().time
        until_s = now_s() + self._age_s()
        while not self._closing and now_s() < until_s:
            authorise()
            is_first = reader.change < 0
            answer = self._answer(reader)
            if is_first or answer.data_planes or answer.removed_node_ids:
                yield answer
            await self._until_changed(reader.change, until_s)
        if not self._closing:
            renew()

    def _age_s(self) -> float:
        """As of policy streams: gRPC ends connections from nine tenths of the age on."""
        return (0.7 + 0.2 * self._jitter.random()) * self._max_age_s if self._max_age_s else float("inf")

    def _answer(self, reader: _Reader) -> admin_pb2.WatchDataPlaneStatusesResponse:
        """What the reader does not know yet, and notes that it does."""
        since, reader.change = reader.change, self._fleet.changes
        present = self._fleet.ids()
        changed = [name for name in self._fleet.changed(since) if not reader.only or name in reader.only]
        removed = sorted(reader.known - present)
        reader.known.difference_update(removed)
        reader.known.update(changed)
        now_us, target = self._clock.now_us(), self._fleet.target
        return admin_pb2.WatchDataPlaneStatusesResponse(
            data_planes=[self._fleet.status(name, now_us) for name in changed],
            version_info=target.version,
            generation=target.generation,
            removed_node_ids=removed,
        )

    async def _until_changed(self, change: int, until_s: float) -> None:
        """Until there is something new and COALESCE_S passed, the watch is too old, or everything stops."""
        with suppress(TimeoutError):
            async with asyncio.timeout_at(until_s if self._max_age_s else None):
                await self._fleet.changed_since(change)
                await asyncio.sleep(COALESCE_S)
