"""pgvector in a database of the tests."""

import psycopg

from dataplane.adapters.postgres.options import PostgresOptions


def with_pgvector(options: PostgresOptions) -> PostgresOptions:
    """The same database, with the extension, which a superuser must make."""
    assert options.migrate_dsn
    with psycopg.connect(options.migrate_dsn, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
    return options
