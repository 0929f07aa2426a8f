"""What opening and examining tell of a database that cannot be used as it is."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import psycopg
import pytest
from psycopg import conninfo

from dataplane.adapters.postgres.migrate import migrate
from dataplane.adapters.postgres.options import PostgresOptions
from dataplane.adapters.postgres.reach import answers
from dataplane.errors import BackendUnavailable, Misconfigured
from memplane.process import SystemClock
from memplane.settings import Secret
from tests.contract.builders import fields_of
from tests.postgres import APP_ROLE, open_store, options_for
from tests.servers.postgres import PostgresServer
from tests.servers.process import free_port


def administer(options: PostgresOptions, *commands: str) -> None:
    assert options.migrate_dsn
    with psycopg.connect(options.migrate_dsn, autocommit=True) as connection:
        for command in commands:
            connection.execute(command)


def changed(reached: PostgresOptions, **parts: str | int) -> PostgresOptions:
    """The options with parts of the app's DSN replaced."""
    return replace(reached, dsn=Secret(conninfo.make_conninfo(reached.dsn, **parts)))


async def problem_of(options: PostgresOptions) -> str:
    with pytest.raises(Misconfigured) as raised:
        await open_store(options, fields_of)
    return raised.value.problem


@pytest.fixture
def strong_role(postgres_server: PostgresServer) -> str:
    """A role that a test may give any attribute; memplane_app is every test's."""
    with psycopg.connect(postgres_server.dsn, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS strong_role, owner_of_a_test")
        connection.execute("CREATE ROLE strong_role LOGIN PASSWORD 'strong'")
    return "strong_role"


async def test_a_wrong_password_is_told_without_the_password(migrated_postgres: PostgresOptions) -> None:
    problem = await problem_of(changed(migrated_postgres, password="guessed"))
    assert problem.startswith(f"the password or the role of {APP_ROLE} at 127.0.0.1:")
    assert "guessed" not in problem


async def test_an_unknown_database_is_told(migrated_postgres: PostgresOptions) -> None:
    assert "there is no such database" in await problem_of(changed(migrated_postgres, dbname="nowhere"))


async def test_a_missing_schema_is_told(postgres_database: str) -> None:
    assert await problem_of(options_for(postgres_database)) == "the schema is missing; run memplane migrate"


async def test_a_schema_that_is_behind_is_told(new_postgres_options: PostgresOptions) -> None:
    administer(new_postgres_options, "DELETE FROM memplane.schema_migrations WHERE version > 1")
    assert "run memplane migrate" in await problem_of(new_postgres_options)


async def test_a_schema_of_a_newer_release_is_told(new_postgres_options: PostgresOptions) -> None:
    administer(new_postgres_options, "INSERT INTO memplane.schema_migrations VALUES (99, 'later', 'x')")
    assert "the schema is version 99" in await problem_of(new_postgres_options)


async def test_a_missing_grant_is_told(new_postgres_options: PostgresOptions) -> None:
    administer(new_postgres_options, f"REVOKE ALL ON memplane.outbox FROM {APP_ROLE}")
    problem = await problem_of(new_postgres_options)
    assert problem == f"role {APP_ROLE} has no rights to outbox; run memplane migrate"


async def test_row_security_that_was_turned_off_is_told(new_postgres_options: PostgresOptions) -> None:
    administer(new_postgres_options, "ALTER TABLE memplane.memories NO FORCE ROW LEVEL SECURITY")
    assert "row-level security is off for memories" in await problem_of(new_postgres_options)


async def test_a_superuser_is_not_worked_as(new_postgres_options: PostgresOptions) -> None:
    assert new_postgres_options.migrate_dsn
    problem = await problem_of(replace(new_postgres_options, dsn=new_postgres_options.migrate_dsn))
    assert "is a superuser or bypasses row-level security" in problem


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ("ALTER ROLE strong_role BYPASSRLS", "bypasses row-level security"),
        (
            "ALTER TABLE memplane.outbox OWNER TO strong_role",
            "role strong_role owns outbox; run memplane migrate, or as an administrator: "
            "ALTER TABLE memplane.outbox OWNER TO postgres",
        ),
        (
            "CREATE ROLE owner_of_a_test; GRANT owner_of_a_test TO strong_role; "
            "ALTER TABLE memplane.outbox OWNER TO owner_of_a_test",
            "has the rights of owner_of_a_test, which owns tables; run REVOKE owner_of_a_test FROM strong_role",
        ),
        ("GRANT memplane_system TO strong_role", "inherits memplane_system and so sees every namespace"),
        ("SELECT 1", "may not take on memplane_system"),
    ],
)
async def test_a_role_that_may_do_too_much_or_too_little_is_not_worked_as(
    new_postgres_options: PostgresOptions, strong_role: str, command: str, problem: str
) -> None:
    administer(new_postgres_options, command)
    options = replace(changed(new_postgres_options, user=strong_role, password="strong"), app_role=strong_role)
    assert problem in await problem_of(options)
    administer(new_postgres_options, "ALTER TABLE memplane.outbox OWNER TO postgres")


async def test_a_read_only_server_is_told(new_postgres_options: PostgresOptions) -> None:
    options = changed(new_postgres_options, options="-c default_transaction_read_only=on")
    assert "the server is read-only" in await problem_of(options)


async def test_a_standby_is_told(postgres_server: PostgresServer, postgres_replica: PostgresServer) -> None:
    database = "memplane_of_a_standby"
    options = options_for(postgres_server.database(database))
    migrate(options)
    deadline_s = asyncio.get_running_loop().time() + 20
    standby = changed(options, port=postgres_replica.port)
    while "leads to a standby" not in (problem := await problem_of(standby)):
        assert asyncio.get_running_loop().time() < deadline_s, problem
        await asyncio.sleep(0.05)


async def test_nothing_that_answers_is_unavailable_not_misconfigured(migrated_postgres: PostgresOptions) -> None:
    port = free_port()
    with pytest.raises(BackendUnavailable) as raised:
        await open_store(changed(migrated_postgres, port=port), fields_of)
    assert raised.value.words == (
        f"nothing answers at 127.0.0.1:{port} (user {APP_ROLE}); start the server or correct record_store.dsn"
    )


async def test_a_server_that_refuses_the_login_answers(migrated_postgres: PostgresOptions) -> None:
    assert await answers(migrated_postgres.dsn)
    assert await answers(changed(migrated_postgres, password="guessed").dsn)
    assert not await answers(changed(migrated_postgres, port=free_port()).dsn)


@pytest.mark.parametrize(
    ("parts", "problem"),
    [
        ({"port": "notaport"}, "dsn has a port that is no number from 1 to 65535; 5432 is usual"),
        ({"sslmode": "bogus"}, "dsn has a value for sslmode that PostgreSQL does not know"),
    ],
)
async def test_a_dsn_that_can_never_work_is_told(
    migrated_postgres: PostgresOptions, parts: dict[str, str], problem: str
) -> None:
    assert await problem_of(changed(migrated_postgres, **parts)) == problem


async def test_a_replica_dsn_that_can_never_work_is_told(migrated_postgres: PostgresOptions) -> None:
    nowhere = changed(migrated_postgres, port="notaport").dsn
    assert (await problem_of(replace(migrated_postgres, replica_dsn=nowhere))).startswith("replica_dsn has a port")


async def test_a_sound_server_has_no_problems(migrated_postgres: PostgresOptions) -> None:
    store = await open_store(migrated_postgres, fields_of)
    examination = await store.examine(asyncio.get_running_loop().time() + 10)
    await store.close()
    assert examination.server.startswith("PostgreSQL 1")
    assert examination.problems == ()


async def test_what_goes_wrong_while_running_is_a_problem(
    new_postgres_options: PostgresOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = changed(new_postgres_options, options="-c synchronous_commit=off")
    store = await open_store(options, fields_of)
    now: Callable[[SystemClock], int] = SystemClock.now_us
    monkeypatch.setattr(SystemClock, "now_us", lambda clock: now(clock) - 5_000_000)
    administer(new_postgres_options, f"REVOKE ALL ON memplane.outbox FROM {APP_ROLE}")
    examination = await store.examine(asyncio.get_running_loop().time() + 10)
    await store.close()
    codes = {problem.code for problem in examination.problems}
    assert codes == {"GRANTS_MISSING", "CLOCK_SKEW", "SYNCHRONOUS_COMMIT_OFF"}
