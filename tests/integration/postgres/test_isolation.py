"""Row-level security holds where our own conditions fail."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest

from dataplane.adapters.postgres import clauses, reads, store, upkeep
from dataplane.adapters.postgres.options import PostgresOptions
from dataplane.adapters.postgres.store import PostgresRecordStore
from dataplane.changes import AccessRecord, DecisionRecord, RequestRecord
from dataplane.model import DAY_US, EVERYTHING, Action, Kind, Pool, Scope, State
from dataplane.ports import ListQuery
from tests.contract.builders import INDEX, MODEL, NOW_US, commit_of, content_hash_of, fields_of, memory_of, vector_of
from tests.postgres import open_store

OTHERS = ("acme.hr", "acme.salesforce")
MINE = Scope(("acme.sales",))
NOTHING_SET = "SELECT count(*) FROM memplane.{}"


@pytest.fixture
async def deadline_s() -> float:
    return asyncio.get_running_loop().time() + 30


@pytest.fixture
async def filled(postgres_options: PostgresOptions, deadline_s: float) -> AsyncIterator[PostgresRecordStore]:
    """A private and a shared memory of two other tenants, with everything that can lie beside them."""
    opened = await open_store(postgres_options, fields_of)
    await opened.register_index(INDEX, deadline_s)
    memories = [
        memory_of(f"mem_{namespace}_{pool.name}", namespace=namespace, pool=pool, fact_key=pool.name)
        for namespace in OTHERS
        for pool in Pool
    ]
    commits = [
        commit_of(
            memory,
            embedding=vector_of(1),
            decision=DecisionRecord(Action.CREATED, 0.9, "v1", b"decision"),
            request=RequestRecord("alice", memory.memory_id, "hash", b"answer", NOW_US + DAY_US),
        )
        for memory in memories
    ]
    assert [result.error for result in await opened.commit(commits, deadline_s)] == [None] * 4
    accesses = [AccessRecord(memory.memory_id, memory.namespace, NOW_US, 0.1, 2.0, 0.1) for memory in memories]
    await opened.record_accesses(accesses, deadline_s)
    yield opened
    await opened.close()


@pytest.fixture
def without_conditions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every statement forgets to ask for the scope."""

    def forgotten(scope: Scope, table: str) -> tuple[str, clauses.Parameters]:
        _, parameters = clauses.in_scope(scope, table)
        return "true", parameters

    for module in (reads, store, upkeep):
        monkeypatch.setattr(module, "in_scope", forgotten)


async def everything_read(opened: PostgresRecordStore, scope: Scope, deadline_s: float) -> set[str]:
    """The ids that any read gives of the memories of others."""
    ids = [f"mem_{namespace}_{pool.name}" for namespace in OTHERS for pool in Pool]
    fetched = await opened.fetch(scope, ids, MODEL, 0, deadline_s)
    pending = await opened.pending(scope, {INDEX: 0}, MODEL, 0, 100, deadline_s)
    past = await opened.history(scope, NOW_US, MODEL, 100, deadline_s)
    found = {candidate.memory.memory_id for candidate in (*fetched, *pending.candidates, *past.candidates)}
    query = ListQuery(tuple(State), EVERYTHING, 100)
    found |= {memory.memory_id for memory in await opened.list_memories(scope, query, deadline_s)}
    for memory_id in ids:
        one = await opened.get(scope, memory_id, deadline_s)
        version = await opened.get_version(scope, memory_id, 1, deadline_s)
        page = await opened.list_versions(scope, memory_id, 0, 9, deadline_s)
        same = await opened.find_same_content(scope, "", Kind.FACT, content_hash_of(memory_id), deadline_s)
        answer = await opened.find_requests(scope, "alice", [memory_id], NOW_US, deadline_s)
        found |= {memory_id} if one or version or page or same or answer else set()
    for pool in Pool:
        fact = await opened.find_fact(scope, "", pool.name, deadline_s)
        found |= {fact.memory_id} if fact else set()
    return found


@pytest.mark.usefixtures("without_conditions")
async def test_a_read_that_forgets_its_filter_returns_nothing_of_others(
    filled: PostgresRecordStore, deadline_s: float
) -> None:
    assert await everything_read(filled, MINE, deadline_s) == set()
    assert await everything_read(filled, Scope(()), deadline_s) == set()


@pytest.mark.usefixtures("without_conditions")
async def test_a_read_that_forgets_its_filter_returns_the_shared_alone_to_readers_of_the_shared(
    filled: PostgresRecordStore, deadline_s: float
) -> None:
    reader = Scope(("acme.sales",), ("acme.hr",))
    assert await everything_read(filled, reader, deadline_s) == {"mem_acme.hr_SHARED"}


@pytest.mark.usefixtures("without_conditions")
async def test_a_scope_leaves_nothing_on_its_connection(filled: PostgresRecordStore, deadline_s: float) -> None:
    wide = Scope(OTHERS)
    assert len(await everything_read(filled, wide, deadline_s)) == 4
    assert await everything_read(filled, MINE, deadline_s) == set()


def tenant_tables(connection: psycopg.Connection[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Tables with a namespace: name, row security, forced, number of policies, whether a partition."""
    return connection.execute(
        "SELECT c.relname, c.relrowsecurity, c.relforcerowsecurity, (SELECT count(*) FROM pg_policy AS p"
        " WHERE p.polrelid = c.oid), c.relispartition FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid"
        " WHERE c.relkind IN ('r', 'p') AND a.attname = 'namespace' AND c.relnamespace = 'memplane'::regnamespace"
        " ORDER BY 1"
    ).fetchall()


def test_every_table_of_tenants_is_protected_from_its_owner_too(postgres_options: PostgresOptions) -> None:
    assert postgres_options.migrate_dsn
    with psycopg.connect(postgres_options.migrate_dsn) as connection:
        tables = tenant_tables(connection)
    assert {"memories", "memory_versions", "embeddings", "outbox", "requests", "retrievals"} <= {
        row[0] for row in tables
    }
    assert [name for name, enabled, forced, _, _ in tables if not (enabled and forced)] == []
    # A partition has no policy, so that it gives nothing to who asks it past its parent.
    assert [name for name, _, _, policies, is_partition in tables if (policies == 0) != is_partition] == []


def test_the_app_role_owns_nothing_and_bypasses_nothing(postgres_options: PostgresOptions) -> None:
    with psycopg.connect(postgres_options.dsn, autocommit=True) as connection:
        [role] = connection.execute(
            "SELECT rolsuper, rolbypassrls, pg_has_role(session_user, 'memplane_system', 'USAGE'), (SELECT count(*)"
            " FROM pg_class AS c WHERE c.relowner = r.oid) FROM pg_roles AS r WHERE rolname = session_user"
        ).fetchall()
        tables = [row[0] for row in tenant_tables(connection) if not row[4]]
        seen = {table: connection.execute(NOTHING_SET.format(table)).fetchall() for table in tables}
    assert role == (False, False, False, 0)
    assert {table: rows for table, rows in seen.items() if rows != [(0,)]} == {}


@pytest.mark.usefixtures("filled")
def test_with_nothing_set_a_session_sees_no_row_and_adds_none(postgres_options: PostgresOptions) -> None:
    with psycopg.connect(postgres_options.dsn, autocommit=True) as connection:
        assert connection.execute(NOTHING_SET.format("memories")).fetchone() == (0,)
        assert connection.execute("DELETE FROM memplane.memories").rowcount == 0
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(
                "INSERT INTO memplane.tombstones (memory_id, namespace, time_us, principal_id, reason)"
                " VALUES ('x', 'acme.hr', 0, 'eve', '')"
            )
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("SELECT * FROM memplane.retrievals_default")
