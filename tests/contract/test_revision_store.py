"""What every revision store promises, on SQLite and on a real PostgreSQL."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from controlplane.documents import Document
from controlplane.postgres_revisions import PostgresRevisions
from controlplane.revisions import (
    REQUEST_KEPT_US,
    Answer,
    ApiKeyRecord,
    Change,
    FolderContent,
    FolderNote,
    Head,
    KeyEnd,
    KeyIdTaken,
    Outrun,
    Revision,
    RevisionStore,
)
from controlplane.sqlite_revisions import SqliteRevisions
from memplane.settings import Secret

Opener = Callable[[], Awaitable[RevisionStore]]


@pytest.fixture(params=["sqlite", "postgres"])
async def opener(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Opener]:
    """Each call opens the same store, as another control plane would; all are closed after the test."""
    dsn = Secret(request.getfixturevalue("postgres_database")) if request.param == "postgres" else None
    async with AsyncExitStack() as stack:

        async def open_one() -> RevisionStore:
            store: RevisionStore = (
                await SqliteRevisions.open(tmp_path / "revisions.sqlite3")
                if dsn is None
                else await PostgresRevisions.open(dsn)
            )
            stack.push_async_callback(store.close)
            return store

        yield open_one


@pytest.fixture
async def store(opener: Opener) -> RevisionStore:
    return await opener()


def revision(generation: int, origin: str = "rpc") -> Revision:
    documents = (Document("B.yaml", b""), Document("a.yaml", b"a: \xff\x00"), Document("b.yaml", b"b"))
    return Revision(generation, f"sha256:{generation}", generation * 10, "ann", "why", origin, documents)


def key(key_id: str, created_us: int = 1, expire_time_us: int | None = None) -> ApiKeyRecord:
    return ApiKeyRecord(key_id, key_id * 8, "agent", created_us, expire_time_us, "for tests", "ann")


async def test_a_new_store_is_empty(store: RevisionStore) -> None:
    assert await store.head() == Head(None)
    assert await store.newest() == 0
    assert await store.get(1) is None
    assert await store.page(10, 10) == []
    assert await store.api_keys() == []
    assert await store.folder("one") == FolderContent()
    assert await store.answer("ann", "r", 0) is None


async def test_a_revision_comes_back_whole(store: RevisionStore) -> None:
    await store.write(Change(revision(1)))
    assert await store.get(1) == revision(1)
    assert await store.get(2) is None
    assert await store.get(0) is None


async def test_the_newest_generation_is_in_force(store: RevisionStore) -> None:
    for generation in (1, 2, 3):
        await store.write(Change(revision(generation)))
    assert await store.head() == Head(revision(3))
    assert await store.newest() == 3


async def test_pages_are_newest_first_and_without_documents(store: RevisionStore) -> None:
    for generation in (1, 2, 3):
        await store.write(Change(revision(generation)))
    page = await store.page(3, 5)
    assert [item.generation for item in page] == [2, 1]
    assert page[0].documents == ()
    assert [item.generation for item in await store.page(2**63 - 1, 1)] == [3]


@pytest.mark.parametrize("generation", [1, 3, 0, -1])
async def test_a_revision_that_does_not_follow_the_newest_leaves_no_trace(
    store: RevisionStore, generation: int
) -> None:
    await store.write(Change(revision(1)))
    answer, note = Answer("ann", "r", "p", 1, b"x"), FolderNote("one", FolderContent("sha256:f"), is_taken=True)
    with pytest.raises(Outrun) as outrun:
        await store.write(Change(revision(generation), answer, note, key("00000001")))
    assert outrun.value.newest == 1
    assert await store.head() == Head(revision(1))
    assert await store.answer("ann", "r", 1) is None
    assert await store.folder("one") == FolderContent()
    assert not await store.brought_by_another("two", "sha256:f")


async def test_of_many_writers_of_one_generation_one_wins_and_the_others_are_told(opener: Opener) -> None:
    stores = [await opener() for _ in range(4)]

    async def climb(writer: RevisionStore) -> int:
        won = 0
        while (newest := await writer.newest()) < 40:
            try:
                await writer.write(Change(revision(newest + 1)))
                won += 1
            except Outrun:
                continue
        return won

    won = await asyncio.gather(*(climb(each) for each in stores))
    generations = [item.generation for item in await stores[0].page(1000, 1000)]
    assert generations == sorted(range(1, len(generations) + 1), reverse=True)
    assert sum(won) == len(generations) >= 40


async def test_what_one_has_written_another_sees_at_once(opener: Opener) -> None:
    one, two = await opener(), await opener()
    await one.write(Change(revision(1), new_key=key("00000001")))
    assert await two.newest() == 1
    assert await two.head() == Head(revision(1), (key("00000001"),))


async def test_opening_at_once_makes_one_schema(opener: Opener) -> None:
    stores = await asyncio.gather(*(opener() for _ in range(8)))
    await stores[0].write(Change(revision(1)))
    assert [await each.newest() for each in stores] == [1] * 8


async def test_everything_is_there_for_whoever_opens_it_later(opener: Opener) -> None:
    first = await opener()
    note = FolderNote("one", FolderContent("sha256:f", "bad"))
    await first.write(Change(revision(1), folder=note, new_key=key("00000001")))
    second = await opener()
    assert await second.head() == Head(revision(1), (key("00000001"),))
    assert await second.folder("one") == FolderContent("sha256:f", "bad")


async def test_answers_belong_to_their_author_and_are_kept_a_day(store: RevisionStore) -> None:
    answer = Answer("ann", "r", "payload", 1_000, b"body\x00")
    await store.write(Change(answer=answer))
    assert await store.answer("ann", "r", 1_000) == answer
    assert await store.answer("bob", "r", 1_000) is None
    assert await store.answer("ann", "r", 1_000 + REQUEST_KEPT_US) is None
    later = Answer("ann", "r", "other", 1_000 + REQUEST_KEPT_US, b"other")
    await store.write(Change(answer=later))
    assert await store.answer("ann", "r", 1_000 + REQUEST_KEPT_US) == later


async def test_keys_are_listed_newest_first_and_ended_ones_leave_the_head(store: RevisionStore) -> None:
    made = [key("00000001", 1), key("00000003", 2), key("00000002", 2, expire_time_us=99)]
    for generation, each in enumerate(made, 1):
        await store.write(Change(revision(generation), new_key=each))
    await store.write(Change(revision(4, "api_key"), ended_key=KeyEnd("00000003", 77)))
    await store.write(Change(revision(5, "api_key"), ended_key=KeyEnd("00000003", 88)))
    listed = await store.api_keys()
    assert [(each.key_id, each.revoke_time_us) for each in listed] == [
        ("00000003", 77),
        ("00000002", None),
        ("00000001", None),
    ]
    assert [each.key_id for each in (await store.head()).api_keys] == ["00000002", "00000001"]
    assert listed[1] == made[2]


async def test_a_key_id_is_never_given_twice(store: RevisionStore) -> None:
    await store.write(Change(revision(1), new_key=key("00000001")))
    with pytest.raises(KeyIdTaken):
        await store.write(Change(revision(2), new_key=key("00000001", 5)))
    assert await store.newest() == 1


async def test_each_control_plane_has_its_own_folder(store: RevisionStore) -> None:
    await store.write(Change(folder=FolderNote("one", FolderContent("sha256:x", "bad"))))
    await store.write(Change(folder=FolderNote("two", FolderContent("sha256:y"))))
    await store.write(Change(folder=FolderNote("one", FolderContent("sha256:z"))))
    assert await store.folder("one") == FolderContent("sha256:z")
    assert await store.folder("two") == FolderContent("sha256:y")


async def test_a_content_is_brought_by_another_until_ones_own_folder_was_noted(store: RevisionStore) -> None:
    await store.write(Change(folder=FolderNote("one", FolderContent("sha256:x"), is_taken=True)))
    assert not await store.brought_by_another("one", "sha256:x")
    assert await store.brought_by_another("two", "sha256:x")
    assert not await store.brought_by_another("two", "sha256:y")
    await store.write(Change(folder=FolderNote("two", FolderContent("sha256:x"))))
    assert not await store.brought_by_another("two", "sha256:x")


async def test_a_content_that_was_refused_or_only_noted_was_not_brought(store: RevisionStore) -> None:
    await store.write(Change(folder=FolderNote("one", FolderContent("sha256:x", "bad"))))
    assert not await store.brought_by_another("two", "sha256:x")


async def test_a_folder_that_comes_late_passes_all_that_was_brought_and_what_is_refused_changes_nothing_of_that(
    store: RevisionStore,
) -> None:
    for version in ("sha256:x", "sha256:y"):
        await store.write(Change(folder=FolderNote("one", FolderContent(version), is_taken=True)))
    await store.write(Change(folder=FolderNote("two", FolderContent("sha256:x"))))
    await store.write(Change(folder=FolderNote("two", FolderContent("sha256:z", "bad"))))
    assert not await store.brought_by_another("two", "sha256:x")
    assert await store.brought_by_another("two", "sha256:y")
    await store.write(Change(folder=FolderNote("two", FolderContent("sha256:y"))))
    assert not await store.brought_by_another("two", "sha256:x")
    assert not await store.brought_by_another("two", "sha256:y")
