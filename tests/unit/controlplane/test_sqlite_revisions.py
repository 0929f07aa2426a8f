import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from controlplane.documents import Document
from controlplane.revisions import Change, Revision, UnknownSchema
from controlplane.sqlite_revisions import SqliteRevisions
from memplane.errors import Unavailable


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteRevisions]:
    opened = await SqliteRevisions.open(tmp_path / "revisions.sqlite3")
    yield opened
    await opened.close()


async def test_a_file_of_another_schema_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "revisions.sqlite3"
    other = sqlite3.connect(path)
    other.execute("PRAGMA user_version = 99")
    other.close()
    with pytest.raises(UnknownSchema, match="schema 99"):
        await SqliteRevisions.open(path)


async def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "revisions.sqlite3"
    path.write_bytes(b"not a database, by far" * 100)
    with pytest.raises(sqlite3.DatabaseError):
        await SqliteRevisions.open(path)


def test_an_etag_changes_with_every_acceptance_of_the_same_content() -> None:
    first, again = Revision(1, "sha256:a", 0, "", "", "rpc"), Revision(2, "sha256:a", 0, "", "", "rpc")
    assert first.etag != again.etag


async def test_a_full_disk_is_one_line_of_the_log_and_writes_work_again_with_room(
    store: SqliteRevisions, caplog: pytest.LogCaptureFixture
) -> None:
    large = Revision(1, "sha256:1", 1, "ann", "", "rpc", (Document("a.yaml", b"#" * 500_000),))
    await store._call(lambda database: database.execute("PRAGMA max_page_count = 1"))
    for _ in range(2):
        with pytest.raises(Unavailable):
            await store.write(Change(large))
        assert await store.newest() == 0
    (record,) = caplog.records
    assert "SQLITE_FULL: database or disk is full" in record.getMessage()
    assert record.exc_info is None
    await store._call(lambda database: database.execute("PRAGMA max_page_count = 100000"))
    await store.write(Change(large))
    assert await store.get(1) == large
