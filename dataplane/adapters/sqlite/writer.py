"""One thread that writes, many writes to a transaction.

Rules. Writes queue up; the thread takes all that wait (bounded), runs each in a savepoint of its own within one
transaction, commits, and only then answers. A write that is refused leaves no trace and does not touch the others. An
error of SQLite itself (disk full, I/O, locked, corrupt) fails the whole transaction, and the thread lives on.
"""

import asyncio
import logging
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

from dataplane.adapters.sqlite.connection import BACKEND, SqliteOptions, as_unavailable
from dataplane.adapters.sqlite.log import WriteAheadLog
from dataplane.errors import BackendUnavailable

log = logging.getLogger("memplane.record_store")

REMIND_S = 60.0
"""How often a failure that goes on is logged: a full disk fails every write. Unmeasured."""

WIPE_AGAIN_S = 0.25
"""How often it is tried to empty the write-ahead log of erased content while a long read is in the way. Unmeasured."""

DISK_AGAIN_S = 1.0
"""How often while the disk fails: each try writes again what it can, which took 0.10 to 0.17 s for a log of 4,000 pages
(2 cores under other load, 2026-11)."""

T = TypeVar("T")
# What one write can do wrong by itself; every other error of SQLite concerns the file.
_OWN_FAULTS = (sqlite3.IntegrityError, sqlite3.DataError, sqlite3.ProgrammingError, sqlite3.InterfaceError)


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    work: Callable[[sqlite3.Connection], Any]
    weight: int
    wipes: bool
    deadline_s: float
    answer: "asyncio.Future[Any]"


@dataclass(frozen=True, slots=True)
class _Outcome:
    job: _Job
    value: Any = None
    error: Exception | None = None


@contextmanager
def savepoint(connection: sqlite3.Connection) -> Iterator[None]:
    """What happens within is kept, or undone when an exception leaves it."""
    connection.execute("SAVEPOINT step")
    try:
        yield
    except Exception:
        if connection.in_transaction:
            connection.execute("ROLLBACK TO step")
            connection.execute("RELEASE step")
        raise
    connection.execute("RELEASE step")


class Writer:
    """The writer thread of one connection, which it owns and closes. Made on the event loop that it answers to."""

    def __init__(self, connection: sqlite3.Connection, options: SqliteOptions, loop: asyncio.AbstractEventLoop) -> None:
        self._connection = connection
        self._options = options
        self._loop = loop
        self._jobs: deque[_Job] = deque()
        self._waiting = 0
        self._changed = threading.Condition()
        self._closing = False
        self._log = WriteAheadLog(connection, options.checkpoint_pages)
        self._wipe_due = True  # a process that was killed may have left what it had erased
        self._wipe_at_s = 0.0
        self._told = ""
        self._told_at_s = 0.0
        self._thread = threading.Thread(target=self._run, name="record-store-writer", daemon=True)
        self._thread.start()

    async def run(
        self,
        work: Callable[[sqlite3.Connection], T],
        deadline_s: float,
        *,
        weight: int = 1,
        wipes: bool = False,
    ) -> T:
        """Runs one write and returns its value once it is committed.

        `weight` counts against queue and batch size. `wipes`: what it deleted must leave the write-ahead log, too.
        Raises what `work` raises (nothing is then kept of it), or BackendUnavailable: then it is unknown whether it
        was kept.
        """
        answer: asyncio.Future[T] = self._loop.create_future()
        self._put(_Job(work, weight, wipes, deadline_s, answer))
        try:
            async with asyncio.timeout_at(deadline_s):
                return await answer
        except TimeoutError:
            raise BackendUnavailable(BACKEND, "deadline passed while writing") from None

    def _put(self, job: _Job) -> None:
        with self._changed:
            if self._closing:
                raise BackendUnavailable(BACKEND, "closed")
            if self._jobs and self._waiting + job.weight > self._options.queue_size:
                raise BackendUnavailable(BACKEND, "too many writes are waiting")
            self._jobs.append(job)
            self._waiting += job.weight
            self._changed.notify()

    def close(self) -> None:
        """Finishes what was accepted and closes the connection; blocks. Idempotent."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        self._thread.join()

    def _run(self) -> None:
        self._tidy(asked=False)
        while (jobs := self._take()) is not None:
            if jobs:
                self._deliver(self._transact(jobs))
            else:
                self._tidy(asked=False)
        self._end()

    def _end(self) -> None:
        self._tidy(asked=True)
        self._connection.close()
        try:
            self._log.close()
        except OSError as error:
            self._tell(f"gaps of the file may still hold erased content: {_words(error)}")

    def _take(self) -> list[_Job] | None:
        """All that wait, up to the batch size; none when the log is to be emptied meanwhile; None when closing."""
        with self._changed:
            self._changed.wait_for(lambda: self._jobs or self._closing, WIPE_AGAIN_S if self._wipe_due else None)
            if self._closing and not self._jobs:
                return None
            taken: list[_Job] = []
            weight = 0
            while self._jobs and (not taken or weight + self._jobs[0].weight <= self._options.batch_size):
                taken.append(self._jobs.popleft())
                weight += taken[-1].weight
            self._waiting -= weight
            return taken

    def _transact(self, jobs: list[_Job]) -> list[_Outcome]:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            outcomes = [self._attempt(job) for job in jobs]
            self._connection.execute("COMMIT")
            self._tidy(asked=any(outcome.job.wipes and not outcome.error for outcome in outcomes))
        except sqlite3.Error as error:
            self._tell(f"a transaction failed: {as_unavailable(error).words}")
            self._roll_back()
            return [_Outcome(job, error=as_unavailable(error)) for job in jobs]
        return outcomes

    def _attempt(self, job: _Job) -> _Outcome:
        if job.answer.cancelled() or self._loop.time() > job.deadline_s:
            return _Outcome(job, error=BackendUnavailable(BACKEND, "deadline passed before writing"))
        try:
            with savepoint(self._connection):
                return _Outcome(job, value=job.work(self._connection))
        except _OWN_FAULTS as error:
            log.exception("a write was refused by the schema")
            return _Outcome(job, error=as_unavailable(error))
        except sqlite3.Error:
            raise
        except Exception as error:  # noqa: BLE001 - handed to the caller; the thread serves the others
            return _Outcome(job, error=error)

    def _roll_back(self) -> None:
        try:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
        except sqlite3.Error:
            log.exception("a failed transaction could not be rolled back")

    def _tidy(self, *, asked: bool) -> None:
        """Empties the write-ahead log where it holds erased content or is long.

        When a long read is in the way, or the disk, it is tried again, whether anything is written or not.
        """
        self._wipe_due = self._wipe_due or asked
        is_due = asked or (self._wipe_due and self._loop.time() >= self._wipe_at_s)
        try:
            if is_due or self._log.is_long:
                self._wipe_at_s = self._loop.time() + WIPE_AGAIN_S
                self._wipe_due = not self._log.empty(patient=asked) and self._wipe_due
        except (sqlite3.Error, OSError) as error:
            self._wipe_due = True
            self._wipe_at_s = self._loop.time() + DISK_AGAIN_S
            self._tell(f"the write-ahead log may still hold erased content: {_words(error)}")

    def _tell(self, problem: str) -> None:
        now_s = self._loop.time()
        if problem == self._told and now_s < self._told_at_s + REMIND_S:
            return
        self._told, self._told_at_s = problem, now_s
        log.warning("%s", problem)

    def _deliver(self, outcomes: list[_Outcome]) -> None:
        try:
            self._loop.call_soon_threadsafe(_answer, outcomes)
        except RuntimeError:
            log.warning("the event loop ended before %d writes were answered", len(outcomes))


def _words(error: sqlite3.Error | OSError) -> str:
    return as_unavailable(error).words if isinstance(error, sqlite3.Error) else error.strerror or type(error).__name__


def _answer(outcomes: list[_Outcome]) -> None:
    for outcome in outcomes:
        answer = outcome.job.answer
        if answer.done():
            continue
        if outcome.error:
            answer.set_exception(outcome.error)
        else:
            answer.set_result(outcome.value)
