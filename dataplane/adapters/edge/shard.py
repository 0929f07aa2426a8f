"""One Edge shard in a folder of its own: opening, guarding, writing in slices, and what both indexes share.

Edge (0.9.0) lets go of the interpreter while it works, and most calls take less than a hop to a thread would: they run
on the loop, large work in slices with the loop's turn between them. `flush` waits for the disk (50 to 500 ms) and runs
in a thread; until then writes are in Edge's log, without fsync. Its optimizer is never run: it keeps the cores busy for
seconds, and up to 100,000 memories plain segments answer in milliseconds. The price: overwritten and deleted points
stay on disk, 2 KB for each of 384 dimensions, until `purge` copies the living ones into a new shard (all measured
2026-11). On a full disk nothing is written, not even by opening: see `room`; what is open is searched on.
"""

import asyncio
import shutil
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from itertools import islice
from pathlib import Path
from typing import TypeVar

from qdrant_edge import (
    CountRequest,
    EdgeConfig,
    EdgeShard,
    FloatIndexParams,
    KeywordIndexParams,
    Point,
    QueryRequest,
    UpdateOperation,
)

from dataplane.adapters.edge import requests
from dataplane.adapters.edge.filters import translate
from dataplane.adapters.edge.folder import ShardFolder
from dataplane.adapters.edge.requests import PAGE, SLICE, PointId, ScopedQuery, point_id
from dataplane.adapters.edge.room import DiskRoom
from dataplane.adapters.payload_filters import RANGE_FIELDS, passes, rows_in
from dataplane.errors import BackendUnavailable
from dataplane.model import Candidate, Held, IndexKey, Scope
from dataplane.ports import Examination

FORMAT = 5
"""Raise it when what is stored in a point or the folder changes: shards of another format are made anew."""

FieldIndex = KeywordIndexParams | FloatIndexParams
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class ShardSpec:
    """What a shard is made of. A shard on disk made to another `identity` is thrown away."""

    backend: str
    identity: Mapping[str, str | int]
    config: EdgeConfig


class Shard:
    """An open Edge shard. `recreated` tells that it was made anew, so that everything must be projected again.

    Edge reports every failure as a bare Exception, and a panic in its core as a BaseException of its own; both leave
    here as BackendUnavailable.
    """

    def __init__(
        self, folder: ShardFolder, spec: ShardSpec, room: DiskRoom, shard: EdgeShard, *, recreated: bool
    ) -> None:
        self._folder = folder
        self._room = room
        self._spec = spec
        self._shard: EdgeShard | None = shard
        self._writing = asyncio.Lock()
        self._keeping = asyncio.Lock()  # of beacons, which do not wait for other writes
        self.recreated = recreated

    @classmethod
    def open(cls, folder: Path, spec: ShardSpec) -> "Shard":
        """Opens the shard in a folder, or makes it anew when it is absent, unreadable or of another identity.

        Raises BackendUnavailable when even that fails, as with a full or read-only disk.
        """
        owned, room = ShardFolder(folder, {"format": FORMAT, **spec.identity}), DiskRoom(folder, spec.backend)
        room.require()
        current = _guarded(spec, owned.current)
        if current is not None:
            try:
                shard = _guarded(spec, lambda: EdgeShard.load(str(current)))
            except BackendUnavailable:
                pass  # A projection is rebuilt, not repaired.
            else:
                _guarded(spec, owned.remove_others)
                return cls(owned, spec, room, shard, recreated=False)
        return cls(owned, spec, room, _guarded(spec, lambda: _anew(owned, spec)), recreated=True)

    async def upsert(self, points: Iterable[Point], deadline_s: float) -> None:
        """Makes and writes points in slices; each slice is whole, in order."""
        async with self._turn(deadline_s):
            coming = iter(points)
            while some := list(islice(coming, SLICE)):
                await self._update(UpdateOperation.upsert_points(some), deadline_s)

    async def delete(self, keys: Sequence[IndexKey], deadline_s: float) -> None:
        """Removes points in slices."""
        async with self._turn(deadline_s):
            for start in range(0, len(keys), SLICE):
                ids = [point_id(key.memory_id) for key in keys[start : start + SLICE]]
                await self._update(UpdateOperation.delete_points(list(ids)), deadline_s)

    async def search(self, query: ScopedQuery, deadline_s: float) -> list[Candidate]:
        """The best points of a scope, best first.

        Where Edge cannot express the filter exactly, more are fetched and checked until `top_k` pass or no more come.
        """
        translation = translate(query.filter)
        asked = query.top_k if translation.exact else 4 * query.top_k
        while True:
            found = self._query(requests.request_of(query, translation, asked), deadline_s)
            kept = found if translation.exact else [hit for hit in found if passes(query.filter, hit[1])]
            if len(kept) >= query.top_k or len(found) < asked:
                return [candidate for candidate, _ in kept[: query.top_k]]
            asked *= 4
            await asyncio.sleep(0)

    async def versions(self, deadline_s: float) -> dict[str, Held]:
        """Every memory id with what is held of it."""
        versions: dict[str, Held] = {}
        offset: PointId | None = None
        while True:
            records, offset = self._call(partial(requests.scroll, offset), deadline_s)
            versions.update(map(requests.held_in, records))
            if offset is None:
                return versions
            await asyncio.sleep(0)

    async def held(self, keys: Sequence[IndexKey], deadline_s: float) -> dict[str, Held]:
        """What is held of these memories."""
        held: dict[str, Held] = {}
        for start in range(0, len(keys), PAGE):
            ids = [point_id(key.memory_id) for key in keys[start : start + PAGE]]
            held.update(map(requests.held_in, self._call(partial(requests.retrieve, ids), deadline_s)))
            await asyncio.sleep(0)
        return held

    async def count(self, deadline_s: float) -> int:
        """How many points there are."""
        return self._call(lambda shard: shard.count(CountRequest()), deadline_s)

    async def rows(self, scope: Scope, memory_ids: Sequence[str], deadline_s: float) -> dict[str, bytes]:
        """The packed rows of these memories in the scope."""
        rows: dict[str, bytes] = {}
        for start in range(0, len(memory_ids), PAGE):
            inside = requests.inside(scope, memory_ids[start : start + PAGE])
            records, _ = self._call(partial(requests.scroll_rows, inside), deadline_s)
            rows.update(rows_in(record.payload for record in records))
            await asyncio.sleep(0)
        return rows

    async def beacons(self, deadline_s: float) -> dict[str, int]:
        """The numbers kept beside the shard; none when its folder is gone."""
        self._live(deadline_s)
        return await self._in_thread(self._folder.beacons)

    async def save_beacon(self, name: str, value: int, deadline_s: float) -> None:
        """Keeps a number beside the shard, durably. Raises BackendUnavailable when its folder was gone."""
        self._room.require()
        await self._stand(deadline_s)
        async with _locked(self._keeping, self._spec.backend, deadline_s):
            await self._in_thread(lambda: self._folder.save_beacon(name, value))

    async def examine(self, deadline_s: float) -> Examination:
        """What it is; raises BackendUnavailable when it cannot be used."""
        await self.count(deadline_s)
        return Examination(f"Qdrant Edge {metadata.version('qdrant-edge-py')}")

    async def flush(self, deadline_s: float) -> None:
        """Makes every write so far durable. Raises BackendUnavailable when the folder was gone."""
        await self._stand(deadline_s)
        async with self._turn(deadline_s):
            self._room.require()
            await self._in_thread(self._live(deadline_s).flush)

    async def clear(self, deadline_s: float) -> None:
        """Makes the shard anew, empty."""
        async with self._turn(deadline_s), _locked(self._keeping, self._spec.backend, deadline_s):
            self._room.require()
            self._call(EdgeShard.close, deadline_s)
            self._make_anew()

    async def purge(self, deadline_s: float) -> None:
        """Copies the living points into a new shard and removes the old one with all that it still holds.

        Stopped or killed on the way, the old shard stays in force. Making, flushing and closing run in threads, since
        they wait for the disk; the points are copied in slices. Searches go on, writes wait.
        """
        async with self._turn(deadline_s):
            self._room.require()
            old, path = self._live(deadline_s), await self._in_thread(self._folder.spare)
            fresh = await self._in_thread(lambda: _create(path, self._spec))
            try:
                await self._copy(fresh, deadline_s)
                await self._in_thread(fresh.flush)
                await self._in_thread(lambda: self._folder.announce(path))
                _guarded(self._spec, self._folder.switch)
            except BaseException:
                with suppress(BackendUnavailable):  # What stays is removed by the next purge, or at the next opening.
                    _guarded(self._spec, lambda: _discard(fresh, path))
                raise
            self._shard = fresh
            await self._in_thread(lambda: _retire(old, self._folder))

    async def _copy(self, fresh: EdgeShard, deadline_s: float) -> None:
        offset: PointId | None = None
        while True:
            records, offset = self._call(partial(requests.scroll_whole, offset), deadline_s)
            points = [Point(record.id, record.vector or {}, record.payload) for record in records]
            if points:
                self._room.require()
                _guarded(self._spec, partial(fresh.update, UpdateOperation.upsert_points(points)))
            if offset is None:
                return
            await asyncio.sleep(0)

    async def _in_thread(self, work: Callable[[], Result]) -> Result:
        """Runs what waits for the disk. Cancelled, it still ends before anybody else touches the shard or its files."""
        running = asyncio.ensure_future(asyncio.to_thread(partial(_guarded, self._spec, work)))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.gather(running, return_exceptions=True)
            raise

    async def close(self) -> None:
        """Flushes, where there is room, and closes; what was not flushed is in Edge's log. Idempotent."""
        async with self._writing:
            shard, self._shard = self._shard, None
            if shard is not None:
                try:
                    if self._room.is_enough():
                        _guarded(self._spec, shard.flush)
                finally:
                    _guarded(self._spec, shard.close)

    async def _stand(self, deadline_s: float) -> None:
        """Makes anew what somebody removed while it was open, and says so: nobody may take it for what it was."""
        self._live(deadline_s)
        if await self._in_thread(self._folder.stands):
            return
        async with self._turn(deadline_s), _locked(self._keeping, self._spec.backend, deadline_s):
            shard = self._live(deadline_s)
            self._room.require()
            if not await self._in_thread(self._folder.stands):
                with suppress(BackendUnavailable):  # its files are gone
                    _guarded(self._spec, shard.close)
                self._make_anew()
        raise BackendUnavailable(self._spec.backend, "its folder was gone and was made anew, empty")

    def _make_anew(self) -> None:
        self._shard = None
        self._shard = _guarded(self._spec, lambda: _anew(self._folder, self._spec))

    def _turn(self, deadline_s: float) -> AbstractAsyncContextManager[None]:
        """Writers one after another, in the order they came."""
        return _locked(self._writing, self._spec.backend, deadline_s)

    async def _update(self, operation: UpdateOperation, deadline_s: float) -> None:
        self._room.require()
        self._call(lambda shard: shard.update(operation), deadline_s)
        await asyncio.sleep(0)

    def _query(self, request: QueryRequest, deadline_s: float) -> list[tuple[Candidate, list[str]]]:
        hits = []
        for point in self._call(lambda shard: shard.query(request), deadline_s):
            kept = point.payload or {}
            hits.append((Candidate(kept["memory_id"], kept["version"], point.score), kept.get("terms", [])))
        return hits

    def _call(self, work: Callable[[EdgeShard], Result], deadline_s: float) -> Result:
        shard = self._live(deadline_s)
        return _guarded(self._spec, lambda: work(shard))

    def _live(self, deadline_s: float) -> EdgeShard:
        if self._shard is None:
            raise BackendUnavailable(self._spec.backend, "closed")
        if asyncio.get_running_loop().time() > deadline_s:
            raise BackendUnavailable(self._spec.backend, "deadline passed")
        return self._shard


@asynccontextmanager
async def _locked(lock: asyncio.Lock, backend: str, deadline_s: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout_at(deadline_s):
            await lock.acquire()
    except TimeoutError as error:
        raise BackendUnavailable(backend, "deadline passed behind other writes") from error
    try:
        yield
    finally:
        lock.release()


def _guarded(spec: ShardSpec, work: Callable[[], Result]) -> Result:
    try:
        return work()
    except Exception as error:
        raise BackendUnavailable(spec.backend, str(error)) from error
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise BackendUnavailable(spec.backend, f"panic: {error}") from error


def _anew(folder: ShardFolder, spec: ShardSpec) -> EdgeShard:
    folder.empty()
    path = folder.spare()
    shard = _create(path, spec)
    folder.announce(path)
    folder.switch()
    return shard


def _create(path: Path, spec: ShardSpec) -> EdgeShard:
    shard = EdgeShard.create(str(path), spec.config)
    for field, params in _field_indexes().items():
        shard.update(UpdateOperation.create_field_index(field, params))
    return shard


def _discard(shard: EdgeShard, path: Path) -> None:
    shard.close()
    shutil.rmtree(path)


def _retire(shard: EdgeShard, folder: ShardFolder) -> None:
    shard.close()
    folder.remove_others()


def _field_indexes() -> dict[str, FieldIndex]:
    ranges = {path: FloatIndexParams(enable_hnsw=False) for path in RANGE_FIELDS}
    return {
        "namespace": KeywordIndexParams(is_tenant=True),
        "shared": KeywordIndexParams(enable_hnsw=False),
        "terms": KeywordIndexParams(enable_hnsw=False),
        **ranges,
    }
