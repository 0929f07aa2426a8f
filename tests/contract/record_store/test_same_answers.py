"""Random histories: each store and the in-memory one, the plain reading of the port, answer everything alike."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.adapters.inmemory.record_store import InMemoryRecordStore
from dataplane.adapters.postgres.options import PostgresOptions
from dataplane.adapters.sqlite.connection import SqliteOptions
from dataplane.adapters.sqlite.store import SqliteRecordStore
from dataplane.changes import (
    AccessRecord,
    Commit,
    ConflictRecord,
    Erasure,
    Failure,
    Lease,
    OutboxRow,
    RequestRecord,
    Supersession,
)
from dataplane.errors import DuplicateRequest, StaleVersion
from dataplane.model import DAY_US, EVERYTHING, SYSTEM_SCOPE, Kind, Pool, Scope, State, StoredCandidate
from dataplane.ports import ListQuery, Pending, RecordStore
from tests.contract.builders import MODEL, NOW_US, commit_of, content_hash_of, fields_of, memory_of, vector_of
from tests.postgres import empty, open_store

Step = Callable[[RecordStore, float], Awaitable[object]]

IDS = ("mem_1", "mem_2", "mem_3", "mem_4")
SCOPES = (
    Scope(("a",)),
    Scope(("a", "b")),
    Scope(("b",), ("a",)),
    Scope((), ("a", "b")),
    SYSTEM_SCOPE,
)
ids = st.sampled_from(IDS)
times = st.integers(NOW_US - 3 * DAY_US, NOW_US + 3 * DAY_US)
vectors = st.none() | st.integers(0, 3).map(vector_of)
requests = (
    st.none()
    | st.none()
    | st.builds(RequestRecord, st.just("alice"), st.sampled_from("xyz"), st.just("hash"), st.binary(max_size=2), times)
)
memories = st.builds(
    memory_of,
    ids,
    content=st.sampled_from(("one", "two", "three", "four")),
    namespace=st.sampled_from("ab"),
    subject_id=st.sampled_from(("", "bob")),
    state=st.sampled_from((State.ACTIVE, State.ACTIVE, State.ACTIVE, State.SOFT_DELETED)),
    pool=st.sampled_from(Pool),
    fact_key=st.sampled_from(("", "f", "g")),
    version=st.integers(1, 4),
    create_time_us=times,
    strength=st.floats(0, 2),
)


AS_DRAWN = "as drawn"
WAITS = {"again": 0.0, "later": 1_000.0, "dead": None}
ENDS = ("settle", "settle", "release", "keep", *WAITS)


@st.composite
def commits(draw: st.DrawFn) -> Commit:
    memory = draw(memories)
    return commit_of(
        memory,
        scope=draw(st.sampled_from([scope for scope in SCOPES if scope.covers(memory.namespace, memory.pool)])),
        expected_version=draw(st.integers(0, memory.version)),
        now_us=draw(times),
        embedding=draw(vectors),
        supersedes=tuple(draw(st.lists(st.builds(Supersession, ids, st.integers(1, 2), times), max_size=1))),
        conflicts=tuple(
            draw(st.lists(st.builds(ConflictRecord, ids, ids, st.just("f"), st.just(0.9), st.just("r")), max_size=1))
        ),
        request=draw(requests),
        reason=draw(st.sampled_from(("", "", "", AS_DRAWN))),
    )


async def fitted(store: RecordStore, commit: Commit, deadline_s: float) -> Commit:
    """The commit as a caller who knows the store makes it, unless it is to stay as drawn."""
    memory = commit.memory
    if commit.reason == AS_DRAWN or memory is None:
        return commit
    current = await store.get(SYSTEM_SCOPE, memory.memory_id, deadline_s)
    standing = current.version if current else 0
    namespace = current.namespace if current else memory.namespace
    version = standing + memory.version % 2 if current else 1
    others = [await store.get(SYSTEM_SCOPE, item.memory_id, deadline_s) for item in commit.supersedes]
    return replace(
        commit,
        scope=Scope(("a", "b")),
        memory=replace(memory, namespace=namespace, version=version),
        expected_version=standing,
        supersedes=tuple(
            Supersession(other.memory_id, other.version, NOW_US)
            for other in others
            if other and other.state is State.ACTIVE and other.memory_id != memory.memory_id
        ),
    )


def committing(items: list[Commit]) -> Step:
    return lambda store, deadline_s: store.commit(items, deadline_s)


def erasing(erasure: Erasure) -> Step:
    async def step(store: RecordStore, deadline_s: float) -> object:
        try:
            return await store.erase(erasure, deadline_s)
        except (StaleVersion, DuplicateRequest) as refusal:
            return refusal

    return step


def accessing(accesses: list[AccessRecord]) -> Step:
    return lambda store, deadline_s: store.record_accesses(accesses, deadline_s)


def following(index: str, owner: str, page_size: int, end: str) -> Step:
    """Leases rows of an index and ends that in one of several ways; what was leased is part of the answer."""

    async def step(store: RecordStore, deadline_s: float) -> object:
        rows = await store.lease_outbox(index, Lease(owner, 1_000.0), page_size, MODEL, deadline_s)
        if end == "settle":
            await store.settle_outbox(index, owner, rows, deadline_s)
        elif end == "release":
            await store.release_outbox(owner, deadline_s)
        elif end in WAITS:
            failures = [Failure(row, end, WAITS[end]) for row in rows]
            await store.postpone_outbox(index, owner, failures, deadline_s)
        return [waiting(row) for row in rows]

    return step


def waiting(row: OutboxRow) -> object:
    """A row in a form that compares; strengths differ in the last digits."""
    version = row.memory and row.memory.version
    return replace(row, memory=None, embedding=None), version, row.embedding is not None


def registering(index: str, *, retired: bool) -> Step:
    if retired:
        return lambda store, deadline_s: store.retire_index(index, deadline_s)
    return lambda store, deadline_s: store.register_index(index, deadline_s)


def enqueueing(index: str, after_id: str) -> Step:
    return lambda store, deadline_s: store.enqueue_all(index, after_id, 2, deadline_s)


def replaying(index: str, positions: list[int]) -> Step:
    return lambda store, deadline_s: store.replay_dead_letters(index, positions, deadline_s)


def embedding(memory_id: str, version: int) -> Step:
    return lambda store, deadline_s: store.save_embedding(memory_id, version, MODEL, vector_of(9), deadline_s)


erasures = st.builds(
    Erasure,
    scope=st.sampled_from(SCOPES),
    memory_id=ids,
    now_us=times,
    principal_id=st.just("alice"),
    expected_version=st.integers(0, 2),
    request=requests,
)
accesses = st.builds(
    AccessRecord,
    ids,
    st.sampled_from("ab"),
    times,
    st.just(0.1),
    st.sampled_from((1.0, 2.0)),
    st.just(0.3),
    st.integers(1, 3),
)
indexes = st.sampled_from(("vector", "text"))
commit_steps = [st.lists(commits(), min_size=1, max_size=most) for most in (1, 2, 3, 4)]
steps = st.lists(
    st.one_of(
        *commit_steps,
        st.builds(erasing, erasures),
        st.builds(accessing, st.lists(accesses, max_size=3)),
        *[st.builds(following, indexes, st.sampled_from("xy"), st.integers(1, 4), st.sampled_from(ENDS))] * 3,
        st.builds(registering, indexes, retired=st.sampled_from((False, False, True))),
        st.builds(enqueueing, indexes, st.sampled_from(("", "mem_2"))),
        st.builds(replaying, indexes, st.lists(st.integers(1, 6), max_size=2)),
        st.builds(embedding, ids, st.integers(1, 3)),
    ),
    min_size=4,
    max_size=15,
)


def plain(found: object) -> object:
    """Answers in a form that compares: vectors as lists, strengths to nine digits, sets of rows without an order."""
    if isinstance(found, Pending):
        return [plain(candidate) for candidate in found.candidates], found.truncated
    if isinstance(found, StoredCandidate):
        vector = None if found.embedding is None else found.embedding.tolist()
        return found.memory.memory_id, found.memory.version, vector, found.recent_access_count
    return found


async def everything(store: RecordStore, deadline_s: float) -> list[object]:
    """What every read says."""
    answers: list[object] = [await store.last_position(deadline_s), await store.count(deadline_s)]
    answers.append(await store.tombstones(IDS, deadline_s))
    answers += [waiting(row) for row in await store.scan("", 9, deadline_s, MODEL)]
    answers += [replace(item, oldest_due_us=None) for item in await store.progress(deadline_s)]
    answers += [replace(letter, time_us=0) for letter in await store.dead_letters("", 0, 9, deadline_s)]
    answers += [await store.undelivered(memory_id, deadline_s) for memory_id in IDS]
    for scope in SCOPES:
        answers += [plain(answer) for answer in await scoped(store, scope, deadline_s)]
    return answers


async def scoped(store: RecordStore, scope: Scope, deadline_s: float) -> list[Any]:
    listing = ListQuery((State.ACTIVE, State.SUPERSEDED), EVERYTHING, 9)
    fetched = await store.fetch(scope, IDS, MODEL, NOW_US - DAY_US, deadline_s)
    answers: list[Any] = sorted(fetched, key=lambda candidate: candidate.memory.memory_id)
    for page_size in (1, 9):
        answers += [
            await store.pending(scope, applied, MODEL, NOW_US, page_size, deadline_s)
            for applied in ({"vector": 2, "text": 0}, {"text": 3}, {})
        ]
        answers.append(await store.history(scope, NOW_US, MODEL, page_size, deadline_s))
    answers += [memory.memory_id for memory in await store.list_memories(scope, listing, deadline_s)]
    for memory_id in IDS:
        memory = await store.get(scope, memory_id, deadline_s)
        answers.append(memory and (memory.state, memory.version, round(memory.strength, 9), memory.access_count))
        answers += [
            (version.memory.version, version.change, version.record_time_us, version.memory.superseded_by_id)
            for version in await store.list_versions(scope, memory_id, 0, 9, deadline_s)
        ]
    for request_id in "xyz":
        answers.append(await store.find_requests(scope, "alice", [request_id], NOW_US, deadline_s))
    for content in ("one", "two"):
        same = await store.find_same_content(Scope(("a",)), "bob", Kind.FACT, content_hash_of(content), deadline_s)
        answers.append([memory.memory_id for memory in same])
    return answers


async def check(store: RecordStore, history: list[list[Commit] | Step]) -> None:
    deadline_s = asyncio.get_running_loop().time() + 60
    inmemory = InMemoryRecordStore(fields_of)
    for registering in (store, inmemory):
        await registering.register_index("vector", deadline_s)
    for planned in history:
        step = planned
        if isinstance(step, list):
            step = committing([await fitted(inmemory, commit, deadline_s) for commit in step])
        assert await step(store, deadline_s) == await step(inmemory, deadline_s)
    assert await everything(store, deadline_s) == await everything(inmemory, deadline_s)


@settings(max_examples=60)
@given(steps)
def test_sqlite_answers_alike_after_any_history(history: list[list[Commit] | Step]) -> None:
    async def run() -> None:
        with TemporaryDirectory() as folder:
            path = Path(folder) / "records.db"
            store = await SqliteRecordStore.open(path, options=SqliteOptions(), fields_of=fields_of)
            await check(store, history)
            await store.close()

    asyncio.run(run())


@settings(max_examples=12)
@given(history=steps)
def test_postgres_answers_alike_after_any_history(
    migrated_postgres: PostgresOptions, history: list[list[Commit] | Step]
) -> None:
    async def run() -> None:
        store = await open_store(migrated_postgres, fields_of)
        try:
            await check(store, history)
        finally:
            await store.close()

    empty(migrated_postgres)
    asyncio.run(run())
