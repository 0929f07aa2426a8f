import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from controlplane.documents import Document
from controlplane.revisions import (
    REQUEST_KEPT_US,
    Answer,
    Change,
    FolderContent,
    Revision,
    RevisionStore,
    UnknownSchema,
)
from memplane.errors import Unavailable


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[RevisionStore]:
    opened = await RevisionStore.open(tmp_path / "revisions.sqlite3")
    yield opened
    await opened.close()


def revision(generation: int) -> Revision:
    documents = (Document("a.yaml", b"a: \xff"), Document("b.yaml", b""))
    return Revision(generation, f"sha256:{generation}", generation * 10, "ann", "why", "rpc", documents)


async def test_a_new_store_is_empty(store: RevisionStore) -> None:
    assert await store.latest() is None
    assert await store.folder() == FolderContent()
    assert await store.answer("ann", "r", 0) is None


async def test_a_revision_comes_back_whole(store: RevisionStore) -> None:
    await store.write(Change(revision(1)))
    assert await store.get(1) == revision(1)
    assert await store.get(2) is None


async def test_the_newest_generation_is_the_latest(store: RevisionStore) -> None:
    for generation in (1, 2, 3):
        await store.write(Change(revision(generation)))
    assert await store.latest() == revision(3)


async def test_pages_are_newest_first_and_without_documents(store: RevisionStore) -> None:
    for generation in (1, 2, 3):
        await store.write(Change(revision(generation)))
    page = await store.page(3, 5)
    assert [item.generation for item in page] == [2, 1]
    assert page[0].documents == ()


async def test_a_generation_is_never_used_twice_and_its_refusal_leaves_no_trace(store: RevisionStore) -> None:
    await store.write(Change(revision(1)))
    with pytest.raises(Unavailable):
        await store.write(Change(revision(1), Answer("ann", "r", "p", 1, b"x"), FolderContent("sha256:f")))
    assert await store.answer("ann", "r", 1) is None
    assert await store.folder() == FolderContent()


async def test_answers_belong_to_their_author_and_are_kept_a_day(store: RevisionStore) -> None:
    answer = Answer("ann", "r", "payload", 1_000, b"body")
    await store.write(Change(answer=answer))
    assert await store.answer("ann", "r", 1_000) == answer
    assert await store.answer("bob", "r", 1_000) is None
    assert await store.answer("ann", "r", 1_000 + REQUEST_KEPT_US) is None


async def test_everything_survives_closing(tmp_path: Path) -> None:
    path = tmp_path / "revisions.sqlite3"
    first = await RevisionStore.open(path)
    await first.write(Change(revision(1), folder=FolderContent("sha256:f", "bad")))
    await first.close()
    second = await RevisionStore.open(path)
    assert await second.latest() == revision(1)
    assert await second.folder() == FolderContent("sha256:f", "bad")
    await second.close()


async def test_a_file_of_another_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "revisions.sqlite3"
    other = sqlite3.connect(path)
    other.execute("PRAGMA user_version = 99")
    other.close()
    with pytest.raises(UnknownSchema, match="schema 99"):
        await RevisionStore.open(path)


async def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "revisions.sqlite3"
    path.write_bytes(b"not a database, by far" * 100)
    with pytest.raises(sqlite3.DatabaseError):
        await RevisionStore.open(path)


def test_an_etag_changes_with_every_acceptance_of_the_same_content() -> None:
    first, again = Revision(1, "sha256:a", 0, "", "", "rpc"), Revision(2, "sha256:a", 0, "", "", "rpc")
    assert first.etag != again.etag


async def test_a_full_disk_is_one_line_of_the_log_and_writes_work_again_with_room(
    store: RevisionStore, caplog: pytest.LogCaptureFixture
) -> None:
    large = Revision(1, "sha256:1", 1, "ann", "", "rpc", (Document("a.yaml", b"#" * 500_000),))
    await store._call(lambda database: database.execute("PRAGMA max_page_count = 1"))
    for _ in range(2):
        with pytest.raises(Unavailable):
            await store.write(Change(large))
        assert await store.latest() is None
    (record,) = caplog.records
    assert "SQLITE_FULL: database or disk is full" in record.getMessage()
    assert record.exc_info is None
    await store._call(lambda database: database.execute("PRAGMA max_page_count = 100000"))
    await store.write(Change(large))
    assert await store.get(1) == large
