"""A record store whose changes reach the cache before they are acknowledged.

Why no answer cached before a change is found after it was acknowledged. Who caches reads the stamp of the scope, then
the memories, and seals what it keeps by the stamp. A change is committed, then its namespace is dropped, then it is
acknowledged. After the acknowledgement every process reads a new stamp. What lies under the new stamp was read after
that stamp was, so after the drop, so after the commit: it holds the change. What was read before, or in between, lies
under an old stamp, however late it is put. Dropping before the commit would add nothing: what is read between such a
drop and the commit would lie under the new stamp without the change.

Where that chain could break:

* The cache cannot be reached for the drop: `OwingCache` keeps the namespaces until it has taken them.
* The caller hangs up in between: commit and drop go on without it.
* It is unknown whether the store committed, or will: the namespaces are dropped now and again after `UNSURE_S`.
* The process dies between commit and drop: nothing was acknowledged. The caller who asks again with the same request
  gets the first answer, and before that the namespaces are dropped. Who asks again without may have old answers cached
  until they expire; never with what it forgot, for that is buried before it is committed.
* Memories read from a replica that lags: `reads` hands out replicas as they are, and what is read from one is cached
  only when it had the store's last position after the stamp was read (`pipelines.answer_cache`).

Buried before it is known whether the change succeeds, a memory may keep a tombstone without being forgotten, when
somebody else changed it at the same time. Cached answers with it are then not used until it is changed again, and
searches without the record store leave it out.

What is forgotten is buried again before it is acknowledged: the cache may have lost the first tombstone, and somebody
may have vouched for it since without having seen the change (`pipelines.vouching`). What stands again is unburied after
the commit, and looked at after that: who forgot it in between had buried it before.
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, TypeVar, cast

from dataplane.adapters.wrappers.owing_cache import OwingCache
from dataplane.changes import Commit, Erasure, RequestRecord
from dataplane.errors import BackendUnavailable
from dataplane.model import Scope, State
from dataplane.ports import CommitResult, RecordReads, RecordStore

log = logging.getLogger("memplane.cache")

UNSURE_S = 10.0
"""After this long, a commit whose outcome was unknown has happened or never will. Unmeasured."""

T = TypeVar("T")


def cached_records(inner: RecordStore, cache: OwingCache) -> RecordStore:
    """The same record store, which keeps a cache in step; closing it does not close the cache."""
    return cast(RecordStore, _CachedRecords(inner, cache))


class _CachedRecords:
    """Stands for `inner`."""

    def __init__(self, inner: RecordStore, cache: OwingCache):
        self._inner = inner
        self._cache = cache
        self._going_on: set[asyncio.Task[Any]] = set()

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        setattr(self, name, found)
        return found

    async def reads(self, at_least: int, deadline_s: float) -> RecordReads:
        """See the port."""
        found = await self._inner.reads(at_least, deadline_s)
        return cast(RecordStore, self) if found is self._inner else found

    async def commit(self, commits: Sequence[Commit], deadline_s: float) -> list[CommitResult]:
        """See the port."""
        return await self._uninterrupted(self._commit(commits, deadline_s))

    async def erase(self, erasure: Erasure, deadline_s: float) -> int:
        """See the port."""
        return await self._uninterrupted(self._erase(erasure, deadline_s))

    async def find_requests(
        self, scope: Scope, principal_id: str, request_ids: Sequence[str], now_us: int, deadline_s: float
    ) -> list[RequestRecord]:
        """See the port. Who is answered a second time may have died before the cache heard of the first."""
        found = await self._inner.find_requests(scope, principal_id, request_ids, now_us, deadline_s)
        if found:
            await self._cache.drop(scope.namespaces, deadline_s)
        return found

    async def close(self) -> None:
        """See the port."""
        await asyncio.gather(*self._going_on, return_exceptions=True)
        await self._inner.close()

    async def _commit(self, commits: Sequence[Commit], deadline_s: float) -> list[CommitResult]:
        namespaces = _namespaces_of(commits)
        forgotten = [memory_id for memory_id, state in _states(commits) if state is not State.ACTIVE]
        standing = [memory_id for memory_id, state in _states(commits) if state is State.ACTIVE]
        if forgotten:
            await self._cache.bury(forgotten, deadline_s)
        restored = await self._buried(standing, deadline_s)
        try:
            results = await self._inner.commit(commits, deadline_s)
        except BackendUnavailable:
            self._doubt(namespaces)
            raise
        if forgotten:
            await self._cache.bury(forgotten, deadline_s)
        await self._cache.drop(namespaces, deadline_s)
        for commit in _succeeded(commits, results) if restored else ():
            if commit.memory is not None and commit.memory.memory_id in restored:
                await self._unbury(commit.scope, commit.memory.memory_id, deadline_s)
        return results

    async def _unbury(self, scope: Scope, memory_id: str, deadline_s: float) -> None:
        """Takes a tombstone away and, unless the memory is seen to stand then, puts it back."""
        await self._cache.unbury([memory_id], deadline_s)
        try:
            memory = await self._inner.get(scope, memory_id, deadline_s)
        except BackendUnavailable:
            memory = None
        if memory is None or memory.state is not State.ACTIVE:
            await self._cache.bury([memory_id], deadline_s)

    async def _erase(self, erasure: Erasure, deadline_s: float) -> int:
        namespaces = await self._namespaces_of(erasure, deadline_s)
        await self._cache.bury([erasure.memory_id], deadline_s)
        try:
            position = await self._inner.erase(erasure, deadline_s)
            await self._cache.bury([erasure.memory_id], deadline_s)
        except BackendUnavailable:
            self._doubt(namespaces)
            raise
        finally:
            await self._cache.drop(namespaces, deadline_s)
        return position

    async def _namespaces_of(self, erasure: Erasure, deadline_s: float) -> list[str]:
        if not erasure.scope.system:
            return list(erasure.scope.namespaces)
        memory = await self._inner.get(erasure.scope, erasure.memory_id, deadline_s)
        return [memory.namespace] if memory is not None else []

    async def _buried(self, memory_ids: Sequence[str], deadline_s: float) -> set[str]:
        try:
            return await self._cache.buried(memory_ids, deadline_s) if memory_ids else set()
        except BackendUnavailable:
            return set(memory_ids)  # unburying what is not buried does no harm

    def _doubt(self, namespaces: Sequence[str]) -> None:
        """Drops namespaces now and again when the outcome of their change is settled."""
        self._cache.owe(namespaces)
        asyncio.get_running_loop().call_later(UNSURE_S, self._cache.owe, namespaces)

    async def _uninterrupted(self, work: Coroutine[Any, Any, T]) -> T:
        """Awaits work that goes on when the caller is cancelled."""
        task = asyncio.ensure_future(work)
        self._going_on.add(task)
        task.add_done_callback(self._ended)
        return await asyncio.shield(task)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._going_on.discard(task)
        if not task.cancelled() and (error := task.exception()):
            log.debug("a change failed, of which its caller hears unless it is gone: %s", error)


def _namespaces_of(commits: Iterable[Commit]) -> list[str]:
    """The namespaces in which a batch changes memories; superseded ones lie in the namespace of their commit."""
    return list(dict.fromkeys(commit.namespace for commit in commits if commit.memory is not None))


def _states(commits: Iterable[Commit]) -> list[tuple[str, State]]:
    """Memories that were there before and get a new version, with their new state."""
    changed = [(commit.memory, commit.expected_version) for commit in commits if commit.memory is not None]
    return [(memory.memory_id, memory.state) for memory, before in changed if 0 < before < memory.version]


def _succeeded(commits: Iterable[Commit], results: Iterable[CommitResult]) -> Iterable[Commit]:
    return (commit for commit, result in zip(commits, results, strict=True) if result.error is None)
