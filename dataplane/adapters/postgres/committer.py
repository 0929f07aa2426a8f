"""Commits of one process, grouped: those that wait while one transaction is under way make the next.

Rules. One transaction at a time, in the order of the calls; a call's commits stay together. When another process took a
unique key, a row or a lock in between, the batch is planned anew on what stands there; when that does not help, its
commits go one by one. A transaction whose COMMIT was not sent may be done again, also on another connection; once it
was sent and no answer came, nobody knows, and the callers are told so.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import psycopg

from dataplane.adapters.postgres.faults import OUTRUN, as_unavailable, lost, remaining_s, translated
from dataplane.adapters.postgres.lookups import look_up
from dataplane.adapters.postgres.options import BACKEND, PostgresOptions
from dataplane.adapters.postgres.plan import keys_of, plan
from dataplane.adapters.postgres.pool import Connection, Pool
from dataplane.adapters.postgres.writes import write
from dataplane.adapters.record_rules import FieldsOf
from dataplane.changes import Commit
from dataplane.errors import BackendUnavailable
from dataplane.model import SYSTEM_SCOPE, Scope
from dataplane.ports import CommitResult

log = logging.getLogger("memplane.record_store")

_ATTEMPTS_TOGETHER = 4
_ATTEMPTS_ALONE = 20
"""How often a batch, then one commit, is planned anew when another process was first. Unmeasured."""
# Also a unique key that another transaction took in between.
_OUTRUN = (*OUTRUN, psycopg.errors.UniqueViolation)
# What one commit can do wrong by itself; every other error concerns the server.
_OWN_FAULTS = (psycopg.DataError, psycopg.IntegrityError, psycopg.ProgrammingError)


@dataclass(frozen=True, slots=True, eq=False)
class _Job:
    commits: Sequence[Commit]
    deadline_s: float
    answer: "asyncio.Future[list[CommitResult]]"

    @property
    def is_system(self) -> bool:
        """A transaction is the system role's or not, so these do not go together."""
        return any(commit.scope.system for commit in self.commits)


class Committer:
    """Takes commits of concurrent callers and writes them in groups. Lives on one event loop."""

    def __init__(self, pool: Pool, options: PostgresOptions, fields_of: FieldsOf) -> None:
        self._pool = pool
        self._options = options
        self._fields_of = fields_of
        self._jobs: deque[_Job] = deque()
        self._waiting = 0
        self._task: asyncio.Task[None] | None = None
        self._closing = False

    async def commit(self, commits: Sequence[Commit], deadline_s: float) -> list[CommitResult]:
        """See RecordStore.commit."""
        remaining_s(deadline_s)
        if self._closing:
            raise BackendUnavailable(BACKEND, "closed")
        if self._jobs and self._waiting + len(commits) > self._options.queue_size:
            raise BackendUnavailable(BACKEND, "too many writes are waiting")
        loop = asyncio.get_running_loop()
        job = _Job(commits, deadline_s, loop.create_future())
        self._jobs.append(job)
        self._waiting += len(commits)
        if self._task is None or self._task.done():
            self._task = loop.create_task(self._run(), name="record-store-committer")
        with translated():
            async with asyncio.timeout_at(deadline_s):
                return await job.answer

    async def close(self) -> None:
        """Finishes what was accepted. Idempotent."""
        self._closing = True
        if self._task is not None:
            await self._task

    async def _run(self) -> None:
        while jobs := self._take():
            try:
                await self._serve(jobs)
            except Exception as error:  # noqa: BLE001 - handed to the callers; the next ones are served
                _answer_all(jobs, error)

    def _take(self) -> list[_Job]:
        """All that wait and go together, up to the batch size; passes over those that nobody waits for."""
        taken: list[_Job] = []
        weight = 0
        while self._jobs and (not taken or weight + len(self._jobs[0].commits) <= self._options.batch_size):
            if taken and taken[0].is_system != self._jobs[0].is_system:
                break
            job = self._jobs.popleft()
            self._waiting -= len(job.commits)
            if not job.answer.done():
                taken.append(job)
                weight += len(job.commits)
        return taken

    async def _serve(self, jobs: list[_Job]) -> None:
        try:
            results = await self._together([commit for job in jobs for commit in job.commits], _latest(jobs))
        except _OWN_FAULTS as error:
            if len(jobs) == 1:
                raise as_unavailable(error) from error
            for job in jobs:
                await self._run_alone(job)
            return
        for job in jobs:
            own, results = results[: len(job.commits)], results[len(job.commits) :]
            _answer(job, own)

    async def _run_alone(self, job: _Job) -> None:
        try:
            await self._serve([job])
        except BackendUnavailable as error:
            _answer_all([job], error)

    async def _together(self, commits: Sequence[Commit], deadline_s: float) -> list[CommitResult]:
        for _ in range(_ATTEMPTS_TOGETHER):
            try:
                return await self._transact(commits, deadline_s)
            except _OUTRUN:
                continue
        return [await self._alone(commit, deadline_s) for commit in commits]

    async def _alone(self, commit: Commit, deadline_s: float) -> CommitResult:
        for _ in range(_ATTEMPTS_ALONE):
            try:
                [result] = await self._transact([commit], deadline_s)
            except _OUTRUN as error:
                log.info("another process was first (%s); planning the commit anew", error.sqlstate)
            else:
                return result
        raise BackendUnavailable(BACKEND, "other writes were always first")

    async def _transact(self, commits: Sequence[Commit], deadline_s: float) -> list[CommitResult]:
        while True:
            async with self._pool.lend(deadline_s) as connection:
                attempt = _Attempt(connection, self._pool, deadline_s)
                try:
                    return await attempt.run(commits, self._fields_of)
                except _OUTRUN + _OWN_FAULTS:
                    await connection.rollback()
                    raise
                except psycopg.Error as error:
                    if attempt.is_commit_sent or not lost(connection, error):
                        raise as_unavailable(error) from error
            await self._pool.forget_dead(deadline_s)


class _Attempt:
    """One transaction; knows whether its COMMIT was sent."""

    def __init__(self, connection: Connection, pool: Pool, deadline_s: float) -> None:
        self._connection = connection
        self._pool = pool
        self._deadline_s = deadline_s
        self.is_commit_sent = False

    async def run(self, commits: Sequence[Commit], fields_of: FieldsOf) -> list[CommitResult]:
        scope = _union(commits)
        standing = await look_up(self._connection, self._pool, keys_of(commits), scope, self._deadline_s)
        planned = plan(commits, standing)
        if not planned.writes:
            await self._connection.rollback()
            return [_result(result, 0) for result in planned.results]
        self.is_commit_sent = True
        before = await write(self._connection, self._pool, planned, scope, fields_of, self._deadline_s)
        return [_result(result, before) for result in planned.results]


def _union(commits: Sequence[Commit]) -> Scope:
    """What the commits of a group may touch together; each one's own scope is kept by the plan."""
    if any(commit.scope.system for commit in commits):
        return SYSTEM_SCOPE
    own = {namespace for commit in commits for namespace in commit.scope.namespaces}
    shared = {namespace for commit in commits for namespace in commit.scope.shared}
    return Scope(tuple(sorted(own)), tuple(sorted(shared)))


def _result(planned: int | Exception, before: int) -> CommitResult:
    return CommitResult(error=planned) if isinstance(planned, Exception) else CommitResult(before + planned)


def _latest(jobs: Sequence[_Job]) -> float:
    return max(job.deadline_s for job in jobs)


def _answer(job: _Job, results: list[CommitResult]) -> None:
    if not job.answer.done():
        job.answer.set_result(results)


def _answer_all(jobs: Sequence[_Job], error: Exception) -> None:
    for job in jobs:
        if not job.answer.done():
            job.answer.set_exception(error)
