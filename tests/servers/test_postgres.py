"""The PostgreSQL of the tests is a real one."""

from collections.abc import Callable

import psycopg
import pytest

from tests.servers.postgres import PostgresServer
from tests.servers.process import wait_until


def ask(dsn: str, query: str) -> object:
    with psycopg.connect(dsn, autocommit=True) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return row[0]


def tell(dsn: str, *commands: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        for command in commands:
            connection.execute(command)


def test_it_syncs_to_disk_and_has_pgvector(postgres_database: str) -> None:
    tell(postgres_database, "CREATE EXTENSION vector")
    assert ask(postgres_database, "SHOW fsync") == "on"
    assert ask(postgres_database, "SELECT '[1,2]'::vector <-> '[1,4]'::vector") == 2.0


def test_each_test_gets_an_empty_database(postgres_database_factory: Callable[[], str]) -> None:
    first, second = postgres_database_factory(), postgres_database_factory()
    tell(first, "CREATE TABLE only_here (a int)")
    assert ask(first, "SELECT to_regclass('only_here')::text") == "only_here"
    assert ask(second, "SELECT to_regclass('only_here')::text") is None


def test_a_wrong_password_is_refused(postgres_server: PostgresServer) -> None:
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(postgres_server.dsn_of("postgres", password="guess"))


def test_what_was_committed_outlives_kill_9() -> None:
    server = PostgresServer.create()
    try:
        tell(server.dsn, "CREATE TABLE kept (a int)", "INSERT INTO kept VALUES (7)")
        server.kill()
        with pytest.raises(psycopg.OperationalError):
            psycopg.connect(server.dsn)
        server.start()
        assert ask(server.dsn, "SELECT a FROM kept") == 7
    finally:
        server.close()
    assert not server.process.folder.exists()


def test_a_replica_follows_and_refuses_writes(
    postgres_server: PostgresServer, postgres_replica: PostgresServer
) -> None:
    tell(postgres_server.dsn, "DROP TABLE IF EXISTS followed", "CREATE TABLE followed (a int)")
    wait_until(lambda: ask(postgres_replica.dsn, "SELECT to_regclass('followed')::text") is not None, 10, "it follows")
    with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
        tell(postgres_replica.dsn, "INSERT INTO followed VALUES (1)")
