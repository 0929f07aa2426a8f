"""A record store with memories, indexes that tests may spoil, and somebody who projects: for checks and rebuilds."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from dataplane.adapters.inmemory.entries import newest
from dataplane.adapters.inmemory.record_store import InMemoryRecordStore
from dataplane.changes import Change, Failure, Lease, OutboxRow
from dataplane.errors import BackendUnavailable
from dataplane.logic.fingerprint import fingerprint
from dataplane.model import Candidate, Filter, Held, IndexEntry, IndexKey, Scope, State, Vector
from dataplane.pipelines.caller import Caller
from dataplane.pipelines.check_indexes import CheckIndexes
from dataplane.pipelines.followed import FollowedIndex, FollowedIndexes
from dataplane.pipelines.rebuild import RebuildOptions, RebuildParts
from dataplane.pipelines.reindex import Reindexing, ReindexOptions
from dataplane.pipelines.spaces import Spaces, VectorSpace
from dataplane.ports import Examination
from memplane.identity import Identity
from memplane.policy.access import AccessIndex
from memplane.policy.effective import EffectivePolicies
from memplane.policy.model import PolicySet
from memplane.policy.rbac import Grant, Principal, Rbac
from memplane.policy.snapshot import PolicySnapshot
from tests.contract.builders import NOW_US, commit_of, fields_of, memory_of, vector_of
from tests.unit.dataplane.pipelines.model_parts import NamedEmbedder

OLD, NEW = "old-model", "new-model"
VECTOR, NEXT, TEXT = f"vector_index:{OLD}", f"vector_index:{NEW}", "text_index:words"
WINDOW = 6
REBUILD = RebuildOptions(page_size=4, window=WINDOW, look_s=0.0, backoff_s=0.0)
OPTIONS = ReindexOptions(look_s=0.0, abandoned_s=30.0, rebuild=REBUILD)


def grants(*permissions: str, namespace: str = "*") -> Caller:
    """Somebody with these permissions."""
    rules = Rbac(principals={"op": Principal(grants=(Grant(namespace=namespace, permissions=permissions),))})
    policies = EffectivePolicies(PolicySet(rbac=rules))
    return Caller(Identity("op"), PolicySnapshot("sha256:1", 1, 0, policies, AccessIndex(rules, None)))


OPERATOR = grants("maintenance")


def soon() -> float:
    return asyncio.get_running_loop().time() + 10


class StillClock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.time_us = NOW_US

    def now_us(self) -> int:
        return self.time_us


class OpenIndex:
    """A vector or text index in a dict that tests may reach into; `down` makes it fail so many calls."""

    def __init__(self, model: str, active: list[str]):
        self.entries: dict[str, IndexEntry] = {}
        self.model = model
        self.down = 0
        self._active = active

    async def upsert(self, entries: Sequence[IndexEntry], deadline_s: float) -> None:
        self._answer()
        self.entries.update(newest(entries, self.entries))

    async def delete(self, keys: Sequence[IndexKey], deadline_s: float) -> None:
        for key in keys:
            self.entries.pop(key.memory_id, None)

    async def versions(self, deadline_s: float) -> dict[str, Held]:
        self._answer()
        return {name: Held(each.version, each.namespace, fingerprint(each)) for name, each in self.entries.items()}

    async def held(self, keys: Sequence[IndexKey], deadline_s: float) -> dict[str, Held]:
        everything = await self.versions(deadline_s)
        return {key.memory_id: everything[key.memory_id] for key in keys if key.memory_id in everything}

    async def count(self, deadline_s: float) -> int:
        return len(self.entries)

    async def flush(self, deadline_s: float) -> None:
        self._answer()

    async def purge(self, deadline_s: float) -> None: ...

    async def clear(self, deadline_s: float) -> None:
        self.entries.clear()

    async def search(
        self, scope: Scope, vector: Vector, filter: Filter, top_k: int, ef: int, deadline_s: float
    ) -> list[Candidate]:
        return []

    async def active_model(self, deadline_s: float) -> str:
        return self._active[0]

    async def activate(self, deadline_s: float) -> None:
        self._active[0] = self.model

    async def examine(self, deadline_s: float) -> Examination:
        return Examination("a dict")

    async def close(self) -> None: ...

    def _answer(self) -> None:
        if self.down:
            self.down -= 1
            raise BackendUnavailable("vector_index", "down")


def vector_entry(row: OutboxRow) -> IndexEntry:
    """A row as the vector index keeps it."""
    assert row.memory is not None
    memory = row.memory
    return IndexEntry(memory.memory_id, memory.version, memory.namespace, memory.pool, {}, embedding=row.embedding)


def text_entry(row: OutboxRow) -> IndexEntry:
    """A row as the text index keeps it."""
    assert row.memory is not None
    memory = row.memory
    words = tuple(memory.body.decode().split())
    return IndexEntry(memory.memory_id, memory.version, memory.namespace, memory.pool, {}, tokens=words)


class Upkeep:
    """Everything of one data plane that checks and rebuilds; several may share a store."""

    def __init__(
        self,
        store: InMemoryRecordStore,
        clock: StillClock,
        indexes: dict[str, OpenIndex] | None = None,
        follows: Sequence[str] = (),
    ):
        active = [OLD]
        self.store = store
        self.index = indexes or {
            VECTOR: OpenIndex(OLD, active),
            NEXT: OpenIndex(NEW, active),
            TEXT: OpenIndex("", active),
        }
        self.clock = clock
        old = VectorSpace(NamedEmbedder(OLD), self.index[VECTOR], None)
        new = VectorSpace(NamedEmbedder(NEW), self.index[NEXT], None)
        self.spaces = Spaces([old, new])
        self.followed = [
            FollowedIndex(VECTOR, self.index[VECTOR], vector_entry, old),
            FollowedIndex(NEXT, self.index[NEXT], vector_entry, new),
            FollowedIndex(TEXT, self.index[TEXT], text_entry),
        ]
        indexes_of = FollowedIndexes(
            [each for each in self.followed if each.name in (follows or self.index)], self.spaces
        )
        shares = iter(range(10**9))
        self.checks = CheckIndexes(store, indexes_of, lambda: next(shares) * 0.618_034 % 1.0)
        parts = RebuildParts(store, self.checks, self.spaces, self.clock)
        ids = iter(range(10**9))
        self.reindexing = Reindexing(parts, indexes_of, lambda: f"{next(ids):032x}", OPTIONS)

    def beside(self, follows: Sequence[str] = ()) -> "Upkeep":
        """Another data plane on the same store and indexes, which follows these (default: all)."""
        return Upkeep(self.store, self.clock, self.index, follows)

    async def remember(self, *memory_ids: str) -> None:
        """Stores memories, embedded by the old model."""
        commits = [
            commit_of(memory_of(each), embedding=vector_of(len(each)), embedding_model=OLD) for each in memory_ids
        ]
        results = await self.store.commit(commits, soon())
        assert all(result.error is None for result in results)

    async def revise(self, memory_id: str) -> None:
        """Gives a memory another version."""
        memory = memory_of(memory_id, content=f"{memory_id} anew", version=2)
        commit = commit_of(
            memory, change=Change.UPDATED, expected_version=1, embedding=vector_of(99), embedding_model=OLD
        )
        (result,) = await self.store.commit([commit], soon())
        assert result.error is None

    async def give_up(self, name: str) -> int:
        """Gives up whatever waits to reach an index; how many rows."""
        rows = await self.store.lease_outbox(name, Lease("p", 60.0), 1_000, OLD, soon())
        await self.store.postpone_outbox(name, "p", [Failure(row, "too odd", None) for row in rows], soon())
        return len(rows)

    async def project(self, *names: str, limit: int = 10_000) -> int:
        """Brings what waits into indexes (all those registered), as a projector does; how many rows."""
        applied = 0
        known = {item.index for item in await self.store.progress(soon())}
        for followed in self.followed:
            if followed.name in (names or known):
                applied += await self._project(followed, limit)
        return applied

    async def _project(self, followed: FollowedIndex, limit: int) -> int:
        rows = await self.store.lease_outbox(followed.name, Lease("p", 60.0), limit, followed.model, soon())
        for row in rows:
            if row.memory is None or row.memory.state is not State.ACTIVE:
                await followed.index.delete([IndexKey(row.memory_id, row.namespace)], soon())
                continue
            whole = await self._embedded(row, followed.space)
            await followed.index.upsert([followed.entry_of(whole)], soon())
        await self.store.settle_outbox(followed.name, "p", rows, soon())
        return len(rows)

    async def _embedded(self, row: OutboxRow, space: VectorSpace | None) -> OutboxRow:
        assert row.memory is not None
        if space is None or row.embedding is not None:
            return row
        (vector,) = await space.embedder.embed_passages([row.memory.body.decode()], soon())
        await self.store.save_embedding(row.memory_id, row.memory.version, space.model, vector, soon())
        return OutboxRow(row.position, row.memory_id, row.namespace, row.memory, vector, row.covers, row.attempts)

    @asynccontextmanager
    async def projecting(self) -> AsyncIterator[None]:
        """Projects in the background, three rows at a time."""

        async def forever() -> None:
            while True:
                await self.project(limit=3)
                await asyncio.sleep(0)

        task = asyncio.create_task(forever())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def an_upkeep(*memory_ids: str, names: Sequence[str] = (VECTOR, TEXT)) -> Upkeep:
    """One whose indexes are registered and level with these memories."""
    clock = StillClock()
    upkeep = Upkeep(InMemoryRecordStore(fields_of, clock), clock)
    for name in names:
        await upkeep.store.register_index(name, soon())
    await upkeep.remember(*memory_ids)
    await upkeep.project()
    return upkeep
