"""A new database is analysed after its first thousands of commits, not only when autovacuum comes by. About 5 s."""

import asyncio

import psycopg

from dataplane.adapters.postgres.migrate import migrate
from tests.contract.builders import commit_of, fields_of, memory_of
from tests.deadline import eventually_async
from tests.postgres import open_store, options_for
from tests.servers.postgres import PostgresServer

YOUNG = "SELECT relname, reltuples FROM pg_class WHERE relnamespace = 'memplane'::regnamespace AND relname = 'memories'"
ANALYSE = "SELECT memplane.analyse_young()"


async def test_the_first_thousands_of_commits_are_analysed_by_the_data_plane(postgres_server: PostgresServer) -> None:
    options = options_for(postgres_server.database("young"))
    await asyncio.to_thread(migrate, options)
    store = await open_store(options, fields_of)
    try:
        assert options.migrate_dsn
        with psycopg.connect(str(options.dsn), autocommit=True) as app:
            assert app.execute(ANALYSE).fetchone() == (5,)
            assert app.execute(YOUNG).fetchone() == ("memories", -1)
            for page in range(15):
                commits = [commit_of(memory_of(f"mem_{page}_{number}")) for number in range(100)]
                await store.commit(commits, asyncio.get_running_loop().time() + 30)
            assert (app.execute(ANALYSE).fetchone() or (5,))[0] < 5
            assert (app.execute(YOUNG).fetchone() or ("", 0))[1] >= 1_000
    finally:
        await store.close()
        await asyncio.to_thread(postgres_server.drop, "young")


async def test_the_data_plane_looks_by_itself(postgres_server: PostgresServer) -> None:
    options = options_for(postgres_server.database("younger"))
    await asyncio.to_thread(migrate, options)
    store = await open_store(options, fields_of)
    try:
        for page in range(15):
            commits = [commit_of(memory_of(f"mem_{page}_{number}")) for number in range(100)]
            await store.commit(commits, asyncio.get_running_loop().time() + 30)
        with psycopg.connect(str(options.dsn), autocommit=True) as app:

            async def analysed() -> bool:
                return (app.execute(YOUNG).fetchone() or ("", -1))[1] > 0

            await eventually_async(analysed, bool, 15)
    finally:
        await store.close()
        await asyncio.to_thread(postgres_server.drop, "younger")
