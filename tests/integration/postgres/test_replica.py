"""Reads go to a replica as far as it has what is asked for."""

import asyncio
import socket
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
    await told_and_passed_over(replace(options, replica_dsn=nowhere))


async def test_a_replica_that_accepts_and_never_answers_is_told_and_not_waited_for(options: PostgresOptions) -> None:
    assert options.replica_dsn
    with socket.create_server(("127.0.0.1", 0)) as mute:
        dsn = Secret(conninfo.make_conninfo(options.replica_dsn, port=mute.getsockname()[1]))
        await told_and_passed_over(replace(options, replica_dsn=dsn, connect_timeout_s=2.0))


async def told_and_passed_over(options: PostgresOptions) -> None:
    """Asserts that a store does without its replica, whose failure is told and delays nobody twice."""
    store = await open_store(options, fields_of)
    loop = asyncio.get_running_loop()
    assert await store.reads(0, loop.time() + 10) is store
    started_s = loop.time()
    for _ in range(20):
        assert await store.reads(0, loop.time() + 10) is store
    assert loop.time() - started_s < 20 * 0.05
    examination = await store.examine(loop.time() + 5)
    assert loop.time() - started_s < 4
    await store.close()
    assert examination.server.startswith("PostgreSQL")
    [problem] = examination.problems
    assert problem.code == "REPLICA_UNAVAILABLE"
    assert problem.message.endswith("; start it or correct record_store.replica_dsn")


async def test_a_replica_that_is_behind_is_told_with_what_to_do(
    options: PostgresOptions, postgres_replica: PostgresServer
) -> None:
    store = await open_store(replace(options, replica_max_lag_s=0.5), fields_of)
    loop = asyncio.get_running_loop()
    [first] = await store.commit([commit_of(memory_of())], loop.time() + 10)
    await until_on_replica(store, first.position)
    pause(postgres_replica, paused=True)
    try:
        await store.commit([commit_of(memory_of("mem_2"))], loop.time() + 10)
        end_s = loop.time() + 20
        while not (problems := (await store.examine(loop.time() + 5)).problems):
            assert loop.time() < end_s
            await asyncio.sleep(0.05)
    finally:
        pause(postgres_replica, paused=False)
    await store.close()
    assert [problem.code for problem in problems] == ["REPLICA_LAGS"]
    assert "; see what holds up its replay" in problems[0].message
