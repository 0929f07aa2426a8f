"""Reads go to a replica as far as it has what is asked for."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import psycopg
import pytest
from psycopg import conninfo

from dataplane.adapters.postgres.options import PostgresOptions
from dataplane.adapters.postgres.store import PostgresRecordStore
from memplane.settings import Secret
from tests.contract.builders import commit_of, fields_of, memory_of, scope_of
from tests.postgres import open_store
from tests.servers.postgres import PostgresServer
from tests.servers.process import free_port


@pytest.fixture
def options(new_postgres_options: PostgresOptions, postgres_replica: PostgresServer) -> PostgresOptions:
    replica_dsn = conninfo.make_conninfo(new_postgres_options.dsn, port=postgres_replica.port)
    return replace(new_postgres_options, replica_dsn=Secret(replica_dsn), replica_memory_ms=0.0)


@pytest.fixture
async def store(options: PostgresOptions) -> AsyncIterator[PostgresRecordStore]:
    opened = await open_store(options, fields_of)
    yield opened
    await opened.close()


async def until_on_replica(store: PostgresRecordStore, position: int) -> PostgresRecordStore | object:
    deadline_s = asyncio.get_running_loop().time() + 20
    while (found := await store.reads(position, deadline_s)) is store:
        assert asyncio.get_running_loop().time() < deadline_s
        await asyncio.sleep(0.02)
    return found


def pause(server: PostgresServer, *, paused: bool) -> None:
    """Stops and goes on with the replay of what a replica receives."""
    word = "pause" if paused else "resume"
    with psycopg.connect(server.dsn, autocommit=True) as connection:
        connection.execute(f"SELECT pg_wal_replay_{word}()".encode())


async def test_a_replica_answers_once_it_has_the_position(
    store: PostgresRecordStore, postgres_replica: PostgresServer
) -> None:
    deadline_s = asyncio.get_running_loop().time() + 30
    [first] = await store.commit([commit_of(memory_of())], deadline_s)
    await until_on_replica(store, first.position)
    near = await store.reads(first.position, deadline_s)
    assert await near.get(scope_of(), "mem_1", deadline_s) == memory_of()
    assert await near.get(scope_of("acme.hr"), "mem_1", deadline_s) is None
    pause(postgres_replica, paused=True)
    try:
        [second] = await store.commit([commit_of(memory_of("mem_2"))], deadline_s)
        assert await store.reads(second.position, deadline_s) is store
    finally:
        pause(postgres_replica, paused=False)
    await until_on_replica(store, second.position)
    examination = await store.examine(deadline_s)
    assert examination.problems == ()


async def test_a_replica_that_does_not_answer_is_told_and_not_used(options: PostgresOptions) -> None:
    assert options.replica_dsn
    nowhere = Secret(conninfo.make_conninfo(options.replica_dsn, port=free_port()))
    store = await open_store(replace(options, replica_dsn=nowhere), fields_of)
    loop = asyncio.get_running_loop()
    started_s = loop.time()
    assert await store.reads(0, started_s + 10) is store
    assert loop.time() - started_s < 5
    examination = await store.examine(loop.time() + 1)
    await store.close()
    assert [problem.code for problem in examination.problems] == ["REPLICA_UNAVAILABLE"]
