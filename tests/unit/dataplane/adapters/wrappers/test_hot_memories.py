from collections.abc import Sequence
from typing import Any

import pytest

from dataplane.adapters.inmemory.record_store import InMemoryRecordStore
from dataplane.adapters.inprocess_cache import InProcessCache
from dataplane.adapters.wrappers.cached_records import cached_records
from dataplane.adapters.wrappers.hot_memories import hot_memories
from dataplane.adapters.wrappers.owing_cache import OwingCache
from dataplane.changes import Change, Erasure
from dataplane.errors import BackendUnavailable
from dataplane.model import Scope, State, StoredCandidate
from dataplane.ports import RecordReads
from tests.contract.builders import MODEL, NAMESPACE, NOW_US, commit_of, fields_of, memory_of, vector_of

SALES = Scope((NAMESPACE,))
NEVER_S = 1e12


class CountingStore(InMemoryRecordStore):
    """A store that tells which rows it was asked for."""

    def __init__(self) -> None:
        super().__init__(fields_of)
        self.asked: list[str] = []
        self.replica: RecordReads | None = None

    async def fetch(
        self, scope: Scope, memory_ids: Sequence[str], model: str, access_since_us: int, deadline_s: float
    ) -> list[StoredCandidate]:
        self.asked += memory_ids
        return await super().fetch(scope, memory_ids, model, access_since_us, deadline_s)

    async def reads(self, at_least: int, deadline_s: float) -> RecordReads:
        return self.replica or self


class Parts:
    def __init__(self) -> None:
        self.past = ""
        self.inner = CountingStore()
        self.below = InProcessCache(1_000_000, lambda: 0.0)
        cache = OwingCache(self.below)
        self.store = hot_memories(cached_records(self.inner, cache), cache, lambda: self.past)

    async def bodies(self, *memory_ids: str, scope: Scope = SALES, model: str = MODEL) -> list[bytes]:
        rows = await self.store.fetch(scope, memory_ids, model, NOW_US, NEVER_S)
        return sorted(row.memory.body for row in rows)


@pytest.fixture
async def parts() -> Parts:
    made = Parts()
    commits = [commit_of(memory_of(f"mem_{number}"), embedding=vector_of(number)) for number in range(3)]
    await made.store.commit(commits, NEVER_S)
    return made


async def test_rows_are_fetched_once_and_read_back_whole(parts: Parts) -> None:
    first = await parts.store.fetch(SALES, ["mem_1"], MODEL, NOW_US, NEVER_S)
    again = await parts.store.fetch(SALES, ["mem_1", "mem_1"], MODEL, NOW_US, NEVER_S)
    assert parts.inner.asked == ["mem_1"]
    assert again[0].memory == first[0].memory
    assert again[0].embedding is not None
    assert again[0].embedding.tolist() == vector_of(1).tolist()
    assert await parts.bodies("mem_0", "mem_1", "mem_9") == [b"mem_0", b"mem_1"]
    assert parts.inner.asked == ["mem_1", "mem_0", "mem_9"]


async def test_scopes_and_models_do_not_share_rows(parts: Parts) -> None:
    await parts.bodies("mem_1")
    assert await parts.bodies("mem_1", scope=Scope(("acme.hr",))) == []
    assert await parts.bodies("mem_1", model="another") == [b"mem_1"]
    assert parts.inner.asked == ["mem_1"] * 3


@pytest.mark.parametrize("change", ["update", "forget", "erase"])
async def test_a_changed_row_is_not_served(parts: Parts, change: str) -> None:
    await parts.bodies("mem_0", "mem_1")
    if change == "erase":
        erasure = Erasure(scope=SALES, memory_id="mem_1", now_us=NOW_US, principal_id="alice")
        await parts.store.erase(erasure, NEVER_S)
        assert await parts.bodies("mem_0", "mem_1") == [b"mem_0"]
        return
    state = State.ACTIVE if change == "update" else State.SOFT_DELETED
    memory = memory_of("mem_1", "changed", version=2, state=state)
    await parts.store.commit([commit_of(memory, change=Change.UPDATED, expected_version=1)], NEVER_S)
    rows = await parts.store.fetch(SALES, ["mem_1"], MODEL, NOW_US, NEVER_S)
    assert [(row.memory.body, row.memory.state) for row in rows] == [(b"changed", state)]


async def test_without_the_cache_rows_come_from_the_store(parts: Parts) -> None:
    async def lame(*_arguments: Any) -> Any:
        raise BackendUnavailable("cache")

    await parts.bodies("mem_1")
    for method in ("put", "get", "stamp"):
        setattr(parts.below, method, lame)
        assert await parts.bodies("mem_1", "mem_2") == [b"mem_1", b"mem_2"]


async def test_a_replica_is_handed_out_as_it_is(parts: Parts) -> None:
    assert await parts.store.reads(0, NEVER_S) is parts.store
    parts.inner.replica = InMemoryRecordStore(fields_of)
    assert await parts.store.reads(0, NEVER_S) is parts.inner.replica


async def test_what_somebody_else_wrote_into_the_cache_is_passed_over(parts: Parts) -> None:
    async def garbage(_scope: Scope, keys: list[str], _deadline_s: float) -> list[bytes | None]:
        return [b"\xff" * 9] * len(keys)

    parts.below.get = garbage  # type: ignore[method-assign,assignment]
    assert await parts.bodies("mem_1") == [b"mem_1"]


async def test_rows_of_a_past_that_is_gone_are_fetched_anew(parts: Parts) -> None:
    await parts.bodies("mem_1")
    parts.past = "1"
    await parts.bodies("mem_1")
    assert parts.inner.asked == ["mem_1", "mem_1"]
