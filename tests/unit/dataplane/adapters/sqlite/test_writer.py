import asyncio
import sqlite3
import threading
from pathlib import Path

import pytest

from dataplane.adapters.sqlite.connection import SqliteOptions, open_writer
from dataplane.adapters.sqlite.writer import Writer
from dataplane.errors import BackendUnavailable


class Log:
    """A table whose every insert is one write."""

    def __init__(self, path: Path, options: SqliteOptions) -> None:
        self.connection = open_writer(path, options)
        self.connection.execute("CREATE TABLE log (number INTEGER, changes INTEGER)")
        self.transactions: list[str] = []
        self.connection.set_trace_callback(self.transactions.append)
        self.held = threading.Event()
        self.gate = threading.Event()
        self.writer = Writer(self.connection, options, asyncio.get_running_loop())

    def insert(self, number: int) -> "asyncio.Task[int]":
        def work(connection: sqlite3.Connection) -> int:
            connection.execute("INSERT INTO log (number) VALUES (?)", (number,))
            return number

        return asyncio.ensure_future(self.writer.run(work, asyncio.get_running_loop().time() + 30))

    async def hold(self) -> "asyncio.Task[bool]":
        """Begins a write that lasts until the gate opens, so that others queue up behind it."""

        def work(_: sqlite3.Connection) -> bool:
            self.held.set()
            return self.gate.wait(30)

        holding = asyncio.ensure_future(self.writer.run(work, asyncio.get_running_loop().time() + 30))
        await asyncio.to_thread(self.held.wait, 30)
        return holding

    def commits(self) -> int:
        return self.transactions.count("COMMIT")


async def test_what_waits_is_committed_together(path: Path) -> None:
    log = Log(path, SqliteOptions())
    held = await log.hold()
    inserts = [log.insert(number) for number in range(100)]
    await asyncio.sleep(0)
    log.gate.set()
    assert await asyncio.gather(*inserts) == list(range(100))
    await held
    assert log.commits() == 2
    log.writer.close()


async def test_a_transaction_takes_no_more_than_the_batch_size(path: Path) -> None:
    log = Log(path, SqliteOptions(batch_size=10))
    held = await log.hold()
    inserts = [log.insert(number) for number in range(100)]
    await asyncio.sleep(0)
    log.gate.set()
    await asyncio.gather(held, *inserts)
    assert log.commits() == 11
    log.writer.close()


async def test_a_full_queue_refuses_at_once(path: Path) -> None:
    log = Log(path, SqliteOptions(queue_size=10))
    held = await log.hold()
    inserts = [log.insert(number) for number in range(20)]
    await asyncio.sleep(0)
    refused = [insert for insert in inserts if insert.done()]
    assert len(refused) == 10
    assert {repr(insert.exception()) for insert in refused} == {
        repr(BackendUnavailable("record_store", "too many writes are waiting"))
    }
    log.gate.set()
    await held
    await asyncio.gather(*(insert for insert in inserts if insert not in refused))
    await log.insert(99)
    log.writer.close()


async def test_a_write_whose_deadline_passed_while_waiting_is_not_made(path: Path) -> None:
    log = Log(path, SqliteOptions())
    held = await log.hold()
    soon_s = asyncio.get_running_loop().time() + 0.01
    with pytest.raises(BackendUnavailable, match="deadline passed while writing"):
        await log.writer.run(lambda connection: connection.execute("INSERT INTO log (number) VALUES (1)"), soon_s)
    log.gate.set()
    await held
    await log.insert(2)
    assert [sql for sql in log.transactions if sql == "INSERT INTO log (number) VALUES (1)"] == []
    log.writer.close()


async def test_a_failing_write_is_undone_and_told(path: Path) -> None:
    log = Log(path, SqliteOptions())

    def fails(connection: sqlite3.Connection) -> None:
        connection.execute("INSERT INTO log (number) VALUES (666)")
        raise LookupError("no")

    def count(connection: sqlite3.Connection) -> list[int]:
        return [number for (number,) in connection.execute("SELECT number FROM log ORDER BY number")]

    deadline_s = asyncio.get_running_loop().time() + 30
    failing = asyncio.ensure_future(log.writer.run(fails, deadline_s))
    results = await asyncio.gather(log.insert(1), failing, log.insert(2), return_exceptions=True)
    assert isinstance(results[1], LookupError)
    assert await log.writer.run(count, deadline_s) == [1, 2]
    log.writer.close()


async def test_a_closed_writer_refuses(path: Path) -> None:
    log = Log(path, SqliteOptions())
    log.writer.close()
    log.writer.close()
    with pytest.raises(BackendUnavailable, match="closed"):
        await log.insert(1)
