"""The outbox: who follows the store, rows leased and given back, and what was given up.

Leases last by the store's clock. A memory is in one hand at most, since only its oldest row is offered, and rows that
another transaction is leasing are passed over. Everything here concerns all namespaces and is the system role's.
"""

from collections.abc import Sequence
from typing import Any, Final

from dataplane.adapters.postgres.clauses import fill
from dataplane.adapters.postgres.pool import Connection, Parameters, Pool, Row
from dataplane.adapters.postgres.reads import EMBEDDED
from dataplane.adapters.postgres.writes import TAKE_POSITIONS
from dataplane.adapters.record_rows import COLUMNS, columns, memory_from, vector_from_blob
from dataplane.changes import DeadLetter, Failure, IndexProgress, Lease, OutboxRow
from dataplane.model import SYSTEM_SCOPE

_WIDTH: Final = len(COLUMNS)
_INDEX_ID = "(SELECT i.index_id FROM memplane.indexes AS i WHERE i.name = %(index)s::text)"
# Waits for the commits that took positions before, so that what they write is seen by who asks afterwards.
_LOCK_POSITIONS = "SELECT position FROM memplane.last_position FOR UPDATE"
_REGISTER = """
INSERT INTO memplane.indexes (name, seen_time_us) VALUES (%(index)s::text, memplane.now_us())
ON CONFLICT (name) DO NOTHING RETURNING 1"""
_SEEN = "UPDATE memplane.indexes SET seen_time_us = memplane.now_us() WHERE name = %(index)s::text RETURNING 1"
_UNSEEN = """
SELECT name FROM memplane.indexes WHERE seen_time_us <= memplane.now_us() - %(unseen_us)s::bigint ORDER BY name"""
_RETIRE = """
WITH gone AS (DELETE FROM memplane.indexes WHERE name = ANY (%(indexes)s::text[]) RETURNING index_id),
    waiting AS (DELETE FROM memplane.outbox AS o USING gone WHERE o.index_id = gone.index_id),
    doubted AS (DELETE FROM memplane.doubts AS d USING gone WHERE d.index_id = gone.index_id)
DELETE FROM memplane.dead_letters AS d USING gone WHERE d.index_id = gone.index_id"""
_NEXT_ACTIVE = fill(
    """
SELECT m.memory_id, m.namespace, {index_id} IS NULL OR EXISTS (SELECT 1 FROM memplane.outbox AS o
    WHERE o.memory_id = m.memory_id AND o.index_id = {index_id})
FROM memplane.memories AS m WHERE m.memory_id > %(after_id)s::text AND m.state = 1
ORDER BY m.memory_id LIMIT %(page_size)s::bigint""",
    index_id=_INDEX_ID,
)
_ENQUEUE = """
INSERT INTO memplane.outbox (index_id, position, memory_id, namespace, time_us)
SELECT i.index_id, %(before)s::bigint + c.number, c.memory_id, c.namespace, (SELECT memplane.now_us())
FROM memplane.indexes AS i,
    unnest(%(ids)s::text[], %(namespaces)s::text[]) WITH ORDINALITY AS c (memory_id, namespace, number)
WHERE i.name = %(index)s::text"""
_LEASE = fill(
    """
WITH due AS MATERIALIZED (
    SELECT o.index_id, o.position FROM memplane.outbox AS o
    WHERE o.index_id = {index_id} AND o.due_time_us <= (SELECT memplane.now_us())
        AND NOT EXISTS (SELECT 1 FROM memplane.outbox AS b
            WHERE b.memory_id = o.memory_id AND b.index_id = o.index_id AND b.position < o.position)
    ORDER BY o.position LIMIT %(page_size)s::bigint FOR UPDATE SKIP LOCKED),
leased AS (
    UPDATE memplane.outbox AS o
    SET lease_owner = %(owner)s::text, due_time_us = memplane.now_us() + %(lease_us)s::bigint,
        abandoned = o.abandoned OR o.lease_owner <> ''
    FROM due WHERE o.index_id = due.index_id AND o.position = due.position
    RETURNING o.index_id, o.position, o.memory_id, o.namespace, o.attempts, o.abandoned)
SELECT {head}, e.vector, o.position, o.memory_id, o.namespace, o.attempts, o.abandoned, (SELECT max(n.position)
    FROM memplane.outbox AS n WHERE n.memory_id = o.memory_id AND n.index_id = o.index_id)
FROM leased AS o LEFT JOIN memplane.memories AS m ON m.memory_id = o.memory_id AND m.state = 1 {embedded}
ORDER BY o.position""",
    index_id=_INDEX_ID,
    head=columns("m"),
    embedded=EMBEDDED,
)
# Only rows that the owner holds say what was applied; then all rows of their memories up to there go.
_SETTLE = fill(
    """
WITH applied AS MATERIALIZED (
    SELECT o.index_id, o.memory_id, greatest(r.position, r.covers) AS covers
    FROM unnest(%(positions)s::bigint[], %(covers)s::bigint[]) AS r (position, covers)
    JOIN memplane.outbox AS o ON o.index_id = {index_id} AND o.position = r.position
    WHERE o.lease_owner = %(owner)s::text
    FOR UPDATE OF o),
dead AS (DELETE FROM memplane.dead_letters AS d USING applied AS a
    WHERE d.memory_id = a.memory_id AND d.index_id = a.index_id AND d.position <= a.covers)
DELETE FROM memplane.outbox AS o USING applied AS a
WHERE o.memory_id = a.memory_id AND o.index_id = a.index_id AND o.position <= a.covers""",
    index_id=_INDEX_ID,
)
_POSTPONE = fill(
    """
UPDATE memplane.outbox AS o SET lease_owner = '', attempts = o.attempts + 1, reason = f.reason,
    due_time_us = memplane.now_us() + f.wait_us
FROM unnest(%(positions)s::bigint[], %(reasons)s::text[], %(waits)s::bigint[]) AS f (position, reason, wait_us)
WHERE o.index_id = {index_id} AND o.position = f.position AND o.lease_owner = %(owner)s::text""",
    index_id=_INDEX_ID,
)
_BURY = fill(
    """
WITH buried AS (
    DELETE FROM memplane.outbox AS o
    USING unnest(%(positions)s::bigint[], %(reasons)s::text[]) AS f (position, reason)
    WHERE o.index_id = {index_id} AND o.position = f.position AND o.lease_owner = %(owner)s::text
    RETURNING o.index_id, o.position, o.memory_id, o.namespace, o.time_us, o.attempts + 1, f.reason)
INSERT INTO memplane.dead_letters
    (index_id, position, memory_id, namespace, time_us, attempts, reason, dead_time_us)
SELECT buried.*, memplane.now_us() FROM buried""",
    index_id=_INDEX_ID,
)
_RENEW = """
UPDATE memplane.outbox SET due_time_us = memplane.now_us() + %(lease_us)s::bigint
WHERE lease_owner = %(owner)s::text AND lease_owner <> ''
    AND due_time_us < memplane.now_us() + %(lease_us)s::bigint * 2 / 3"""
_RELEASE = """
UPDATE memplane.outbox SET lease_owner = '', due_time_us = 0, abandoned = true
WHERE lease_owner <> '' AND (lease_owner = %(owner)s::text
    OR lease_owner >= %(owner)s::text || '/' AND lease_owner < %(owner)s::text || '0')"""
_DOUBT = """
INSERT INTO memplane.doubts (index_id, memory_id, namespace, due_time_us)
SELECT i.index_id, d.memory_id, d.namespace, (SELECT memplane.now_us()) + %(wait_us)s::bigint
FROM memplane.indexes AS i, unnest(%(ids)s::text[], %(namespaces)s::text[]) AS d (memory_id, namespace)
WHERE i.name = %(index)s::text
ON CONFLICT (memory_id, index_id) DO UPDATE SET due_time_us = excluded.due_time_us"""
_TAKE_DOUBTED = fill(
    """
DELETE FROM memplane.doubts AS d USING (
    SELECT memory_id, index_id FROM memplane.doubts
    WHERE index_id = {index_id} AND due_time_us <= (SELECT memplane.now_us())
    ORDER BY due_time_us LIMIT %(page_size)s::bigint FOR UPDATE SKIP LOCKED) AS due
WHERE d.memory_id = due.memory_id AND d.index_id = due.index_id RETURNING d.memory_id, d.namespace""",
    index_id=_INDEX_ID,
)
_UNDELIVERED = """
SELECT i.name FROM memplane.indexes AS i
WHERE EXISTS (SELECT 1 FROM memplane.outbox AS o
        WHERE o.memory_id = %(memory_id)s::text AND o.index_id = i.index_id)
    OR EXISTS (SELECT 1 FROM memplane.dead_letters AS d
        WHERE d.memory_id = %(memory_id)s::text AND d.index_id = i.index_id)
    OR EXISTS (SELECT 1 FROM memplane.doubts AS d
        WHERE d.memory_id = %(memory_id)s::text AND d.index_id = i.index_id)"""
_REMOVALS_OF = """
(SELECT DISTINCT o.memory_id FROM memplane.{table} AS o
WHERE o.memory_id > %(after_id)s::text
    AND NOT EXISTS (SELECT 1 FROM memplane.memories AS m WHERE m.memory_id = o.memory_id AND m.state = 1)
ORDER BY o.memory_id LIMIT %(page_size)s::bigint)"""
_REMOVALS = fill(
    "{waiting} UNION {dead} UNION {doubted} ORDER BY memory_id LIMIT %(page_size)s::bigint",
    waiting=fill(_REMOVALS_OF, table="outbox"),
    dead=fill(_REMOVALS_OF, table="dead_letters"),
    doubted=fill(_REMOVALS_OF, table="doubts"),
)
_PROGRESS = """
SELECT i.name, coalesce((SELECT o.position - 1 FROM memplane.outbox AS o
        WHERE o.index_id = i.index_id AND o.attempts = 0 ORDER BY o.position LIMIT 1), l.position),
    (SELECT count(*) FROM memplane.outbox AS o WHERE o.index_id = i.index_id)
        + (SELECT count(*) FROM memplane.doubts AS d WHERE d.index_id = i.index_id),
    (SELECT count(*) FROM memplane.dead_letters AS d WHERE d.index_id = i.index_id),
    (SELECT o.time_us FROM memplane.outbox AS o WHERE o.index_id = i.index_id ORDER BY o.position LIMIT 1)
FROM memplane.indexes AS i, memplane.last_position AS l ORDER BY i.name"""
_DEAD_LETTERS = """
SELECT i.name, d.position, d.memory_id, d.namespace, d.attempts, d.reason, d.dead_time_us
FROM memplane.indexes AS i JOIN memplane.dead_letters AS d ON d.index_id = i.index_id
WHERE (%(index)s::text = '' OR i.name = %(index)s::text) AND d.position > %(after)s::bigint
ORDER BY d.position, i.name LIMIT %(page_size)s::bigint"""
_REPLAY = fill(
    """
WITH replayed AS (
    DELETE FROM memplane.dead_letters AS d
    WHERE d.index_id = {index_id}
        AND (cardinality(%(positions)s::bigint[]) = 0 OR d.position = ANY (%(positions)s::bigint[]))
    RETURNING d.index_id, d.position, d.memory_id, d.namespace, d.time_us)
INSERT INTO memplane.outbox (index_id, position, memory_id, namespace, time_us, abandoned)
SELECT replayed.*, true FROM replayed RETURNING 1""",
    index_id=_INDEX_ID,
)


class PostgresOutbox:
    """A `ports.Outbox`."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def register_index(self, index: str, deadline_s: float) -> bool:
        """See the port."""
        parameters = {"index": index}
        if await self._run(_SEEN, parameters, deadline_s):
            return False
        added = await self._pool.transact(SYSTEM_SCOPE, [(_LOCK_POSITIONS, {}), (_REGISTER, parameters)], deadline_s)
        return bool(added)

    async def retire_index(self, index: str, deadline_s: float) -> None:
        """See the port."""
        await self._retire([index], deadline_s)

    async def retire_unseen(self, seconds: float, deadline_s: float) -> list[str]:
        """See the port."""
        unseen = [row[0] for row in await self._run(_UNSEEN, {"unseen_us": _us(seconds)}, deadline_s)]
        if unseen:
            await self._retire(unseen, deadline_s)
        return unseen

    async def _retire(self, indexes: list[str], deadline_s: float) -> None:
        # After the commits that are adding rows for it, so that none is left.
        queries: list[tuple[str, Parameters]] = [(_LOCK_POSITIONS, {}), (_RETIRE, {"indexes": indexes})]
        await self._pool.transact(SYSTEM_SCOPE, queries, deadline_s)

    async def enqueue_all(self, index: str, after_id: str, page_size: int, deadline_s: float) -> list[str]:
        """See the port."""
        parameters: dict[str, Any] = {"index": index, "after_id": after_id, "page_size": page_size}
        found = await self._run(_NEXT_ACTIVE, parameters, deadline_s)
        due = [(memory_id, namespace) for memory_id, namespace, awaits in found if not awaits]
        if due:
            async with self._pool.transaction(SYSTEM_SCOPE, deadline_s) as connection:
                await _enqueue(connection, index, due)
        return [row[0] for row in found]

    async def lease_outbox(
        self, index: str, lease: Lease, page_size: int, model: str, deadline_s: float
    ) -> list[OutboxRow]:
        """See the port."""
        parameters = {
            "index": index,
            "owner": lease.owner,
            "lease_us": _us(lease.seconds),
            "page_size": page_size,
            "model": model,
        }
        return [row_from(row) for row in await self._run(_LEASE, parameters, deadline_s)]

    async def renew_outbox(self, lease: Lease, deadline_s: float) -> None:
        """See the port."""
        await self._run(_RENEW, {"owner": lease.owner, "lease_us": _us(lease.seconds)}, deadline_s)

    async def settle_outbox(self, index: str, owner: str, rows: Sequence[OutboxRow], deadline_s: float) -> None:
        """See the port."""
        parameters = {
            "index": index,
            "owner": owner,
            "positions": [row.position for row in rows],
            "covers": [row.covers for row in rows],
        }
        if rows:
            await self._run(_SETTLE, parameters, deadline_s)

    async def postpone_outbox(self, index: str, owner: str, failures: Sequence[Failure], deadline_s: float) -> None:
        """See the port."""
        again = [(failure, failure.wait_s) for failure in failures if failure.wait_s is not None]
        never = [failure for failure in failures if failure.wait_s is None]
        common = {"index": index, "owner": owner}
        queries: list[tuple[str, Parameters]] = []
        if again:
            waits = [_us(wait_s) for _, wait_s in again]
            queries.append((_POSTPONE, {**common, **_failed([failure for failure, _ in again]), "waits": waits}))
        if never:
            queries.append((_BURY, {**common, **_failed(never)}))
        if queries:
            await self._pool.transact(SYSTEM_SCOPE, queries, deadline_s)

    async def release_outbox(self, owner: str, deadline_s: float) -> None:
        """See the port."""
        await self._run(_RELEASE, {"owner": owner}, deadline_s)

    async def doubt_outbox(self, index: str, rows: Sequence[OutboxRow], seconds: float, deadline_s: float) -> None:
        """See the port."""
        doubted = sorted({row.memory_id: row.namespace for row in rows}.items())
        if doubted:
            await self._run(_DOUBT, {"index": index, "wait_us": _us(seconds), **_listed(doubted)}, deadline_s)

    async def enqueue_doubted(self, index: str, page_size: int, deadline_s: float) -> int:
        """See the port."""
        async with self._pool.transaction(SYSTEM_SCOPE, deadline_s) as connection:
            taken = await connection.execute(_TAKE_DOUBTED, {"index": index, "page_size": page_size})
            due = await taken.fetchall()
            if due:
                await _enqueue(connection, index, due)
        return len(due)

    async def undelivered(self, memory_id: str, deadline_s: float) -> set[str]:
        """See the port."""
        return {row[0] for row in await self._run(_UNDELIVERED, {"memory_id": memory_id}, deadline_s)}

    async def unapplied_removals(self, after_id: str, page_size: int, deadline_s: float) -> list[str]:
        """See the port."""
        parameters = {"after_id": after_id, "page_size": page_size}
        return [row[0] for row in await self._run(_REMOVALS, parameters, deadline_s)]

    async def progress(self, deadline_s: float) -> list[IndexProgress]:
        """See the port."""
        return [IndexProgress(*row) for row in await self._run(_PROGRESS, {}, deadline_s)]

    async def dead_letters(
        self, index: str, after_position: int, page_size: int, deadline_s: float
    ) -> list[DeadLetter]:
        """See the port."""
        parameters = {"index": index, "after": after_position, "page_size": page_size}
        return [DeadLetter(*row) for row in await self._run(_DEAD_LETTERS, parameters, deadline_s)]

    async def replay_dead_letters(self, index: str, positions: Sequence[int], deadline_s: float) -> int:
        """See the port."""
        return len(await self._run(_REPLAY, {"index": index, "positions": list(positions)}, deadline_s))

    async def _run(self, statement: str, parameters: Parameters, deadline_s: float) -> list[Row]:
        return await self._pool.transact(SYSTEM_SCOPE, [(statement, parameters)], deadline_s)


def row_from(row: Row) -> OutboxRow:
    """An outbox row from a memory's columns, its embedding, position, memory_id, namespace, attempts and covers."""
    memory = None if row[0] is None else memory_from(row)
    position, memory_id, namespace, attempts, abandoned, covers = row[_WIDTH + 1 :]
    embedding = vector_from_blob(row[_WIDTH])
    return OutboxRow(position, memory_id, namespace, memory, embedding, covers, attempts, abandoned)


async def _enqueue(connection: Connection, index: str, due: Sequence[Row]) -> None:
    """Adds outbox rows of an index for memories, each given as (id, namespace)."""
    taken = await connection.execute(TAKE_POSITIONS, {"count": len(due)})
    [(before,)] = await taken.fetchall()
    await connection.execute(_ENQUEUE, {"index": index, "before": before, **_listed(due)})


def _listed(memories: Sequence[Row]) -> dict[str, Any]:
    return {"ids": [memory_id for memory_id, _ in memories], "namespaces": [namespace for _, namespace in memories]}


def _failed(failures: Sequence[Failure]) -> dict[str, Any]:
    return {
        "positions": [failure.row.position for failure in failures],
        "reasons": [failure.reason for failure in failures],
    }


def _us(seconds: float) -> int:
    return round(seconds * 1_000_000)
