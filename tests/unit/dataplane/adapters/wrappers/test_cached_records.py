"""Nothing cached before a change is found after it was acknowledged, in whatever order the steps fall."""

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations
from typing import Any

import pytest

from dataplane.adapters.inmemory.record_store import InMemoryRecordStore
from dataplane.adapters.inprocess_cache import InProcessCache
from dataplane.adapters.wrappers import cached_records as module
from dataplane.adapters.wrappers.cached_records import cached_records
from dataplane.adapters.wrappers.owing_cache import OwingCache
from dataplane.changes import Change, Erasure
from dataplane.errors import BackendUnavailable, StaleVersion
from dataplane.model import SYSTEM_SCOPE, Memory, Scope, State
from dataplane.ports import RecordStore
from tests.contract.builders import NAMESPACE, NOW_US, commit_of, fields_of, memory_of
from tests.deadline import eventually, eventually_async

SALES = Scope((NAMESPACE,))
NEVER_S = 1e12


class Parts:
    """A store over a cache, and both below it."""

    def __init__(self) -> None:
        self.inner = InMemoryRecordStore(fields_of)
        self.below = InProcessCache(100_000, lambda: 0.0)
        self.cache = OwingCache(self.below)
        self.store: RecordStore = cached_records(self.inner, self.cache)

    async def answer(self) -> bytes:
        """What a search by the rules gives: by stamp, from the cache, else from the store."""
        stamp = await self.cache.stamp(SALES, NEVER_S)
        (known,) = await self.cache.get(SALES, [stamp], NEVER_S)
        if known is not None:
            return known
        memory = await self.store.get(SALES, "mem_1", NEVER_S)
        said = memory.body if memory is not None and memory.state is State.ACTIVE else b"(nothing)"
        await self.cache.put(SALES, {stamp: said}, 60, NEVER_S)
        return said


@pytest.fixture
async def parts() -> Parts:
    made = Parts()
    await made.store.commit([commit_of(memory_of("mem_1", "old"))], NEVER_S)
    return made


def _changed(version: int, content: str, **fields: Any) -> Memory:
    return replace(memory_of("mem_1", content), version=version, **fields)


def _update(version: int, content: str, **fields: Any) -> Any:
    memory = _changed(version, content, **fields)
    return commit_of(memory, change=Change.UPDATED, expected_version=version - 1)


def _orders(writer_steps: int, reader_steps: int) -> Iterator[str]:
    total = writer_steps + reader_steps
    for chosen in combinations(range(total), writer_steps):
        yield "".join("w" if step in chosen else "r" for step in range(total))


def _in_turn(owner: object, name: str, turn: Callable[[], Any]) -> None:
    """Makes a method wait for its turn before and after it works."""
    call = getattr(owner, name)

    async def waiting(*arguments: Any) -> Any:
        await turn()
        answer = await call(*arguments)
        await turn()
        return answer

    setattr(owner, name, waiting)


class Turns:
    """Lets tasks of this process run one step at a time, in an order given."""

    def __init__(self) -> None:
        self._waiting: dict[str, asyncio.Future[None]] = {}
        self.names: dict[asyncio.Task[Any], str] = {}

    async def turn(self) -> None:
        name = next((name for task, name in self.names.items() if task is asyncio.current_task()), "w")
        self._waiting[name] = asyncio.get_running_loop().create_future()
        await self._waiting[name]

    async def step(self, name: str) -> None:
        waiting = self._waiting.pop(name, None)
        if waiting is not None:
            waiting.set_result(None)
        for _ in range(10):
            await asyncio.sleep(0)


@pytest.mark.parametrize("change", ["update", "forget", "erase"])
async def test_in_every_order_of_steps_what_was_acknowledged_is_answered(change: str) -> None:
    for order in _orders(writer_steps=4, reader_steps=6):
        parts = Parts()
        await parts.store.commit([commit_of(memory_of("mem_1", "old"))], NEVER_S)
        turns = Turns()
        for owner, name in ((parts.inner, "commit"), (parts.inner, "erase"), (parts.inner, "get")):
            _in_turn(owner, name, turns.turn)
        for name in ("drop", "stamp", "put"):
            _in_turn(parts.below, name, turns.turn)
        reader = asyncio.create_task(parts.answer())
        turns.names[reader] = "r"
        writer = asyncio.create_task(_make(change, parts.store))
        await asyncio.sleep(0)
        for name in order:
            await turns.step(name)
        for _ in range(20):
            await turns.step("w")
        assert writer.done()
        late = asyncio.create_task(parts.answer())
        turns.names[late] = "l"
        for _ in range(20):
            await turns.step("l")
        for _ in range(20):
            await turns.step("r")
        last = asyncio.create_task(parts.answer())
        turns.names[last] = "z"
        for _ in range(20):
            await turns.step("z")
        wanted = b"new" if change == "update" else b"(nothing)"
        assert (order, await late, await last) == (order, wanted, wanted)
        assert await reader in (b"old", wanted)


async def _make(change: str, store: RecordStore) -> None:
    if change == "update":
        await store.commit([_update(2, "new")], NEVER_S)
    elif change == "forget":
        await store.commit([_update(2, "old", state=State.SOFT_DELETED)], NEVER_S)
    else:
        await store.erase(Erasure(scope=SALES, memory_id="mem_1", now_us=NOW_US, principal_id="alice"), NEVER_S)


async def test_the_system_s_erasure_drops_the_memory_s_namespace(parts: Parts) -> None:
    assert await parts.answer() == b"old"
    erasure = Erasure(scope=SYSTEM_SCOPE, memory_id="mem_1", now_us=NOW_US, principal_id="alice")
    await parts.store.erase(erasure, NEVER_S)
    assert await parts.answer() == b"(nothing)"


async def test_the_forgotten_are_buried_before_they_are_committed_and_unburied_when_they_stand(parts: Parts) -> None:
    seen: list[set[str]] = []
    inner_commit = parts.inner.commit

    async def looking(*arguments: Any) -> Any:
        seen.append(await parts.below.buried(["mem_1"], NEVER_S))
        return await inner_commit(*arguments)

    parts.inner.commit = looking  # type: ignore[method-assign,assignment]
    await parts.store.commit([_update(2, "old", state=State.SOFT_DELETED)], NEVER_S)
    assert await parts.below.buried(["mem_1"], NEVER_S) == {"mem_1"}
    await parts.store.commit([_update(3, "old")], NEVER_S)
    assert await parts.below.buried(["mem_1"], NEVER_S) == set()
    assert seen == [{"mem_1"}, {"mem_1"}]


async def test_a_lost_race_unburies_nothing(parts: Parts) -> None:
    await parts.store.commit([_update(2, "old", state=State.SOFT_DELETED)], NEVER_S)
    results = await parts.store.commit([_update(2, "newer")], NEVER_S)
    assert isinstance(results[0].error, StaleVersion)
    assert await parts.below.buried(["mem_1"], NEVER_S) == {"mem_1"}


async def test_writes_succeed_without_the_cache_and_its_answers_are_not_trusted(parts: Parts) -> None:
    async def lame(*_arguments: Any) -> None:
        raise BackendUnavailable("cache")

    assert await parts.answer() == b"old"
    whole = {name: getattr(parts.below, name) for name in ("drop", "bury", "buried")}
    for name in whole:
        setattr(parts.below, name, lame)
    await parts.store.commit([_update(2, "new")], NEVER_S)
    await parts.store.commit([_update(3, "new", state=State.SOFT_DELETED)], NEVER_S)
    assert parts.cache.owes([NAMESPACE])
    with pytest.raises(BackendUnavailable):
        await parts.answer()
    for name, method in whole.items():
        setattr(parts.below, name, method)
    await parts.cache.pay()
    assert await parts.answer() == b"(nothing)"
    assert await parts.below.buried(["mem_1"], NEVER_S) == {"mem_1"}


async def test_a_caller_who_hangs_up_leaves_no_stale_answer(parts: Parts) -> None:
    assert await parts.answer() == b"old"
    goes_on = asyncio.Event()
    inner_commit = parts.inner.commit

    async def slow(*arguments: Any) -> Any:
        await goes_on.wait()
        return await inner_commit(*arguments)

    parts.inner.commit = slow  # type: ignore[method-assign,assignment]
    before = await parts.cache.stamp(SALES, NEVER_S)
    calling = asyncio.create_task(parts.store.commit([_update(2, "new")], NEVER_S))
    await asyncio.sleep(0)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling
    goes_on.set()

    async def stamp() -> str:
        return await parts.cache.stamp(SALES, NEVER_S)

    await eventually_async(stamp, lambda now: now != before)
    assert await parts.answer() == b"new"


async def test_after_an_unknown_outcome_the_namespace_is_dropped_again(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "UNSURE_S", 0.05)

    async def unsure(*_arguments: Any) -> Any:
        raise BackendUnavailable("record_store", "not in time")

    parts.inner.commit = unsure  # type: ignore[method-assign,assignment]
    with pytest.raises(BackendUnavailable):
        await parts.store.commit([_update(2, "new")], NEVER_S)
    assert parts.cache.owes([NAMESPACE])
    await parts.cache.pay()
    await eventually(lambda: parts.cache.owes([NAMESPACE]), bool)


async def test_a_request_answered_a_second_time_drops_what_may_be_stale(parts: Parts) -> None:
    before = await parts.cache.stamp(SALES, NEVER_S)
    assert await parts.store.find_requests(SALES, "alice", ["r1"], NOW_US, NEVER_S) == []
    assert await parts.cache.stamp(SALES, NEVER_S) == before


async def test_what_the_store_reads_from_is_this_store(parts: Parts) -> None:
    assert await parts.store.reads(0, NEVER_S) is parts.store


@pytest.mark.parametrize(("change", "method"), [("forget", "commit"), ("erase", "erase")])
async def test_a_tombstone_lost_before_the_commit_is_there_when_the_forget_is_acknowledged(
    parts: Parts, change: str, method: str
) -> None:
    inner = getattr(parts.inner, method)

    async def flushed_before(*arguments: Any) -> Any:
        await parts.below.unbury(["mem_1"], NEVER_S)
        return await inner(*arguments)

    setattr(parts.inner, method, flushed_before)
    await _make(change, parts.store)
    assert await parts.below.buried(["mem_1"], NEVER_S) == {"mem_1"}


async def test_who_forgets_while_somebody_else_s_change_unburies_keeps_the_tombstone(parts: Parts) -> None:
    await parts.below.bury(["mem_1"], NEVER_S)  # of a forget that came to nothing
    drop = parts.below.drop

    async def forgotten_meanwhile(*arguments: Any) -> None:
        parts.below.drop = drop  # type: ignore[method-assign]
        await parts.store.commit([_update(3, "new", state=State.SOFT_DELETED)], NEVER_S)
        await drop(*arguments)

    parts.below.drop = forgotten_meanwhile  # type: ignore[method-assign,assignment]
    other = cached_records(parts.inner, OwingCache(parts.below))
    await other.commit([_update(2, "new")], NEVER_S)
    assert await parts.below.buried(["mem_1"], NEVER_S) == {"mem_1"}


async def test_a_tombstone_is_put_back_when_nobody_can_tell_whether_the_memory_stands(parts: Parts) -> None:
    await parts.below.bury(["mem_1"], NEVER_S)

    async def down(*_arguments: Any) -> Any:
        raise BackendUnavailable("record_store")

    parts.inner.get = down  # type: ignore[method-assign,assignment]
    await parts.store.commit([_update(2, "new")], NEVER_S)
    assert await parts.below.buried(["mem_1"], NEVER_S) == {"mem_1"}
