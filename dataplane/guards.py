"""Guards the stores: every call of a backend within the limits of the policy in force."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

from dataplane.adapters.wrappers.guarded import READS, Guard, Limits, Probes, guarded, guarded_records
from dataplane.adapters.wrappers.lane import Lane
from dataplane.logic.breaker import BreakerState
from dataplane.model import SYSTEM_SCOPE
from dataplane.pipelines.spaces import VectorSpace
from dataplane.ports import Cache, Embedder, Index, RecordStore, TextIndex, VectorIndex, WriteQueue
from dataplane.stores import Stores
from memplane.policy.degradation import BackendLimits, DegradationPolicy
from memplane.policy.snapshot import PolicySnapshot

__all__ = ["READS", "BreakerReport", "Guards"]

PROBE = "probe"
"""What probes read, write and embed: the name of a marker, a key, a word."""
PROBE_TTL_S = 1.0
"""How long the cache keeps what a probe wrote."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class BreakerReport:
    """How a breaker stands. `age_s` is the time since its last change of state."""

    operations: str
    state: BreakerState
    age_s: float
    opened_count: int
    reason: str


class Guards:
    """Guards backends and tells how they stand. `policy` gives the snapshot in force; without one, defaults hold."""

    def __init__(self, policy: Callable[[], PolicySnapshot | None]):
        self._policy = policy
        self._default = DegradationPolicy()
        self._guards: list[Guard] = []
        self._now_s = asyncio.get_running_loop().time

    def guard(self, stores: Stores) -> Stores:
        """The same stores, guarded."""
        return replace(
            stores,
            records=self._records(stores.records),
            spaces=stores.spaces.over([self._space(space) for space in stores.spaces.all]),
            texts=self._texts(stores.texts),
            cache=self._cache(stores.cache),
            queue=self._queue(stores.queue) if stores.queue is not None else None,
        )

    def breakers(self, backend: str) -> list[BreakerReport]:
        """How a backend's breakers stand; of several backends of one name the worst of each sort.

        May be called from any thread.
        """
        worst: dict[str, Lane] = {}
        for lane in self._lanes(backend):
            known = worst.get(lane.operations)
            if known is None or _BADNESS[lane.breaker.state] > _BADNESS[known.breaker.state]:
                worst[lane.operations] = lane
        now_s = self._now_s()
        return [_report(lane, now_s) for lane in worst.values()]

    async def close(self) -> None:
        """Ends what goes on in the background. Idempotent."""
        for guard in self._guards:
            await guard.close()

    def _records(self, records: RecordStore) -> RecordStore:
        probes = Probes(records.last_position, lambda deadline_s: records.save_marker(PROBE, 0, deadline_s))
        limits = self._limits(lambda policy: policy.record_store)
        return self._kept(guarded_records(records, "record_store", limits, probes))

    def _space(self, space: VectorSpace) -> VectorSpace:
        embedder, vectors = space.embedder, space.vectors
        embedding = Probes(
            lambda deadline_s: embedder.embed_queries([PROBE], deadline_s),
            lambda deadline_s: embedder.embed_passages([PROBE], deadline_s),
        )
        of_embedder = self._limits(lambda policy: policy.embedder)
        of_vectors = self._limits(lambda policy: policy.vector_index)
        return VectorSpace(
            self._kept(guarded(embedder, Embedder, "embedder", of_embedder, embedding)),
            self._kept(guarded(vectors, VectorIndex, "vector_index", of_vectors, _of_index(vectors))),
            space.gate_model,
        )

    def _texts(self, texts: TextIndex) -> TextIndex:
        limits = self._limits(lambda policy: policy.text_index)
        return self._kept(guarded(texts, TextIndex, "text_index", limits, _of_index(texts)))

    def _cache(self, cache: Cache) -> Cache:
        probes = Probes(
            lambda deadline_s: cache.get(SYSTEM_SCOPE, [PROBE], deadline_s),
            lambda deadline_s: cache.put(SYSTEM_SCOPE, {PROBE: b""}, PROBE_TTL_S, deadline_s),
        )
        return self._kept(guarded(cache, Cache, "cache", self._limits(lambda policy: policy.cache), probes))

    def _queue(self, queue: WriteQueue) -> WriteQueue:
        limits = self._limits(lambda policy: policy.queue)
        return self._kept(guarded(queue, WriteQueue, "queue", limits, Probes(queue.depth, queue.depth)))

    def _kept(self, made: tuple[T, Guard]) -> T:
        found, guard = made
        self._guards.append(guard)
        return found

    def _limits(self, pick: Callable[[DegradationPolicy], BackendLimits]) -> Limits:
        def limits() -> BackendLimits:
            snapshot = self._policy()
            return pick(self._default if snapshot is None else snapshot.policies.degradation)

        return limits

    def _lanes(self, backend: str) -> Iterator[Lane]:
        return (lane for guard in self._guards if guard.backend == backend for lane in guard.lanes)


_BADNESS = {BreakerState.CLOSED: 0, BreakerState.HALF_OPEN: 1, BreakerState.OPEN: 2}


def _report(lane: Lane, now_s: float) -> BreakerReport:
    breaker = lane.breaker
    age_s = max(0.0, now_s - breaker.since_s)
    return BreakerReport(lane.operations, breaker.state, age_s, breaker.opened_count, breaker.reason)


def _of_index(index: Index) -> Probes:
    """An index is asked for its number of memories, and then to flush: nothing is put into it that is no memory."""

    async def write(deadline_s: float) -> None:
        await index.count(deadline_s)
        await index.flush(deadline_s)

    return Probes(index.count, write)
