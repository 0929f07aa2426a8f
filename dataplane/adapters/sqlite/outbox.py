"""The outbox as statements: who follows the store, rows leased and given back, and what was given up.

Leases last by the store's clock. A memory is in one hand at most, since only its oldest row is offered.
"""

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from dataplane.adapters.record_rows import COLUMNS, columns, memory_from, vector_from_blob
from dataplane.adapters.sqlite.clauses import NOW_US, Parameters, fill
from dataplane.changes import DeadLetter, Failure, IndexProgress, Lease, OutboxRow

EMBEDDED = "LEFT JOIN embeddings AS e ON e.memory_id = m.memory_id AND e.version = m.version AND e.model = :model"
"""Joins the embedding of a memory `m` as it stands."""

_WIDTH = len(COLUMNS)
_INDEX_ID = "(SELECT i.index_id FROM indexes AS i WHERE i.name = :index)"
_OFFERED = """
SELECT o.position FROM outbox AS o
WHERE o.index_id = {index_id} AND o.due_time_us <= {now} AND NOT EXISTS (SELECT 1 FROM outbox AS b
    WHERE b.memory_id = o.memory_id AND b.index_id = o.index_id AND b.position < o.position)
ORDER BY o.position LIMIT :page_size"""
_DUE = fill(_OFFERED, index_id=_INDEX_ID, now=NOW_US)
_LEASE = fill(
    "UPDATE outbox SET abandoned = max(abandoned, lease_owner <> ''), lease_owner = :owner,"
    " due_time_us = {now} + :lease_us"
    " WHERE index_id = {index_id} AND position IN ({due}) RETURNING position",
    now=NOW_US,
    index_id=_INDEX_ID,
    due=_DUE,
)
_LEASED = fill(
    """
SELECT {head}, e.vector, o.position, o.memory_id, o.namespace, o.attempts, o.abandoned, (SELECT max(n.position)
    FROM outbox AS n WHERE n.memory_id = o.memory_id AND n.index_id = o.index_id)
FROM json_each(:positions) AS p CROSS JOIN outbox AS o ON o.index_id = {index_id} AND o.position = p.value
LEFT JOIN memories AS m ON m.memory_id = o.memory_id AND m.state = 1 {embedded}
ORDER BY o.position""",
    head=columns("m"),
    index_id=_INDEX_ID,
    embedded=EMBEDDED,
)
_SCAN = fill(
    """
SELECT {head}, e.vector, 0, m.memory_id, m.namespace, 0, 0, 0 FROM memories AS m {embedded}
WHERE m.memory_id > :after_id AND m.state = 1 ORDER BY m.memory_id LIMIT :page_size""",
    head=columns("m"),
    embedded=EMBEDDED,
)
_HELD = """
SELECT o.position FROM json_each(:positions) AS p CROSS JOIN outbox AS o ON o.index_id = :index_id
    AND o.position = p.value
WHERE o.lease_owner = :owner"""
_SETTLE = "DELETE FROM {table} WHERE memory_id = ? AND index_id = ? AND position <= ?"
_SETTLE_WAITING = fill(_SETTLE, table="outbox")
_SETTLE_DEAD = fill(_SETTLE, table="dead_letters")
_POSTPONE = fill(
    "UPDATE outbox SET lease_owner = '', due_time_us = {now} + :wait_us, attempts = attempts + 1, reason = :reason"
    " WHERE index_id = :index_id AND position = :position",
    now=NOW_US,
)
_BURY = fill(
    """
INSERT INTO dead_letters (index_id, position, memory_id, namespace, time_us, attempts, reason, dead_time_us)
SELECT index_id, position, memory_id, namespace, time_us, attempts + 1, :reason, {now} FROM outbox
WHERE index_id = :index_id AND position = :position""",
    now=NOW_US,
)
_DROP = "DELETE FROM outbox WHERE index_id = :index_id AND position = :position"
_UNDELIVERED = """
SELECT i.name FROM indexes AS i
WHERE EXISTS (SELECT 1 FROM outbox AS o WHERE o.memory_id = :memory_id AND o.index_id = i.index_id)
    OR EXISTS (SELECT 1 FROM dead_letters AS d WHERE d.memory_id = :memory_id AND d.index_id = i.index_id)
    OR EXISTS (SELECT 1 FROM doubts AS d WHERE d.memory_id = :memory_id AND d.index_id = i.index_id)"""
_REMOVALS_OF = """
SELECT * FROM (SELECT DISTINCT o.memory_id FROM {table} AS o
    WHERE o.memory_id > :after_id
        AND NOT EXISTS (SELECT 1 FROM memories AS m WHERE m.memory_id = o.memory_id AND m.state = 1)
    ORDER BY o.memory_id LIMIT :page_size)"""
_REMOVALS = fill(
    "{waiting} UNION {dead} UNION {doubted} ORDER BY memory_id LIMIT :page_size",
    waiting=fill(_REMOVALS_OF, table="outbox"),
    dead=fill(_REMOVALS_OF, table="dead_letters"),
    doubted=fill(_REMOVALS_OF, table="doubts"),
)
_PROGRESS = """
SELECT i.name, coalesce((SELECT o.position - 1 FROM outbox AS o WHERE o.index_id = i.index_id AND o.attempts = 0
        ORDER BY o.position LIMIT 1), l.position),
    (SELECT count(*) FROM outbox AS o WHERE o.index_id = i.index_id)
        + (SELECT count(*) FROM doubts AS d WHERE d.index_id = i.index_id),
    (SELECT count(*) FROM dead_letters AS d WHERE d.index_id = i.index_id),
    (SELECT o.time_us FROM outbox AS o WHERE o.index_id = i.index_id ORDER BY o.position LIMIT 1)
FROM indexes AS i, last_position AS l ORDER BY i.name"""
_DEAD_LETTERS = """
SELECT i.name, d.position, d.memory_id, d.namespace, d.attempts, d.reason, d.dead_time_us
FROM indexes AS i CROSS JOIN dead_letters AS d ON d.index_id = i.index_id
WHERE (:index = '' OR i.name = :index) AND d.position > :after
ORDER BY d.position, i.name LIMIT :page_size"""
_CHOSEN = "index_id = ? AND (? = '[]' OR position IN (SELECT value FROM json_each(?)))"
_REPLAY = fill(
    "INSERT INTO outbox (index_id, position, memory_id, namespace, time_us, abandoned)"
    " SELECT index_id, position, memory_id, namespace, time_us, 1 FROM dead_letters WHERE {chosen}",
    chosen=_CHOSEN,
)
_REPLAYED = fill("DELETE FROM dead_letters WHERE {chosen}", chosen=_CHOSEN)
_REGISTER = fill(
    "INSERT INTO indexes (name, seen_time_us) VALUES (:index, {now})"
    " ON CONFLICT (name) DO UPDATE SET seen_time_us = excluded.seen_time_us",
    now=NOW_US,
)
_UNSEEN = fill("SELECT name FROM indexes WHERE seen_time_us <= {now} - :unseen_us ORDER BY name", now=NOW_US)
_NEXT_ACTIVE = """
SELECT m.memory_id, m.namespace, EXISTS (SELECT 1 FROM outbox AS o
    WHERE o.memory_id = m.memory_id AND o.index_id = :index_id)
FROM memories AS m WHERE m.memory_id > :after_id AND m.state = 1 ORDER BY m.memory_id LIMIT :page_size"""
_ENQUEUE = fill(
    "INSERT INTO outbox (index_id, position, memory_id, namespace, time_us)"
    " SELECT ?, l.position, ?, ?, {now} FROM last_position AS l",
    now=NOW_US,
)
_RENEW = fill(
    "UPDATE outbox SET due_time_us = {now} + :lease_us"
    " WHERE lease_owner = :owner AND lease_owner <> '' AND due_time_us < {now} + :enough_us",
    now=NOW_US,
)
_RELEASE = """
UPDATE outbox SET lease_owner = '', due_time_us = 0, abandoned = 1
WHERE lease_owner <> '' AND (lease_owner = :owner OR lease_owner >= :from AND lease_owner < :to)"""
_DOUBT = fill(
    "INSERT INTO doubts (index_id, memory_id, namespace, due_time_us)"
    " SELECT i.index_id, :id, :namespace, {now} + :wait_us FROM indexes AS i WHERE i.name = :index"
    " ON CONFLICT (memory_id, index_id) DO UPDATE SET due_time_us = excluded.due_time_us",
    now=NOW_US,
)
_DOUBTED = fill(
    "SELECT d.index_id, d.memory_id, d.namespace FROM doubts AS d"
    " WHERE d.index_id = {index_id} AND d.due_time_us <= {now} ORDER BY d.due_time_us LIMIT :page_size",
    index_id=_INDEX_ID,
    now=NOW_US,
)


def register(connection: sqlite3.Connection, index: str) -> bool:
    """See Outbox.register_index."""
    is_new = _index_id(connection, index) is None
    connection.execute(_REGISTER, {"index": index})
    return is_new


def retire(connection: sqlite3.Connection, index: str) -> None:
    """See Outbox.retire_index."""
    index_id = _index_id(connection, index)
    for table in ("outbox", "dead_letters", "doubts", "indexes"):
        connection.execute(fill("DELETE FROM {table} WHERE index_id = ?", table=table), (index_id,))


def retire_unseen(connection: sqlite3.Connection, seconds: float) -> list[str]:
    """See Outbox.retire_unseen."""
    unseen = [row[0] for row in connection.execute(_UNSEEN, {"unseen_us": _us(seconds)})]
    for index in unseen:
        retire(connection, index)
    return unseen


def enqueue_all(connection: sqlite3.Connection, index: str, after_id: str, page_size: int) -> list[str]:
    """See Outbox.enqueue_all."""
    index_id = _index_id(connection, index)
    parameters: dict[str, Any] = {"index_id": index_id, "after_id": after_id, "page_size": page_size}
    found = connection.execute(_NEXT_ACTIVE, parameters).fetchall()
    for memory_id, namespace, awaits in found:
        if index_id is not None and not awaits:
            connection.execute("UPDATE last_position SET position = position + 1")
            connection.execute(_ENQUEUE, (index_id, memory_id, namespace))
    return [row[0] for row in found]


def has_due(connection: sqlite3.Connection, index: str) -> bool:
    """Whether a lease would find something."""
    return connection.execute(_DUE, {"index": index, "page_size": 1}).fetchone() is not None


def lease(connection: sqlite3.Connection, index: str, lease: Lease, page_size: int, model: str) -> list[OutboxRow]:
    """See Outbox.lease_outbox."""
    parameters = {
        "index": index,
        "owner": lease.owner,
        "lease_us": _us(lease.seconds),
        "page_size": page_size,
    }
    positions = [row[0] for row in connection.execute(_LEASE, parameters)]
    parameters = {"index": index, "positions": json.dumps(positions), "model": model}
    return [_row_from(row) for row in connection.execute(_LEASED, parameters)]


def scan(connection: sqlite3.Connection, after_id: str, page_size: int, model: str) -> list[OutboxRow]:
    """See RecordStore.scan."""
    parameters: Parameters = {"after_id": after_id, "page_size": page_size, "model": model}
    return [_row_from(row) for row in connection.execute(_SCAN, parameters)]


def settle(connection: sqlite3.Connection, index: str, owner: str, rows: Sequence[OutboxRow]) -> None:
    """See Outbox.settle_outbox."""
    index_id = _index_id(connection, index)
    held = _held(connection, index_id, owner, [row.position for row in rows])
    applied = [(row.memory_id, index_id, max(row.position, row.covers)) for row in rows if row.position in held]
    connection.executemany(_SETTLE_WAITING, applied)
    connection.executemany(_SETTLE_DEAD, applied)


def postpone(connection: sqlite3.Connection, index: str, owner: str, failures: Sequence[Failure]) -> None:
    """See Outbox.postpone_outbox."""
    index_id = _index_id(connection, index)
    held = _held(connection, index_id, owner, [failure.row.position for failure in failures])
    for failure in failures:
        parameters = {"index_id": index_id, "position": failure.row.position, "reason": failure.reason}
        if failure.row.position not in held:
            continue
        if failure.wait_s is not None:
            connection.execute(_POSTPONE, {**parameters, "wait_us": _us(failure.wait_s)})
        else:
            connection.execute(_BURY, parameters)
            connection.execute(_DROP, parameters)


def renew(connection: sqlite3.Connection, lease: Lease) -> None:
    """See Outbox.renew_outbox."""
    lease_us = _us(lease.seconds)
    connection.execute(_RENEW, {"owner": lease.owner, "lease_us": lease_us, "enough_us": lease_us * 2 // 3})


def release(connection: sqlite3.Connection, owner: str) -> None:
    """See Outbox.release_outbox."""
    connection.execute(_RELEASE, {"owner": owner, "from": f"{owner}/", "to": f"{owner}0"})


def release_all(connection: sqlite3.Connection) -> None:
    """Ends every lease: for the one process that has the file open, and has just opened it."""
    connection.execute("UPDATE outbox SET lease_owner = '', due_time_us = 0, abandoned = 1 WHERE lease_owner <> ''")


def doubt(connection: sqlite3.Connection, index: str, rows: Sequence[OutboxRow], seconds: float) -> None:
    """See Outbox.doubt_outbox."""
    wait_us = _us(seconds)
    doubted = [{"index": index, "id": row.memory_id, "namespace": row.namespace, "wait_us": wait_us} for row in rows]
    connection.executemany(_DOUBT, doubted)


def has_doubted(connection: sqlite3.Connection, index: str) -> bool:
    """Whether `enqueue_doubted` would find something."""
    return connection.execute(_DOUBTED, {"index": index, "page_size": 1}).fetchone() is not None


def enqueue_doubted(connection: sqlite3.Connection, index: str, page_size: int) -> int:
    """See Outbox.enqueue_doubted."""
    found = connection.execute(_DOUBTED, {"index": index, "page_size": page_size}).fetchall()
    for index_id, memory_id, namespace in found:
        connection.execute("UPDATE last_position SET position = position + 1")
        connection.execute(_ENQUEUE, (index_id, memory_id, namespace))
        connection.execute("DELETE FROM doubts WHERE memory_id = ? AND index_id = ?", (memory_id, index_id))
    return len(found)


def undelivered(connection: sqlite3.Connection, memory_id: str) -> set[str]:
    """See Outbox.undelivered."""
    return {row[0] for row in connection.execute(_UNDELIVERED, {"memory_id": memory_id})}


def unapplied_removals(connection: sqlite3.Connection, after_id: str, page_size: int) -> list[str]:
    """See Outbox.unapplied_removals."""
    return [row[0] for row in connection.execute(_REMOVALS, {"after_id": after_id, "page_size": page_size})]


def progress(connection: sqlite3.Connection) -> list[IndexProgress]:
    """See Outbox.progress."""
    return [IndexProgress(*row) for row in connection.execute(_PROGRESS)]


def dead_letters(connection: sqlite3.Connection, index: str, after_position: int, page_size: int) -> list[DeadLetter]:
    """See Outbox.dead_letters."""
    parameters: Parameters = {"index": index, "after": after_position, "page_size": page_size}
    return [DeadLetter(*row) for row in connection.execute(_DEAD_LETTERS, parameters)]


def replay(connection: sqlite3.Connection, index: str, positions: Sequence[int]) -> int:
    """See Outbox.replay_dead_letters."""
    chosen = json.dumps(positions)
    parameters = (_index_id(connection, index), chosen, chosen)
    connection.execute(_REPLAY, parameters)
    return connection.execute(_REPLAYED, parameters).rowcount


def _index_id(connection: sqlite3.Connection, index: str) -> int | None:
    row = connection.execute("SELECT index_id FROM indexes WHERE name = ?", (index,)).fetchone()
    return int(row[0]) if row else None


def _held(connection: sqlite3.Connection, index_id: int | None, owner: str, positions: Sequence[int]) -> set[int]:
    parameters = {"index_id": index_id, "owner": owner, "positions": json.dumps(positions)}
    return {row[0] for row in connection.execute(_HELD, parameters)}


def _row_from(row: Sequence[Any]) -> OutboxRow:
    memory = None if row[0] is None else memory_from(row)
    position, memory_id, namespace, attempts, abandoned, covers = row[_WIDTH + 1 :]
    embedding = vector_from_blob(row[_WIDTH])
    return OutboxRow(position, memory_id, namespace, memory, embedding, covers, attempts, bool(abandoned))


def _us(seconds: float) -> int:
    return round(seconds * 1_000_000)
