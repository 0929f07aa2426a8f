"""Migrations, alone and all at once."""

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace

import psycopg
import pytest
from psycopg import conninfo

from dataplane.adapters.postgres.migrate import migrate
from dataplane.adapters.postgres.options import PostgresOptions
from dataplane.adapters.postgres.schema import read_migrations
from dataplane.errors import Misconfigured
from memplane.cli.config import plane_environment
from memplane.settings import Secret
from tests.postgres import options_for
from tests.servers.postgres import PostgresServer


def ask(options: PostgresOptions, query: str) -> list[tuple[object, ...]]:
    assert options.migrate_dsn
    with psycopg.connect(options.migrate_dsn, autocommit=True) as connection:
        return connection.execute(query).fetchall()


def tell(options: PostgresOptions, command: str) -> None:
    assert options.migrate_dsn
    with psycopg.connect(options.migrate_dsn, autocommit=True) as connection:
        connection.execute(command)


def test_migrating_again_makes_nothing(postgres_database: str) -> None:
    options = options_for(postgres_database)
    made = migrate(options)
    assert made[:2] == ["schema memplane", "migration 0001_initial"]
    assert migrate(options) == []
    assert migrate(options, is_check=True) == []


def test_a_check_makes_nothing(postgres_database: str) -> None:
    options = options_for(postgres_database)
    missing = migrate(options, is_check=True)
    assert ask(options, "SELECT to_regnamespace('memplane')") == [(None,)]
    assert migrate(options) == missing


def test_four_migrations_at_once_make_one_schema(postgres_database: str) -> None:
    options = options_for(postgres_database)
    assert options.migrate_dsn
    environment = {"MEMPLANE_MIGRATE_DSN": options.dsn, "MEMPLANE_MIGRATE_MIGRATE_DSN": options.migrate_dsn}
    started = [
        subprocess.Popen(
            [sys.executable, "-m", "dataplane.migrate", "--json"],
            env=plane_environment(environment),
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    said = [json.loads(process.communicate(timeout=60)[0]) for process in started]
    assert [process.returncode for process in started] == [0] * 4
    assert sorted(len(answer["changes"]) > 0 for answer in said) == [False, False, False, True]
    assert ask(options, "SELECT count(*) FROM memplane.schema_migrations") == [(len(read_migrations()),)]


def test_rights_that_were_taken_are_given_again(postgres_database: str) -> None:
    options = options_for(postgres_database)
    migrate(options)
    tell(options, "REVOKE DELETE ON memplane.memories FROM memplane_app")
    tell(options, "DROP POLICY system ON memplane.outbox")
    assert migrate(options) == [
        "rights of memplane_app to 1 tables",
        "policy by which memplane_system sees all of outbox",
    ]


def test_a_table_that_the_app_role_owns_is_told_by_a_check_and_taken_back(postgres_database: str) -> None:
    options = options_for(postgres_database)
    migrate(options)
    tell(options, "ALTER TABLE memplane.outbox OWNER TO memplane_app")
    missing = migrate(options, is_check=True)
    assert missing[0] == "ownership of outbox by postgres, not memplane_app"
    assert migrate(options) == missing
    assert migrate(options, is_check=True) == []


def test_a_schema_that_the_app_role_owns_is_refused(postgres_database: str) -> None:
    options = options_for(postgres_database)
    migrate(options)
    tell(options, "ALTER SCHEMA memplane OWNER TO memplane_app; ALTER TABLE memplane.outbox OWNER TO memplane_app")
    with pytest.raises(
        Misconfigured, match="memplane_app, which data planes log in as, owns the schema memplane; give"
    ):
        migrate(options, is_check=True)
    tell(options, "ALTER SCHEMA memplane OWNER TO postgres; ALTER TABLE memplane.outbox OWNER TO postgres")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ("INSERT INTO memplane.schema_migrations VALUES (99, 'later', 'x')", "the schema is version 99"),
        ("UPDATE memplane.schema_migrations SET checksum = 'x'", "0001_initial is not the one"),
    ],
)
def test_a_schema_that_this_release_does_not_know_is_left_alone(
    postgres_database: str, change: str, problem: str
) -> None:
    options = options_for(postgres_database)
    migrate(options)
    tell(options, change)
    with pytest.raises(Misconfigured, match=problem):
        migrate(options)


def test_what_lay_in_the_default_partition_moves_to_its_month(postgres_database: str) -> None:
    options = options_for(postgres_database)
    migrate(options)
    tell(options, "SET ROLE memplane_system; SELECT memplane.make_partitions(0)")
    late = "(extract(epoch FROM date_trunc('month', now()) + interval '5 months 3 days') * 1000000)::bigint"
    tell(options, f"INSERT INTO memplane.retrievals VALUES ('s', 'acme', 'alice', {late}, 'v', 'h')")
    assert ask(options, "SELECT count(*) FROM memplane.retrievals_default") == [(1,)]
    assert ask(options, "SELECT memplane.make_partitions(5)") == [(6,)]
    assert ask(options, "SELECT count(*) FROM memplane.retrievals_default") == [(0,)]
    assert ask(options, "SELECT search_id FROM memplane.retrievals") == [("s",)]


@pytest.mark.parametrize(
    ("dsn", "problem"),
    [
        (None, "migrate_dsn is missing"),
        (Secret("no dsn"), "migrate_dsn is not a DSN"),
        (Secret("postgresql:///"), "names no database or no user"),
        (Secret("postgresql://owner@127.0.0.1:notaport/memplane"), "migrate_dsn has a port that is no number"),
    ],
)
def test_a_dsn_that_is_none_is_told(dsn: Secret | None, problem: str) -> None:
    options = PostgresOptions(Secret("postgresql://app@nowhere/memplane"), migrate_dsn=dsn)
    with pytest.raises(Misconfigured, match=problem) as raised:
        migrate(options)
    assert "no dsn" not in str(raised.value)


def test_a_dsn_of_the_app_role_that_is_none_is_told_by_a_migration(postgres_database: str) -> None:
    options = replace(options_for(postgres_database), dsn=Secret("postgresql://app:hidden@db:notaport/memplane"))
    with pytest.raises(Misconfigured, match="record_store: dsn has a port") as raised:
        migrate(options)
    assert "hidden" not in str(raised.value)


def test_who_may_not_make_roles_is_told_what_an_administrator_runs(
    postgres_server: PostgresServer, postgres_database_factory: Callable[[], str]
) -> None:
    database = postgres_database_factory()
    name = conninfo.conninfo_to_dict(database)["dbname"]
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS memplane_owner_of_a_test")
        connection.execute("CREATE ROLE memplane_owner_of_a_test LOGIN PASSWORD 'owner'")
        connection.execute(f"ALTER DATABASE {name} OWNER TO memplane_owner_of_a_test")
    owner = postgres_server.dsn_of(str(name), "memplane_owner_of_a_test", "owner")
    options = replace(options_for(owner), app_role="nobody_yet", system_role="none_yet")
    with pytest.raises(Misconfigured, match="CREATE ROLE none_yet NOLOGIN; CREATE ROLE nobody_yet LOGIN NOINHERIT"):
        migrate(options)
    assert ask(options, "SELECT to_regnamespace('memplane')") == [(None,)]
