"""A PostgreSQL that is down: calls fail at once and say where nothing answers; when it is back, they succeed again."""

import asyncio
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from time import monotonic
from typing import Any

import grpc
import psycopg
import pytest
from psycopg import conninfo

from dataplane.adapters.postgres.migrate import migrate
from dataplane.adapters.postgres.options import PostgresOptions
from dataplane.adapters.postgres.pool import Pool
from dataplane.adapters.postgres.queue import PostgresQueueOptions, PostgresWriteQueue
from dataplane.adapters.postgres.store import PostgresRecordStore
from dataplane.adapters.postgres.text import PostgresTextIndex
from dataplane.adapters.postgres.vector import PostgresVectorIndex
from dataplane.errors import BackendUnavailable
from dataplane.logic.tokens import TOKENIZER
from memplane.client.errors import from_call
from memplane.settings import Secret
from memplane.v1 import memory_service_pb2 as pb
from tests.contract.builders import commit_of, fields_of, memory_of, scope_of
from tests.integration.harness import as_user, running_plane, write
from tests.postgres import open_store, options_for
from tests.servers.postgres import PostgresServer

LONG_S = 30.0
"""The deadline of calls that must not take it up."""


@pytest.fixture(scope="module")
def mortal_server() -> Iterator[PostgresServer]:
    """A server of this module's own, to be killed."""
    server = PostgresServer.create()
    yield server
    server.close()


@pytest.fixture(scope="module")
def options(mortal_server: PostgresServer) -> PostgresOptions:
    owner_dsn = mortal_server.database("mortal")
    with psycopg.connect(owner_dsn, autocommit=True) as connection:
        connection.execute("CREATE EXTENSION vector")
    made = options_for(owner_dsn)
    migrate(made)
    return made


@pytest.fixture
async def store(options: PostgresOptions) -> AsyncIterator[PostgresRecordStore]:
    opened = await open_store(options, fields_of)
    yield opened
    await opened.close()


@asynccontextmanager
async def killed(server: PostgresServer) -> AsyncIterator[None]:
    await asyncio.to_thread(server.kill)
    try:
        yield
    finally:
        server.start()  # of the main thread, with which it would end


async def refusal(call: Callable[[float], Awaitable[object]]) -> tuple[BackendUnavailable, float]:
    """What a call with a long deadline fails with, and after how many seconds."""
    started_s = monotonic()
    with pytest.raises(BackendUnavailable) as raised:
        await call(asyncio.get_running_loop().time() + LONG_S)
    return raised.value, monotonic() - started_s


async def until_answered(call: Callable[[float], Awaitable[object]]) -> float:
    """After how many seconds a call succeeds."""
    started_s = monotonic()
    while True:
        try:
            await call(asyncio.get_running_loop().time() + LONG_S)
        except BackendUnavailable:
            assert monotonic() - started_s < LONG_S
            await asyncio.sleep(0.02)
        else:
            return monotonic() - started_s


async def test_a_killed_server_fails_reads_and_commits_at_once_until_it_is_back(
    store: PostgresRecordStore, mortal_server: PostgresServer
) -> None:
    def commit(deadline_s: float) -> Awaitable[object]:
        return store.commit([commit_of(memory_of())], deadline_s)

    def read(deadline_s: float) -> Awaitable[object]:
        return store.fetch(scope_of(), ["mem_1"], "", 0, deadline_s)

    await until_answered(commit)
    await asyncio.gather(*(until_answered(read) for _ in range(8)))
    async with killed(mortal_server):
        first = await asyncio.gather(refusal(read), refusal(commit))
        assert {error.words for error, _ in first} == {f"nothing answers at 127.0.0.1:{mortal_server.port}"}
        assert max(took_s for _, took_s in first) < 2.5
        started_s = monotonic()
        for _ in range(50):
            await refusal(read)
            await refusal(commit)
        assert monotonic() - started_s < 5
    assert await until_answered(read) < 3
    assert await until_answered(commit) < 3


async def test_indexes_and_queue_of_a_killed_server_fail_at_once(
    options: PostgresOptions, mortal_server: PostgresServer
) -> None:
    until_s = asyncio.get_running_loop().time() + LONG_S
    vectors = await PostgresVectorIndex.open(options, "model", 4, until_s)
    texts = await PostgresTextIndex.open(options, TOKENIZER, until_s)
    queue = await PostgresWriteQueue.open(options, PostgresQueueOptions(), until_s)
    calls = (vectors.active_model, texts.count, queue.depth, vectors.examine, texts.examine, queue.examine)
    for call in calls:
        await until_answered(call)
    async with killed(mortal_server):
        for call in calls:
            error, took_s = await refusal(call)
            assert error.detail == f"nothing answers at 127.0.0.1:{mortal_server.port}"
            assert took_s < 2.5
    for backend in (vectors, texts, queue):
        assert await until_answered(backend.examine) < 3
        await backend.close()


async def test_a_connection_is_waited_for_no_longer_than_the_options_say(
    options: PostgresOptions, mortal_server: PostgresServer
) -> None:
    narrow = replace(options, pool_size=1, acquire_timeout_s=0.2)
    pool = await Pool.open(narrow.dsn, narrow)
    async with pool.lend(asyncio.get_running_loop().time() + LONG_S):
        error, took_s = await refusal(lambda deadline_s: pool.read(scope_of(), "SELECT 1", {}, deadline_s))
    await until_answered(lambda deadline_s: pool.read(scope_of(), "SELECT 1", {}, deadline_s))
    await pool.close()
    where = f"127.0.0.1:{mortal_server.port}"
    assert error.words == f"no connection to {where} was free or could be made within 0.2 s"
    assert took_s < 2


async def test_a_server_that_accepts_and_never_answers_is_not_waited_for_again(options: PostgresOptions) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mute:
        port = mute.getsockname()[1]
        dsn = Secret(conninfo.make_conninfo(options.dsn, port=port))
        pool = await Pool.open(dsn, replace(options, acquire_timeout_s=0.2, connect_timeout_s=2.0))
        started_s = monotonic()
        while True:
            error, took_s = await refusal(lambda deadline_s: pool.read(scope_of(), "SELECT 1", {}, deadline_s))
            if error.detail == f"nothing answers at 127.0.0.1:{port}" and took_s < 0.05:
                break
            assert took_s < 1
            assert monotonic() - started_s < 10
        await pool.close()


async def test_callers_of_a_plane_hear_at_once_that_the_record_store_is_unavailable(
    options: PostgresOptions, mortal_server: PostgresServer
) -> None:
    store = await open_store(options, fields_of)
    async with running_plane(records=store) as plane:
        written = (await write(plane, "The gate opens at six", "dept.sales")).memory
        get = pb.GetMemoryRequest(namespace="dept.sales", id=written.id)
        another = pb.WriteMemoryRequest(namespace="dept.sales", content="The canteen is shut", session_id="s")
        asked = pb.SearchMemoriesRequest(namespace="dept.sales", query="gate")
        async with killed(mortal_server):
            started_s = monotonic()
            calls: tuple[Any, ...] = (
                plane.stub.GetMemory(get, metadata=as_user(), timeout=LONG_S),
                plane.stub.WriteMemory(another, metadata=as_user(), timeout=LONG_S),
            )
            for call in calls:
                with pytest.raises(grpc.aio.AioRpcError) as raised:
                    await call
                assert raised.value.code() is grpc.StatusCode.UNAVAILABLE
                assert from_call(raised.value).reason == "BACKEND_UNAVAILABLE"
            found = await plane.stub.SearchMemories(asked, metadata=as_user(), timeout=LONG_S)
            assert [hit.memory.id for hit in found.hits] == [written.id]
            assert "record_store" in [note.backend for note in found.degraded]
            assert monotonic() - started_s < 5
    await store.close()
