"""One Edge shard in a folder of its own: opening, guarding, writing in slices, and what both indexes share.

Edge (0.9.0) holds the interpreter in every call, and most take less than a hop to a thread would: they run on the
loop, large work in slices with the loop's turn between them. What waits for the disk is done step by step, and the
disk has taken most of it before Edge asks: see `engine`. Until a flush writes are in Edge's log, without fsync. Its
optimizer is never run: it keeps the cores busy for seconds, and up to 100,000 memories plain segments answer in
milliseconds. The price: overwritten and deleted points stay on disk, 2 KB for each of 384 dimensions, until `purge`
copies the living ones into a new shard (all measured 2026-11). On a full disk nothing is written, not even by opening:
see `room` and `blocks`; what is open is searched on.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from functools import partial
from importlib import metadata
from itertools import count, islice
from pathlib import Path
from typing import TypeVar

from qdrant_edge import CountRequest, EdgeShard, Point, QueryRequest, UpdateOperation

from dataplane.adapters.edge import requests
from dataplane.adapters.edge.blank import taken_from
from dataplane.adapters.edge.engine import Engine, ShardSpec, guarded
from dataplane.adapters.edge.filters import translate
from dataplane.adapters.edge.folder import ShardFolder
from dataplane.adapters.edge.requests import PAGE, SLICE, PointId, ScopedQuery, point_id
from dataplane.adapters.edge.room import DiskRoom
from dataplane.adapters.payload_filters import passes, rows_in
from dataplane.errors import BackendUnavailable
from dataplane.model import Candidate, Held, IndexKey, Scope
from dataplane.ports import Examination

FORMAT = 5
"""Raise it when what is stored in a point or the folder changes: shards of another format are made anew."""
FLUSH_AFTER = 320
"""Slices that a purge copies between two flushes, each of which holds the interpreter. Unmeasured."""
REST_AFTER = 8
"""Slices that a purge copies before it rests for as long as they took: a call takes dozens of the loop's turns, and
would wait for a slice in each. Unmeasured."""

Result = TypeVar("Result")


class Shard:
    """An open Edge shard. `recreated` tells that it was made anew, so that everything must be projected again.

    Whatever Edge reports leaves here as BackendUnavailable.
    """

    def __init__(
        self, folder: ShardFolder, spec: ShardSpec, room: DiskRoom, engine: Engine, *, recreated: bool
    ) -> None:
        self._folder = folder
        self._room = room
        self._spec = spec
        self._engine: Engine | None = engine
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
        current = guarded(spec.backend, owned.current)
        engine = None if current is None else Engine.load(current, spec)
        if engine is None:  # A projection is rebuilt, not repaired.
            return cls(owned, spec, room, guarded(spec.backend, lambda: _anew(owned, spec)), recreated=True)
        guarded(spec.backend, owned.remove_others)
        return cls(owned, spec, room, engine, recreated=False)

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
            await self._flush(self._live(deadline_s))

    async def clear(self, deadline_s: float) -> None:
        """Makes the shard anew, empty."""
        async with self._turn(deadline_s), _locked(self._keeping, self._spec.backend, deadline_s):
            self._room.require()
            self._live(deadline_s).close()
            self._make_anew()

    async def purge(self, deadline_s: float) -> None:
        """Copies the living points into a new shard and removes the old one with all that it still holds.

        Stopped or killed on the way, the old shard stays in force. Searches go on, writes wait.
        """
        async with self._turn(deadline_s):
            self._room.require()
            old, fresh = self._live(deadline_s), await self._in_thread(lambda: _another(self._folder, self._spec))
            try:
                await self._copy(fresh, deadline_s)
                await self._flush(fresh)
                await self._in_thread(lambda: self._folder.announce(fresh.path))
                guarded(self._spec.backend, self._folder.switch)
            except BaseException:
                with suppress(BackendUnavailable):  # What stays is removed by the next purge, or at the next opening.
                    fresh.discard()
                raise
            self._engine = fresh
            await self._in_thread(lambda: _retire(old, self._folder))

    async def _copy(self, fresh: Engine, deadline_s: float) -> None:
        loop = asyncio.get_running_loop()
        offset, rested_at_s = self._copy_slice(fresh, None, deadline_s), loop.time()
        for copied in count(1):
            if offset is None:
                return
            if copied % FLUSH_AFTER == 0:
                await self._flush(fresh)
            if copied % REST_AFTER == 0:
                await asyncio.sleep(loop.time() - rested_at_s)
                rested_at_s = loop.time()
            else:
                await asyncio.sleep(0)
            offset = self._copy_slice(fresh, offset, deadline_s)

    def _copy_slice(self, fresh: Engine, offset: PointId | None, deadline_s: float) -> PointId | None:
        """Where the next slice begins; None behind the last one."""
        records, offset = self._call(partial(requests.scroll_whole, offset), deadline_s)
        points = [Point(record.id, record.vector or {}, record.payload) for record in records]
        if points:
            self._room.require()
            fresh.update(UpdateOperation.upsert_points(points))
        return offset

    async def _flush(self, engine: Engine) -> None:
        await self._in_thread(engine.settle)
        await self._in_thread(engine.flush)

    async def _in_thread(self, work: Callable[[], Result]) -> Result:
        """Runs what waits for the disk. Cancelled, it still ends before anybody else touches the shard or its files."""
        running = asyncio.ensure_future(asyncio.to_thread(partial(guarded, self._spec.backend, work)))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.gather(running, return_exceptions=True)
            raise

    async def close(self) -> None:
        """Flushes, where there is room, and closes; what was not flushed is in Edge's log. Idempotent."""
        async with self._writing:
            engine, self._engine = self._engine, None
            if engine is not None:
                try:
                    if self._room.is_enough():
                        await self._flush(engine)
                finally:
                    engine.close()

    async def _stand(self, deadline_s: float) -> None:
        """Makes anew what somebody removed while it was open, and says so: nobody may take it for what it was."""
        self._live(deadline_s)
        if await self._in_thread(self._folder.stands):
            return
        async with self._turn(deadline_s), _locked(self._keeping, self._spec.backend, deadline_s):
            engine = self._live(deadline_s)
            self._room.require()
            if not await self._in_thread(self._folder.stands):
                with suppress(BackendUnavailable):  # its files are gone
                    engine.close()
                self._make_anew()
        raise BackendUnavailable(self._spec.backend, "its folder was gone and was made anew, empty")

    def _make_anew(self) -> None:
        self._engine = None
        self._engine = guarded(self._spec.backend, lambda: _anew(self._folder, self._spec))

    def _turn(self, deadline_s: float) -> AbstractAsyncContextManager[None]:
        """Writers one after another, in the order they came."""
        return _locked(self._writing, self._spec.backend, deadline_s)

    async def _update(self, operation: UpdateOperation, deadline_s: float) -> None:
        self._room.require()
        self._live(deadline_s).update(operation)
        await asyncio.sleep(0)

    def _query(self, request: QueryRequest, deadline_s: float) -> list[tuple[Candidate, list[str]]]:
        hits = []
        for point in self._call(lambda shard: shard.query(request), deadline_s):
            kept = point.payload or {}
            hits.append((Candidate(kept["memory_id"], kept["version"], point.score), kept.get("terms", [])))
        return hits

    def _call(self, work: Callable[[EdgeShard], Result], deadline_s: float) -> Result:
        shard = self._live(deadline_s).shard
        return guarded(self._spec.backend, lambda: work(shard))

    def _live(self, deadline_s: float) -> Engine:
        if self._engine is None:
            raise BackendUnavailable(self._spec.backend, "closed")
        if asyncio.get_running_loop().time() > deadline_s:
            raise BackendUnavailable(self._spec.backend, "deadline passed")
        return self._engine


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


def _anew(folder: ShardFolder, spec: ShardSpec) -> Engine:
    folder.empty()
    engine = _made(folder, spec)
    try:
        folder.announce(engine.path)
        folder.switch()
    except BaseException:
        with suppress(BackendUnavailable):
            engine.discard()
        raise
    return engine


def _another(folder: ShardFolder, spec: ShardSpec) -> Engine:
    blank = folder.blank()
    laid = None if blank is None else Engine.lay_out(blank, folder.spare(), spec)
    return laid or _made(folder, spec)


def _made(folder: ShardFolder, spec: ShardSpec) -> Engine:
    engine = Engine.create(folder.spare(), spec)
    try:
        folder.keep_blank(taken_from(engine.path))
    except BaseException:
        with suppress(BackendUnavailable):
            engine.discard()
        raise
    return engine


def _retire(engine: Engine, folder: ShardFolder) -> None:
    engine.settle()
    engine.close()
    folder.remove_others()
