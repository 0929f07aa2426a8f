"""A database of the tests' PostgreSQL with MemPlane's schema and roles."""

import asyncio
from collections.abc import Callable, Iterator

import psycopg
import pytest
from psycopg import conninfo

from dataplane.adapters.postgres.migrate import migrate
from dataplane.adapters.postgres.options import PostgresOptions
from dataplane.adapters.postgres.store import PostgresRecordStore
from dataplane.adapters.record_rules import FieldsOf
from memplane.process import SystemClock
from memplane.settings import Secret
from tests.servers.postgres import PostgresServer

APP_ROLE = "memplane_app"
APP_PASSWORD = "app-of-the-tests"
_EMPTY = """
DO $body$
DECLARE
    name text;
BEGIN
    FOR name IN SELECT relname FROM pg_class WHERE relnamespace = 'memplane'::regnamespace AND relkind IN ('r', 'p')
        AND NOT relispartition AND relname NOT IN ('schema_migrations', 'last_position')
    LOOP
        EXECUTE format('DELETE FROM memplane.%I', name);
    END LOOP;
    UPDATE memplane.last_position SET position = 0;
END
$body$"""


def options_for(owner_dsn: str, *, app_role: str = APP_ROLE, password: str = APP_PASSWORD) -> PostgresOptions:
    """How the app role and the owner reach a database."""
    app_dsn = conninfo.make_conninfo(owner_dsn, user=app_role, password=password)
    return PostgresOptions(Secret(app_dsn), migrate_dsn=Secret(owner_dsn), app_role=app_role)


def empty(options: PostgresOptions) -> None:
    """Deletes every row but the schema's own."""
    assert options.migrate_dsn
    with psycopg.connect(options.migrate_dsn, autocommit=True) as connection:
        connection.execute(_EMPTY)


async def open_store(options: PostgresOptions, fields_of: FieldsOf) -> PostgresRecordStore:
    """A store of the running event loop; the caller closes it."""
    deadline_s = asyncio.get_running_loop().time() + 30
    return await PostgresRecordStore.open(options, fields_of=fields_of, clock=SystemClock(), deadline_s=deadline_s)


@pytest.fixture(scope="session")
def migrated_postgres(postgres_server: PostgresServer) -> Iterator[PostgresOptions]:
    """A database with MemPlane's schema, shared by the tests of this process."""
    options = options_for(postgres_server.database("memplane_of_the_tests"))
    migrate(options)
    yield options
    postgres_server.drop("memplane_of_the_tests")


@pytest.fixture
def postgres_options(migrated_postgres: PostgresOptions) -> PostgresOptions:
    """To `migrated_postgres`, emptied."""
    empty(migrated_postgres)
    return migrated_postgres


@pytest.fixture
def new_postgres_options(postgres_database_factory: Callable[[], str]) -> PostgresOptions:
    """To a database of the test's own, migrated."""
    options = options_for(postgres_database_factory())
    migrate(options)
    return options
