import sqlite3
from pathlib import Path

import pytest

from dataplane.adapters.record_rows import COLUMNS
from dataplane.adapters.sqlite.connection import SqliteOptions
from dataplane.adapters.sqlite.migrate import SchemaTooNew, migrate, read_migrations
from dataplane.adapters.sqlite.store import SqliteRecordStore
from tests.contract.builders import commit_of, fields_of, memory_of, scope_of


@pytest.fixture
def connection() -> sqlite3.Connection:
    return sqlite3.connect(":memory:", isolation_level=None)


def version_of(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def tables_of(connection: sqlite3.Connection) -> set[str]:
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


def test_every_migration_runs_and_a_second_run_does_nothing(connection: sqlite3.Connection) -> None:
    scripts = read_migrations()
    assert migrate(connection, scripts) == len(scripts) == version_of(connection)
    tables = tables_of(connection)
    assert {"memories", "memory_versions", "embeddings", "outbox", "tombstones"} <= tables
    assert migrate(connection, scripts) == len(scripts)
    assert tables_of(connection) == tables


def test_heads_and_versions_have_a_column_for_every_field_of_a_memory(connection: sqlite3.Connection) -> None:
    migrate(connection, read_migrations())
    for table in ("memories", "memory_versions"):
        names = tuple(row[1] for row in connection.execute(f"PRAGMA table_info({table})"))
        assert names[: len(COLUMNS)] == COLUMNS


def test_only_what_is_due_runs(connection: sqlite3.Connection) -> None:
    migrate(connection, ["CREATE TABLE one (a);"])
    migrate(connection, ["CREATE TABLE one (a);", "CREATE TABLE two (a);", "CREATE TABLE three (a);"])
    assert (tables_of(connection), version_of(connection)) == ({"one", "two", "three"}, 3)


def test_a_failing_migration_leaves_the_schema_as_it_was(connection: sqlite3.Connection) -> None:
    migrate(connection, ["CREATE TABLE one (a);"])
    with pytest.raises(sqlite3.OperationalError):
        migrate(connection, ["CREATE TABLE one (a);", "CREATE TABLE two (a);", "CREATE TABLE one (a);"])
    assert (tables_of(connection), version_of(connection)) == ({"one"}, 1)
    assert not connection.in_transaction


def test_a_newer_schema_is_refused(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA user_version = 99")
    with pytest.raises(SchemaTooNew, match="schema is version 99, but this release knows versions up to 1"):
        migrate(connection, ["CREATE TABLE one (a);"])
    assert tables_of(connection) == set()


async def test_a_file_of_a_newer_release_is_refused_and_let_go(path: Path) -> None:
    with sqlite3.connect(path) as other:
        other.execute("PRAGMA user_version = 99")
    other.close()
    for _ in range(2):
        with pytest.raises(SchemaTooNew):
            await SqliteRecordStore.open(path, options=SqliteOptions(), fields_of=fields_of)


async def test_a_reopened_file_holds_what_was_stored(path: Path, deadline_s: float) -> None:
    first = await SqliteRecordStore.open(path, options=SqliteOptions(), fields_of=fields_of)
    await first.commit([commit_of(memory_of())], deadline_s)
    await first.close()
    second = await SqliteRecordStore.open(path, options=SqliteOptions(synchronous_full=True), fields_of=fields_of)
    assert await second.get(scope_of(), "mem_1", deadline_s) == memory_of()
    assert await second.last_position(deadline_s) == 1
    await second.close()
