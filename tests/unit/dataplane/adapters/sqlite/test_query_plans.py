"""The reads of every call go by an index, never through a namespace or a table."""

import sqlite3
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from dataplane.adapters.sqlite import outbox, reads
from dataplane.adapters.sqlite.commits import find_in_scope
from dataplane.adapters.sqlite.migrate import migrate, read_migrations
from dataplane.changes import Lease
from dataplane.model import EVERYTHING, Kind, Scope
from dataplane.ports import ContentKey
from tests.contract.builders import memory_of

SCOPE = Scope(("a",), ("b",))


class Explaining(sqlite3.Connection):
    """Notes the plan of every SELECT."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.plans: list[str] = []

    def execute(self, statement: str, parameters: Any = (), /) -> sqlite3.Cursor:
        if statement.lstrip().startswith(("SELECT", "UPDATE", "DELETE")):
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
        (
            lambda c: reads.find_contents(c, SCOPE, [ContentKey("a", "bob", Kind.FACT, "hash")]),
            "memories_active_content",
        ),
        (lambda c: reads.find_fact(c, SCOPE, "bob", "bob/drink"), "memories_by_fact"),
        (lambda c: find_in_scope(c, SCOPE, "mem_1"), "sqlite_autoindex_memories_1"),
    ],
    ids=["same content", "contents", "fact", "by id"],
)
def test_a_read_of_every_write_goes_by_its_index(
    connection: Explaining, read: Callable[[sqlite3.Connection], object], index: str
) -> None:
    read(connection)
    [plan] = connection.plans
    assert f"USING INDEX {index}" in plan
    assert "SCAN m" not in plan
    assert "(namespace=? AND subject_id=?)" not in plan


SEARCHES = {
    "outbox": "SEARCH o USING INDEX outbox_namespace (namespace=? AND index_id=? AND position>?)",
    "failed": "SEARCH o USING INDEX outbox_failed (namespace=? AND index_id=?)",
    "given up": "SEARCH o USING INDEX dead_letters_namespace (namespace=? AND index_id=?)",
}


@pytest.mark.parametrize("scope", [Scope(("a",)), SCOPE, Scope(("a", "b", "c"))])
def test_what_awaits_an_index_is_sought_in_the_namespaces_of_the_scope_alone(
    connection: Explaining, scope: Scope
) -> None:
    reads.pending(connection, scope, {"vector": 5, "text": 0}, "model", 0, 10)
    [plan] = connection.plans
    assert {name: plan.count(search) for name, search in SEARCHES.items()} == dict.fromkeys(SEARCHES, 2)
    assert "SCAN o" not in plan


@pytest.mark.parametrize("scope", [Scope(("a",)), SCOPE])
def test_what_was_used_lately_is_sought_in_the_namespaces_of_the_scope_alone(
    connection: Explaining, scope: Scope
) -> None:
    reads.most_used(connection, scope, EVERYTHING, 0, 10)
    [plan] = connection.plans
    assert "SEARCH a USING INDEX access_buckets_recent (namespace=? AND day>?)" in plan
    assert "SCAN m" not in plan


@pytest.mark.parametrize("scope", [Scope(("a",)), SCOPE])
def test_what_stands_beside_a_memory_goes_by_its_session(connection: Explaining, scope: Scope) -> None:
    reads.neighbours(connection, scope, [memory_of()], 2, "model", 0)
    [plan] = connection.plans
    assert plan.count("USING INDEX memories_session (namespace=? AND session_id=?") == 2
    assert "SCAN n" not in plan
    assert "SCAN m" not in plan
    assert "USE TEMP B-TREE FOR ORDER BY" not in plan


def test_removals_are_listed_by_memory(connection: Explaining) -> None:
    outbox.unapplied_removals(connection, "mem_1", 10)
    [plan] = connection.plans
    assert "SEARCH o USING COVERING INDEX outbox_memory (memory_id>?)" in plan
    assert "SEARCH o USING COVERING INDEX dead_letters_memory (memory_id>?)" in plan


def test_counting_what_awaits_an_index_goes_by_position(connection: Explaining) -> None:
    reads.count_pending(connection, {"vector": 5, "text": 0}, 129)
    above, failed = connection.plans
    assert "SEARCH o USING PRIMARY KEY (index_id=? AND position>?)" in above
    assert "SCAN outbox USING INDEX outbox_failed" in failed


def test_a_lease_goes_by_position_and_looks_for_older_rows_by_memory(connection: Explaining) -> None:
    outbox.register(connection, "vector")
    connection.plans.clear()
    outbox.has_due(connection, "vector")
    outbox.lease(connection, "vector", Lease("me", 60.0), 128, "model")
    looking, leasing, reading = connection.plans
    for plan in (looking, leasing):
        assert "SEARCH o USING PRIMARY KEY (index_id=?)" in plan
        assert "SEARCH b USING COVERING INDEX outbox_memory (memory_id=? AND index_id=? AND position<?)" in plan
        assert "SCAN" not in plan
    assert "SEARCH o USING PRIMARY KEY (index_id=? AND position=?)" in reading
    assert "SEARCH n USING COVERING INDEX outbox_memory (memory_id=? AND index_id=?)" in reading


def test_giving_back_goes_by_owner_and_progress_by_index(connection: Explaining) -> None:
    outbox.release(connection, "me")
    outbox.undelivered(connection, "mem_1")
    outbox.progress(connection)
    releasing, asking, telling = connection.plans
    assert "outbox USING COVERING INDEX outbox_leased" in releasing  # which holds leased rows alone
    assert "SEARCH o USING COVERING INDEX outbox_memory (memory_id=? AND index_id=?)" in asking
    assert telling.count("SEARCH o USING PRIMARY KEY (index_id=?)") == 3
    assert "SCAN o" not in telling
