"""Rows of memories that searches fetch again and again, from the cache instead of the record store.

A row lies under the stamp of the scope it was fetched in, read before it was fetched, and is sealed by it: so one that
was changed or forgotten by any data plane is not found any more (`cached_records` has the argument, and must lie below
this). Access counts and strength in a row may lag by the time to live. What is fetched from a replica neither comes
from here nor goes there. A row enters when it is first fetched, working memory too: one put here by its writer could
replace what another has written since.

Off unless asked for: rows that Redis has came 1.8 times as fast as from PostgreSQL, rows that it lacked half as fast
(bench/cache.py, 2026-11), and each write in a namespace makes it lack all of them. It helps a record store that has no
time left.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from dataplane.errors import BackendUnavailable
from dataplane.model import DAY_US, Scope, StoredCandidate
from dataplane.ports import Cache, RecordReads, RecordStore
from dataplane.row_codec import LAYOUT, pack, unpack
from dataplane.sealing import seal, unseal


def hot_memories(inner: RecordStore, cache: Cache, past: Callable[[], str], ttl_s: float = 300.0) -> RecordStore:
    """The same record store, whose `fetch` goes by way of the cache.

    `past` names the record store's past: rows of another one are not found.
    """
    return cast(RecordStore, _HotMemories(inner, cache, past, ttl_s))


class _HotMemories:
    """Stands for `inner`."""

    def __init__(self, inner: RecordStore, cache: Cache, past: Callable[[], str], ttl_s: float):
        self._inner = inner
        self._past = past
        self._cache = cache
        self._ttl_s = ttl_s
        self._layout = hashlib.sha256(LAYOUT.encode()).hexdigest()[:16]

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        setattr(self, name, found)
        return found

    async def reads(self, at_least: int, deadline_s: float) -> RecordReads:
        """See the port."""
        found = await self._inner.reads(at_least, deadline_s)
        return cast(RecordStore, self) if found is self._inner else found

    async def fetch(
        self, scope: Scope, memory_ids: Sequence[str], model: str, access_since_us: int, deadline_s: float
    ) -> list[StoredCandidate]:
        """See the port."""
        ids = list(dict.fromkeys(memory_ids))
        try:
            stamp = await self._cache.stamp(scope, deadline_s)
            prefix = f"row:{self._layout}:{self._past()}:{stamp}:{access_since_us // DAY_US}:{model}:"
            known = await self._known(scope, stamp, [prefix + memory_id for memory_id in ids], deadline_s)
        except BackendUnavailable:
            return await self._inner.fetch(scope, memory_ids, model, access_since_us, deadline_s)
        missing = [memory_id for memory_id, row in zip(ids, known, strict=True) if row is None]
        rows = [row for row in known if row is not None]
        if not missing:
            return rows
        fetched = await self._inner.fetch(scope, missing, model, access_since_us, deadline_s)
        values = {prefix + row.memory.memory_id: seal(stamp, pack({}, [row])) for row in fetched}
        await self._keep(scope, values, deadline_s)
        return rows + fetched

    async def _known(
        self, scope: Scope, stamp: str, keys: Sequence[str], deadline_s: float
    ) -> list[StoredCandidate | None]:
        return [_row(stamp, value) for value in await self._cache.get(scope, keys, deadline_s)]

    async def _keep(self, scope: Scope, values: Mapping[str, bytes], deadline_s: float) -> None:
        try:
            await self._cache.put(scope, values, self._ttl_s, deadline_s)
        except BackendUnavailable:
            return  # they will be fetched again


def _row(stamp: str, value: bytes | None) -> StoredCandidate | None:
    if value is None:
        return None
    try:
        return unpack(unseal(stamp, value))[1][0]
    except ValueError:  # somebody else wrote there
        return None
