"""What the revision store in PostgreSQL does when the database is not as it should be."""

import psycopg
import pytest
from psycopg import conninfo, sql

from controlplane.postgres_revisions import PostgresRevisions, address
from controlplane.revisions import Change, Head, Revision, UnknownSchema, UnusableStore
from memplane.errors import Unavailable
from memplane.settings import Secret
from tests.servers.postgres import PostgresServer
from tests.servers.process import free_port

REVISION = Revision(1, "sha256:1", 1, "ann", "", "rpc")


def as_role(dsn: str, name: str) -> Secret:
    """The DSN of a new role without any rights of its own."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        made = sql.SQL("CREATE ROLE {} LOGIN PASSWORD 'role-of-the-tests'").format(sql.Identifier(name))
        connection.execute(made)
    return Secret(conninfo.make_conninfo(dsn, user=name, password="role-of-the-tests"))


async def test_a_role_that_may_not_make_the_schema_is_told_what_to_grant(postgres_database: str) -> None:
    with pytest.raises(UnusableStore, match="GRANT CREATE ON DATABASE"):
        await PostgresRevisions.open(as_role(postgres_database, "revisions_without_rights"))


async def test_a_role_that_owns_the_schema_needs_no_more(postgres_database: str) -> None:
    dsn = as_role(postgres_database, "revisions_owner")
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA memplane_control AUTHORIZATION revisions_owner")
    store = await PostgresRevisions.open(dsn)
    await store.write(Change(REVISION))
    assert await store.head() == Head(REVISION)
    await store.close()


async def test_a_database_of_another_schema_is_refused(postgres_database: str) -> None:
    await (await PostgresRevisions.open(Secret(postgres_database))).close()
    with psycopg.connect(postgres_database, autocommit=True) as connection:
        connection.execute("UPDATE memplane_control.schema_version SET version = 99")
    with pytest.raises(UnknownSchema, match="schema 99"):
        await PostgresRevisions.open(Secret(postgres_database))


async def test_what_is_no_dsn_is_refused_without_being_shown() -> None:
    with pytest.raises(UnusableStore, match="no DSN") as refused:
        await PostgresRevisions.open(Secret("a secret that is no DSN"))
    assert "secret" not in str(refused.value)


async def test_a_server_that_does_not_answer_is_unavailable_and_the_log_has_no_password(
    caplog: pytest.LogCaptureFixture,
) -> None:
    port = free_port()
    with pytest.raises(Unavailable):
        await PostgresRevisions.open(Secret(f"postgresql://ann:very-secret@127.0.0.1:{port}/policy"))
    assert f"127.0.0.1:{port}/policy" in caplog.text
    assert "very-secret" not in caplog.text


def test_an_address_has_no_password() -> None:
    assert address(Secret("postgresql://ann:secret@db.example:5433/policy")) == "db.example:5433/policy"


@pytest.mark.slow
async def test_after_a_killed_server_came_back_the_store_works_and_has_everything(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = PostgresServer.create()
    try:
        store = await PostgresRevisions.open(Secret(server.database("policy")))
        await store.write(Change(REVISION))
        server.kill()
        for _ in range(3):
            with pytest.raises(Unavailable):
                await store.newest()
        assert len([record for record in caplog.records if "revision store" in record.getMessage()]) <= 2
        server.start()
        assert await store.head() == Head(REVISION)
        await store.close()
    finally:
        server.close()
