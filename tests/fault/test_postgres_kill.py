"""A PostgreSQL that is killed or cut off: what was acknowledged is there, once, and the pool recovers by itself."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace

import psycopg
import pytest

from dataplane.adapters.postgres.migrate import migrate
from dataplane.adapters.postgres.options import PostgresOptions
from dataplane.adapters.postgres.store import PostgresRecordStore
from dataplane.changes import RequestRecord
from dataplane.errors import BackendUnavailable, DuplicateRequest
from dataplane.model import DAY_US
from tests.contract.builders import NOW_US, commit_of, fields_of, memory_of, scope_of
from tests.postgres import open_store, options_for
from tests.servers.postgres import PostgresServer

WRITERS = 16


@pytest.fixture(scope="module")
def mortal_server() -> Iterator[PostgresServer]:
    """A server of this module's own, to be killed."""
    server = PostgresServer.create()
    yield server
    server.close()


@pytest.fixture
async def options(mortal_server: PostgresServer) -> PostgresOptions:
    made = options_for(mortal_server.database("mortal"))
    migrate(made)
    return replace(made, connect_timeout_s=2.0)


@pytest.fixture
async def store(options: PostgresOptions) -> AsyncIterator[PostgresRecordStore]:
    opened = await open_store(options, fields_of)
    yield opened
    await opened.close()


async def until_committed(store: PostgresRecordStore, memory_id: str) -> None:
    """Commits a memory with a request id until it is acknowledged, or known to have been."""
    request = RequestRecord("alice", memory_id, "hash", b"answer", NOW_US + DAY_US)
    loop = asyncio.get_running_loop()
    end_s = loop.time() + 40
    while loop.time() < end_s:
        try:
            [result] = await store.commit([commit_of(memory_of(memory_id), request=request)], loop.time() + 2)
        except BackendUnavailable:
            await asyncio.sleep(0.05)
            continue
        assert result.error in (None, DuplicateRequest(memory_id))
        return
    raise AssertionError(f"{memory_id} was never acknowledged")


async def test_what_was_acknowledged_outlives_kill_9_once(
    store: PostgresRecordStore, mortal_server: PostgresServer
) -> None:
    acknowledged: list[str] = []
    under_way = asyncio.Event()

    async def write(writer: int) -> None:
        for number in range(12):
            await until_committed(store, f"mem_{writer}_{number}")
            acknowledged.append(f"mem_{writer}_{number}")
            if len(acknowledged) == WRITERS:
                under_way.set()

    writing = [asyncio.create_task(write(writer)) for writer in range(WRITERS)]
    await under_way.wait()
    await asyncio.to_thread(mortal_server.kill)
    mortal_server.start()
    await asyncio.gather(*writing)
    deadline_s = asyncio.get_running_loop().time() + 20
    found = await store.fetch(scope_of(), acknowledged, "", 0, deadline_s)
    assert {candidate.memory.memory_id for candidate in found} == set(acknowledged)
    assert await store.count(deadline_s) == len(acknowledged) == WRITERS * 12
    # Dense: each memory took one position, and nothing was stored twice.
    assert await store.last_position(deadline_s) == len(acknowledged)


async def test_connections_that_were_cut_are_replaced_without_a_failure(
    store: PostgresRecordStore, options: PostgresOptions
) -> None:
    deadline_s = asyncio.get_running_loop().time() + 20
    await store.commit([commit_of(memory_of())], deadline_s)
    await asyncio.gather(*(store.get(scope_of(), "mem_1", deadline_s) for _ in range(8)))
    assert options.migrate_dsn
    with psycopg.connect(options.migrate_dsn, autocommit=True) as connection:
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'memplane_app'")
    assert await store.get(scope_of(), "mem_1", deadline_s) is not None
    [result] = await store.commit([commit_of(memory_of("mem_2"))], deadline_s)
    assert result.error is None


async def test_a_server_that_turned_read_only_refuses_writes_and_serves_reads(
    store: PostgresRecordStore, options: PostgresOptions
) -> None:
    deadline_s = asyncio.get_running_loop().time() + 20
    await store.commit([commit_of(memory_of())], deadline_s)
    assert options.migrate_dsn
    with psycopg.connect(options.migrate_dsn, autocommit=True) as connection:
        connection.execute("ALTER DATABASE mortal SET default_transaction_read_only = on")
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'memplane_app'")
        with pytest.raises(BackendUnavailable, match="the server is read-only"):
            await store.commit([commit_of(memory_of("mem_2"))], deadline_s)
        assert await store.get(scope_of(), "mem_1", deadline_s) is not None
        connection.execute("SET default_transaction_read_only = off; ALTER DATABASE mortal RESET ALL")
        connection.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'memplane_app'")
    [result] = await store.commit([commit_of(memory_of("mem_2"))], deadline_s)
    assert result.error is None


async def test_what_the_driver_says_of_a_row_reaches_nobody(store: PostgresRecordStore) -> None:
    deadline_s = asyncio.get_running_loop().time() + 20
    secret = memory_of("mem_1", category="a secret\0")
    with pytest.raises(BackendUnavailable) as raised:
        await store.commit([commit_of(secret)], deadline_s)
    assert "secret" not in str(raised.value)
    good, bad = await asyncio.gather(
        store.commit([commit_of(memory_of("mem_2"))], deadline_s),
        store.commit([commit_of(secret)], deadline_s),
        return_exceptions=True,
    )
    assert isinstance(bad, BackendUnavailable)
    assert isinstance(good, list)
    assert good[0].error is None


async def test_a_lock_that_another_holds_is_waited_for_until_the_deadline_alone(
    store: PostgresRecordStore, options: PostgresOptions
) -> None:
    loop = asyncio.get_running_loop()
    assert options.migrate_dsn
    with psycopg.connect(options.migrate_dsn) as connection:
        connection.execute("LOCK TABLE memplane.last_position IN ACCESS EXCLUSIVE MODE")
        started_s = loop.time()
        with pytest.raises(BackendUnavailable, match="deadline passed"):
            await store.commit([commit_of(memory_of())], started_s + 0.3)
        assert loop.time() - started_s < 5
    [result] = await store.commit([commit_of(memory_of("mem_2"))], loop.time() + 20)
    assert result.error is None
