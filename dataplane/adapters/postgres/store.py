"""The record store on PostgreSQL: its parts put together, and what is neither a read of memories nor the outbox."""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from dataplane.adapters import record_rules
from dataplane.adapters.postgres import upkeep
from dataplane.adapters.postgres.arrays import Encoders, listed, smallints, texts
from dataplane.adapters.postgres.clauses import fill, in_scope
from dataplane.adapters.postgres.committer import Committer
from dataplane.adapters.postgres.examine import Examiner
from dataplane.adapters.postgres.faults import remaining_s, translated
from dataplane.adapters.postgres.operations import PostgresOperations
from dataplane.adapters.postgres.options import MONTHS_AHEAD, PostgresOptions
from dataplane.adapters.postgres.outbox import PostgresOutbox, row_from
from dataplane.adapters.postgres.pool import Pool
from dataplane.adapters.postgres.reads import EMBEDDED, PostgresReads
from dataplane.adapters.postgres.replica import Replica
from dataplane.adapters.record_rows import columns, memory_from
from dataplane.adapters.record_rules import FieldsOf
from dataplane.changes import AccessRecord, Commit, Erasure, OutboxRow, RequestRecord, RetrievalRecord
from dataplane.ending import end
from dataplane.errors import BackendUnavailable
from dataplane.model import SYSTEM_SCOPE, Kind, Memory, Scope, Vector
from dataplane.ports import Clock, CommitResult, ContentKey, Examination, RecordReads

log = logging.getLogger("memplane.record_store")

_HEAD: Final = columns("m")
_FIND_SAME_CONTENT = """
SELECT {head} FROM memplane.memories AS m
WHERE m.state = 1 AND m.subject_id = %(subject_id)s::text AND m.kind = %(kind)s::smallint
    AND m.content_hash = %(content_hash)s::text AND {scope}
ORDER BY m.create_time_us + 0, m.memory_id LIMIT 100"""  # + 0 keeps it off the index of newest first, which reads all
_FIND_CONTENTS = """
SELECT DISTINCT m.namespace, m.subject_id, m.kind, m.content_hash FROM memplane.memories AS m
JOIN unnest(%(in_namespaces)s, %(subjects)s, %(kinds)s, %(hashes)s)
    AS k (namespace, subject_id, kind, content_hash) USING (namespace, subject_id, kind, content_hash)
WHERE m.state = 1 AND {scope}"""
_CONTENTS: Final[Encoders] = {"in_namespaces": texts, "subjects": texts, "kinds": smallints, "hashes": texts}
_FIND_FACT = """
SELECT {head} FROM memplane.memories AS m
WHERE m.state = 1 AND m.fact_key <> '' AND m.subject_id = %(subject_id)s::text AND m.fact_key = %(fact_key)s::text
    AND {scope}
LIMIT 1"""
_FIND_REQUESTS = """
SELECT m.principal_id, m.request_id, m.payload_hash, m.response, m.expire_time_us FROM memplane.requests AS m
WHERE m.principal_id = %(principal_id)s::text AND m.request_id = ANY (%(request_ids)s::text[])
    AND m.expire_time_us > %(now_us)s::bigint AND {scope}"""
_SCAN = fill(
    """
SELECT {head}, e.vector, 0, m.memory_id, m.namespace, 0, false, 0 FROM memplane.memories AS m {embedded}
WHERE m.memory_id > %(after_id)s::text AND m.state = 1 ORDER BY m.memory_id LIMIT %(page_size)s::bigint""",
    head=_HEAD,
    embedded=EMBEDDED,
)
_TOMBSTONES = "SELECT memory_id FROM memplane.tombstones WHERE memory_id = ANY (%(ids)s::text[])"
_COUNT = "SELECT count(*) FROM memplane.memories WHERE state = 1"
_MAKE_PARTITIONS = "SELECT memplane.make_partitions(%(months)s::integer)"
_ANALYSE_YOUNG = "SELECT memplane.analyse_young()"
_LOOK_S: Final = 5
"""How often a database is looked at whose tables nobody analysed yet. Unmeasured."""
_DAY_S: Final = 86_400
_PATIENCE_S: Final = 60
"""How long making partitions may take. Unmeasured."""


@dataclass(frozen=True, slots=True)
class Parts:
    """What a store is given by its caller: what filters see of a memory, and the time of day."""

    fields_of: FieldsOf
    clock: Clock


class PostgresRecordStore(PostgresReads, PostgresOutbox, PostgresOperations):
    """A `ports.RecordStore`. Made by `open`."""

    def __init__(self, pool: Pool, replica: Replica | None, options: PostgresOptions, parts: Parts) -> None:
        super().__init__(pool)
        self._replica = replica
        self._examiner = Examiner(options, parts.clock)
        self._committer = Committer(pool, options, parts.fields_of)
        self._closing = asyncio.Event()
        self._partitions = asyncio.create_task(self._make_partitions(), name="record-store-partitions")
        self._analysing = asyncio.create_task(self._analyse_young(), name="record-store-analysing")

    @classmethod
    async def open(
        cls, options: PostgresOptions, *, fields_of: FieldsOf, clock: Clock, deadline_s: float
    ) -> "PostgresRecordStore":
        """Looks at the server, then makes the pools; the schema must be there (`memplane migrate`).

        `fields_of` gives what filters see of a memory. `clock` is compared with the server's. Raises Misconfigured for
        what an administrator must put right, and BackendUnavailable when nothing answers.
        """
        with translated():
            async with asyncio.timeout(remaining_s(deadline_s)):
                await Examiner(options, clock).check_at_start()
        replica = await Replica.open(options.replica_dsn, options) if options.replica_dsn else None
        pool = await Pool.open(options.dsn, options)
        return cls(pool, replica, options, Parts(fields_of, clock))

    async def close(self) -> None:
        """See the port."""
        self._closing.set()
        await end(self._partitions, self._analysing)
        await self._committer.close()
        if self._replica:
            await self._replica.close()
        await self._pool.close()

    async def examine(self, deadline_s: float) -> Examination:
        """See the port."""
        if self._replica is None:
            return await self._examiner.examine(self._pool, deadline_s)
        examination, problems = await asyncio.gather(
            self._examiner.examine(self._pool, deadline_s), self._replica.problems(deadline_s)
        )
        return Examination(examination.server, (*examination.problems, *problems))

    async def reads(self, at_least: int, deadline_s: float) -> RecordReads:
        """See the port."""
        found = await self._replica.reads(at_least, deadline_s) if self._replica else None
        return found or self

    async def commit(self, commits: Sequence[Commit], deadline_s: float) -> list[CommitResult]:
        """See the port. Raises ValueError for a memory outside its commit's scope or below its expected version."""
        for commit in commits:
            record_rules.check(commit)
        return await self._committer.commit(list(commits), deadline_s) if commits else []

    async def erase(self, erasure: Erasure, deadline_s: float) -> int:
        """See the port."""
        with translated():
            return await upkeep.erase(self._pool, erasure, deadline_s)

    async def save_embedding(
        self, memory_id: str, version: int, model: str, embedding: Vector, deadline_s: float
    ) -> None:
        """See the port."""
        await upkeep.save_embedding(self._pool, (memory_id, version, model), embedding, deadline_s)

    async def record_accesses(self, accesses: Sequence[AccessRecord], deadline_s: float) -> None:
        """See the port."""
        await upkeep.record_accesses(self._pool, accesses, deadline_s)

    async def record_retrievals(self, retrievals: Sequence[RetrievalRecord], deadline_s: float) -> None:
        """See the port."""
        if retrievals:
            await upkeep.record_retrievals(self._pool, retrievals, deadline_s)

    async def find_same_content(
        self, scope: Scope, subject_id: str, kind: Kind, content_hash: str, deadline_s: float
    ) -> list[Memory]:
        """See the port."""
        condition, parameters = in_scope(scope, "m")
        parameters.update(subject_id=subject_id, kind=int(kind), content_hash=content_hash)
        statement = fill(_FIND_SAME_CONTENT, head=_HEAD, scope=condition)
        return [memory_from(row) for row in await self._pool.read(scope, statement, parameters, deadline_s)]

    async def find_contents(self, scope: Scope, contents: Sequence[ContentKey], deadline_s: float) -> set[ContentKey]:
        """See the port."""
        condition, parameters = in_scope(scope, "m")
        keys = [(key.namespace, key.subject_id, int(key.kind), key.content_hash) for key in contents]
        statement = fill(_FIND_CONTENTS, scope=condition)
        rows = await self._pool.read(scope, statement, {**parameters, **listed(_CONTENTS, keys)}, deadline_s)
        return {ContentKey(namespace, subject_id, Kind(kind), digest) for namespace, subject_id, kind, digest in rows}

    async def find_fact(self, scope: Scope, subject_id: str, fact_key: str, deadline_s: float) -> Memory | None:
        """See the port."""
        condition, parameters = in_scope(scope, "m")
        parameters.update(subject_id=subject_id, fact_key=fact_key)
        rows = await self._pool.read(scope, fill(_FIND_FACT, head=_HEAD, scope=condition), parameters, deadline_s)
        return memory_from(rows[0]) if rows else None

    async def find_requests(
        self, scope: Scope, principal_id: str, request_ids: Sequence[str], now_us: int, deadline_s: float
    ) -> list[RequestRecord]:
        """See the port."""
        # An answer may speak of private memories: readers of shared rows alone do not see it.
        condition, parameters = in_scope(Scope(scope.namespaces, (), scope.system), "m")
        parameters.update(principal_id=principal_id, request_ids=list(request_ids), now_us=now_us)
        rows = await self._pool.read(scope, fill(_FIND_REQUESTS, scope=condition), parameters, deadline_s)
        return [RequestRecord(*row) for row in rows]

    async def scan(self, after_id: str, page_size: int, deadline_s: float, model: str) -> list[OutboxRow]:
        """See the port."""
        parameters = {"after_id": after_id, "page_size": page_size, "model": model}
        return [row_from(row) for row in await self._pool.read(SYSTEM_SCOPE, _SCAN, parameters, deadline_s)]

    async def tombstones(self, memory_ids: Sequence[str], deadline_s: float) -> set[str]:
        """See the port."""
        rows = await self._pool.read(SYSTEM_SCOPE, _TOMBSTONES, {"ids": list(memory_ids)}, deadline_s)
        return {row[0] for row in rows}

    async def count(self, deadline_s: float) -> int:
        """See the port."""
        [(found,)] = await self._pool.read(SYSTEM_SCOPE, _COUNT, {}, deadline_s)
        return int(found)

    async def _make_partitions(self) -> None:
        """Makes the partitions of the coming months, once a day; until they are there the default one takes all."""
        loop = asyncio.get_running_loop()
        while not self._closing.is_set():  # the driver may swallow a cancellation
            try:
                await self._pool.read(Scope(()), _MAKE_PARTITIONS, {"months": MONTHS_AHEAD}, loop.time() + _PATIENCE_S)
            except BackendUnavailable as error:
                log.warning("the partitions of the coming months were not made: %s", error.detail)
            with suppress(TimeoutError):
                async with asyncio.timeout(_DAY_S):
                    await self._closing.wait()

    async def _analyse_young(self) -> None:
        """Has the first thousands of commits of a new database analysed, without which it plans badly for a minute."""
        loop = asyncio.get_running_loop()
        while not self._closing.is_set():
            try:
                [(left,)] = await self._pool.read(Scope(()), _ANALYSE_YOUNG, {}, loop.time() + _PATIENCE_S)
                if not left:
                    return
            except BackendUnavailable as error:
                log.debug("young tables were not analysed: %s", error.detail)
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOOK_S):
                    await self._closing.wait()
