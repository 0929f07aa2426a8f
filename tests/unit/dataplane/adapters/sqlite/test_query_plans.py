"""The reads of every call go by an index, never through a namespace or a table."""

import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dataplane.adapters.sqlite import reads
from dataplane.adapters.sqlite.commits import find_in_scope
from dataplane.adapters.sqlite.migrate import migrate, read_migrations
from dataplane.model import Kind, Scope

SCOPE = Scope(("a",), ("b",))


class Explaining(sqlite3.Connection):
    """Notes the plan of every SELECT."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.plans: list[str] = []

    def execute(self, statement: str, parameters: Any = (), /) -> sqlite3.Cursor:
        if statement.lstrip().startswith("SELECT"):
            plan = super().execute(f"EXPLAIN QUERY PLAN {statement}", parameters)
            self.plans.append(" | ".join(row[3] for row in plan))
        return super().execute(statement, parameters)


@pytest.fixture
def connection() -> Iterator[Explaining]:
    made = sqlite3.connect(":memory:", factory=Explaining, isolation_level=None)
    migrate(made, read_migrations())
    made.plans.clear()
    yield made
    made.close()


@pytest.mark.parametrize(
    ("read", "index"),
    [
        (lambda c: reads.find_same_content(c, SCOPE, "bob", Kind.FACT, "hash"), "memories_active_content"),
        (lambda c: reads.find_fact(c, SCOPE, "bob", "bob/drink"), "memories_by_fact"),
        (lambda c: find_in_scope(c, SCOPE, "mem_1"), "sqlite_autoindex_memories_1"),
    ],
    ids=["same content", "fact", "by id"],
)
def test_a_read_of_every_write_goes_by_its_index(
    connection: Explaining, read: Callable[[sqlite3.Connection], object], index: str
) -> None:
    read(connection)
    [plan] = connection.plans
    assert f"USING INDEX {index}" in plan
    assert "SCAN m" not in plan
    assert "(namespace=? AND subject_id=?)" not in plan
