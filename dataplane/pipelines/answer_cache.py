"""Answers to equal questions, from the cache.

An answer is found again by the caller's readable scope, the policy's version, the embedding model and the query with
all that it says, but for what does not change the answer. It is sealed under the scope's stamp, read before the
memories were, and can be read only while that is the scope's stamp. So it is not used any more once a memory of the
scope was written, changed or forgotten by any data plane (`adapters.wrappers.cached_records` has the argument), once
the policy changed, or when the caller may read more or less. One with a forgotten memory in it is not used in any case.

An answer is kept only when every backend took part in it, and when it was read from the record store itself or from a
replica that had everything. It is kept for `query_cache_ttl_s`, at most until the first of its memories expires.
Meanwhile freshness, strength and access counts in it stand still, and a memory whose embedding came late is missing.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import astuple, dataclass, replace
from typing import Any

from dataplane.errors import BackendUnavailable
from dataplane.logic.profiles.signals import Signals
from dataplane.logic.rank import Ranked
from dataplane.model import Scope
from dataplane.pipelines.degraded import DegradedNotes
from dataplane.pipelines.lineage import Lineage
from dataplane.pipelines.stages import cut
from dataplane.ports import Cache, Clock, RecordReads, RecordStore
from dataplane.row_codec import LAYOUT, pack, unpack
from dataplane.sealing import seal, unseal
from memplane.policy.retrieve import Weights

SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True)
class Found:
    """An answer: hits, best first, the weights, the position up to which it holds everything, and where it was read.

    `reads` None: it was not read from the record store just now. `is_known`: it came from the cache.
    """

    hits: tuple[Ranked, ...]
    weights: Weights
    position: int
    degraded: DegradedNotes
    reads: RecordReads | None
    is_known: bool = False

    @property
    def is_recorded(self) -> bool:
        """Whether it is to be recorded what it was: not when it was made without the record store."""
        return self.is_known or self.reads is not None


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked. `words` holds, injectively, everything but the scope that the answer depends on.

    `ttl_s` 0: it shall not come from the cache. `at_least` is the position that the answer must hold.
    """

    scope: Scope
    words: str
    ttl_s: float
    at_least: int


@dataclass(frozen=True, slots=True)
class _Place:
    """Where an answer lies, and the stamp that it is sealed under."""

    scope: Scope
    key: str
    stamp: str


class AnswerCache:
    """Answers from the cache where it can; equal questions that come at once are answered once.

    What was kept in another past of the record store (`lineage`) is not found again. `hears_all` False: other processes
    change memories without this cache's hearing of it, so nothing comes from it.
    """

    def __init__(self, cache: Cache, store: RecordStore, clock: Clock, lineage: Lineage, *, hears_all: bool):
        self._cache = cache
        self._store = store
        self._clock = clock
        self._lineage = lineage
        self._hears_all = hears_all
        self._being_found: dict[_Place, asyncio.Event] = {}

    async def through(self, wish: Wish, find: Callable[[], Awaitable[Found]], deadline_s: float) -> Found:
        """The known answer, else what `find` finds. A cache that does not answer makes it slower, not wrong."""
        if wish.ttl_s <= 0 or not self._hears_all:
            return await find()
        key = f"answer:{hashlib.sha256(f'{LAYOUT}{self._lineage.name} {wish.words}'.encode()).hexdigest()}"
        try:
            stamp, value = await asyncio.gather(
                self._cache.stamp(wish.scope, deadline_s), self._value(wish, key, deadline_s)
            )
        except BackendUnavailable:
            return await find()
        place = _Place(wish.scope, key, stamp)
        known = await self._known(wish, place, value, deadline_s)
        if known is None and (first := self._being_found.get(place)) is not None:
            await _wait(first, cut(deadline_s))
            known = await self._known(wish, place, await self._value(wish, key, deadline_s), deadline_s)
        if known is not None:
            return known
        return await self._find_and_keep(wish, place, find, deadline_s)

    async def _find_and_keep(
        self, wish: Wish, place: _Place, find: Callable[[], Awaitable[Found]], deadline_s: float
    ) -> Found:
        told = self._being_found.setdefault(place, asyncio.Event())
        try:
            found = await find()
            await self._keep(wish, place, found, deadline_s)
        finally:
            if self._being_found.get(place) is told:
                del self._being_found[place]
            told.set()
        return found

    async def _value(self, wish: Wish, key: str, deadline_s: float) -> bytes | None:
        try:
            return (await self._cache.get(wish.scope, [key], deadline_s))[0]
        except BackendUnavailable:
            return None

    async def _known(self, wish: Wish, place: _Place, value: bytes | None, deadline_s: float) -> Found | None:
        try:
            known = self._usable(wish, place, value) if value is not None else None
            if known is not None and known.hits:
                ids = [hit.candidate.memory.memory_id for hit in known.hits]
                known = None if await self._cache.buried(ids, deadline_s) else known
        except (BackendUnavailable, ValueError):  # ValueError: something changed since, or somebody else wrote there
            return None
        return known

    def _usable(self, wish: Wish, place: _Place, value: bytes) -> Found | None:
        """The answer, unless it is too old for who asks; raises ValueError when something changed since."""
        head, rows = unpack(unseal(place.stamp, value))
        now_us = self._clock.now_us()
        if head["position"] < wish.at_least or now_us >= head["until_us"]:
            return None
        hits = [
            Ranked(row, score, confidence, Signals(*signals), age_us, tuple(words), idle_us)
            for row, (score, confidence, signals, age_us, words, idle_us) in zip(rows, head["hits"], strict=True)
        ]
        weights = Weights.model_construct(**head["weights"])
        return Found(tuple(hits), weights, head["position"], DegradedNotes(), None, is_known=True)

    async def _keep(self, wish: Wish, place: _Place, found: Found, deadline_s: float) -> None:
        now_us = self._clock.now_us()
        until_us = min((now_us + int(wish.ttl_s * SECOND_US), *_expiries_us(found)))
        if until_us <= now_us or found.degraded.messages():
            return
        try:
            if await self._is_whole(found, deadline_s):
                value = seal(place.stamp, _packed(found, until_us))
                await self._cache.put(wish.scope, {place.key: value}, (until_us - now_us) / SECOND_US, deadline_s)
        except BackendUnavailable:
            return  # it will be found again

    async def _is_whole(self, found: Found, deadline_s: float) -> bool:
        """Whether nothing was missing from where it was read. A replica had all when it was at the store's position."""
        return found.reads is self._store or found.position >= await self._store.last_position(deadline_s)


async def _wait(event: asyncio.Event, deadline_s: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout_at(deadline_s):
            await event.wait()


def _expiries_us(found: Found) -> list[int]:
    times_us = [hit.candidate.memory.expire_time_us for hit in found.hits]
    return [time_us for time_us in times_us if time_us is not None]


def _packed(found: Found, until_us: int) -> bytes:
    """The answer without its embeddings, which nobody needs any more."""
    head: dict[str, Any] = {
        "position": found.position,
        "until_us": until_us,
        "weights": found.weights.model_dump(),
        "hits": [
            (hit.score, hit.confidence, astuple(hit.signals), hit.age_us, hit.words, hit.idle_us) for hit in found.hits
        ],
    }
    return pack(head, [replace(hit.candidate, embedding=None) for hit in found.hits])
