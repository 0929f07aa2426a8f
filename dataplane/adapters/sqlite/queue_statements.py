"""What the write queue on SQLite asks of its file, each within the writer's transaction."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import dataclass

from dataplane.adapters.queue_numbers import number_of
from dataplane.changes import QueueDepth, QueuedWrite, QueueEntry, SetAsideWrite

SET_ASIDE_KEPT = 1_000

SCHEMA = """
CREATE TABLE queued_writes (
    entry_id       INTEGER PRIMARY KEY AUTOINCREMENT,
    operation      TEXT    NOT NULL UNIQUE,
    principal_id   TEXT    NOT NULL,
    namespace      TEXT    NOT NULL,
    order_key      TEXT    NOT NULL,
    request        BLOB    NOT NULL,
    time_us        INTEGER NOT NULL,
    deliveries     INTEGER NOT NULL DEFAULT 0,
    owner          TEXT    NOT NULL DEFAULT '',
    taken_until_us INTEGER NOT NULL DEFAULT 0
) STRICT;
CREATE INDEX queued_writes_taken ON queued_writes (taken_until_us) WHERE taken_until_us > 0;

-- Writes that cannot be applied, to be looked at.
CREATE TABLE set_aside_writes (
    entry_id     INTEGER PRIMARY KEY,
    operation    TEXT    NOT NULL,
    principal_id TEXT    NOT NULL,
    namespace    TEXT    NOT NULL,
    request      BLOB    NOT NULL,
    time_us      INTEGER NOT NULL,
    order_key    TEXT    NOT NULL,
    deliveries   INTEGER NOT NULL
) STRICT;

-- How many rows queued_writes has, so that none has to be counted to accept one more.
CREATE TABLE queue_size (entries INTEGER NOT NULL) STRICT;
INSERT INTO queue_size VALUES (0);
CREATE TRIGGER queued_writes_added AFTER INSERT ON queued_writes BEGIN
    UPDATE queue_size SET entries = entries + 1;
END;
CREATE TRIGGER queued_writes_removed AFTER DELETE ON queued_writes BEGIN
    UPDATE queue_size SET entries = entries - 1;
END;
"""

_WRITE = "operation, principal_id, namespace, request, time_us, order_key"
_TAKE = f"""
UPDATE queued_writes SET
    owner = :owner, taken_until_us = :until_us, deliveries = deliveries + (taken_until_us <= :now_us)
WHERE entry_id IN (
    SELECT entry_id FROM queued_writes
    WHERE (taken_until_us <= :now_us
        OR (taken_until_us > 0 AND owner = :owner AND entry_id NOT IN (SELECT value FROM json_each(:known))))
    AND order_key NOT IN (
        SELECT order_key FROM queued_writes WHERE taken_until_us > :now_us AND owner <> :owner
    )
    ORDER BY entry_id LIMIT :page_size
)
RETURNING entry_id, deliveries, {_WRITE}
"""  # noqa: S608 - a list of columns
_SET_ASIDE = f"""
INSERT OR IGNORE INTO set_aside_writes (entry_id, deliveries, {_WRITE})
SELECT entry_id, deliveries, {_WRITE} FROM queued_writes WHERE entry_id = ?
"""  # noqa: S608 - a list of columns
_LIST_SET_ASIDE = f"""
SELECT entry_id, {_WRITE} FROM set_aside_writes WHERE entry_id > ? ORDER BY entry_id LIMIT ?
"""  # noqa: S608 - a list of columns
_THESE_ASIDE = "FROM set_aside_writes WHERE :is_all OR entry_id IN (SELECT value FROM json_each(:ids))"
_PUT_BACK = f"""
INSERT OR IGNORE INTO queued_writes ({_WRITE}) SELECT {_WRITE} {_THESE_ASIDE} ORDER BY entry_id
"""
_FORGET_SET_ASIDE = """
DELETE FROM set_aside_writes
WHERE entry_id NOT IN (SELECT entry_id FROM set_aside_writes ORDER BY entry_id DESC LIMIT ?)
"""
_DEPTH = """
SELECT (SELECT entries FROM queue_size), (SELECT count(*) FROM queued_writes WHERE taken_until_us > ?),
       (SELECT time_us FROM queued_writes ORDER BY entry_id LIMIT 1), (SELECT count(*) FROM set_aside_writes)
"""


@dataclass(frozen=True, slots=True)
class Hold:
    """Who takes, at which time, and until when it is his."""

    owner: str
    now_us: int
    until_us: int


def free_all(connection: sqlite3.Connection) -> None:
    """Takes everything from whoever held it."""
    connection.execute("UPDATE queued_writes SET owner = '', taken_until_us = 0 WHERE taken_until_us > 0")


def put(connection: sqlite3.Connection, write: QueuedWrite, max_entries: int) -> bool:
    """Adds a write unless its operation is there; False when there is no room."""
    if find(connection, write.operation) is not None:
        return True
    (entries,) = connection.execute("SELECT entries FROM queue_size").fetchone()
    if entries >= max_entries:
        return False
    row = (write.operation, write.principal_id, write.namespace, write.request, write.time_us, write.order_key)
    connection.execute(f"INSERT INTO queued_writes ({_WRITE}) VALUES (?, ?, ?, ?, ?, ?)", row)  # noqa: S608 - columns
    return True


def take(connection: sqlite3.Connection, hold: Hold, page_size: int, known: Sequence[str]) -> list[QueueEntry]:
    """Hands out the oldest that are free, or the owner's but not `known` to it, and whose key nobody else holds."""
    given: dict[str, str | int] = {
        "owner": hold.owner,
        "until_us": hold.until_us,
        "now_us": hold.now_us,
        "page_size": page_size,
    }
    given["known"] = json.dumps([int(entry_id) for entry_id in known])
    rows = sorted(connection.execute(_TAKE, given).fetchall())
    return [QueueEntry(str(entry_id), QueuedWrite(*write), deliveries) for entry_id, deliveries, *write in rows]


def renew(connection: sqlite3.Connection, hold: Hold, entries: Sequence[QueueEntry]) -> None:
    """Moves the end of what the owner still holds."""
    rows = [(hold.until_us, int(entry.entry_id), hold.owner) for entry in entries]
    connection.executemany("UPDATE queued_writes SET taken_until_us = ? WHERE entry_id = ? AND owner = ?", rows)


def remove(connection: sqlite3.Connection, entries: Sequence[QueueEntry]) -> None:
    """Deletes rows; those that are gone are passed over."""
    connection.executemany(
        "DELETE FROM queued_writes WHERE entry_id = ?", [(int(entry.entry_id),) for entry in entries]
    )


def set_aside(connection: sqlite3.Connection, entries: Sequence[QueueEntry]) -> None:
    """Moves rows to the table of those that cannot be applied, and drops the oldest of these."""
    connection.executemany(_SET_ASIDE, [(int(entry.entry_id),) for entry in entries])
    remove(connection, entries)
    connection.execute(_FORGET_SET_ASIDE, (SET_ASIDE_KEPT,))


def set_aside_writes(connection: sqlite3.Connection, after_id: str, page_size: int) -> list[SetAsideWrite]:
    """A page of them by id."""
    rows = connection.execute(_LIST_SET_ASIDE, (number_of(after_id), page_size))
    return [SetAsideWrite(str(entry_id), QueuedWrite(*write)) for entry_id, *write in rows]


def replay_set_aside(connection: sqlite3.Connection, entry_ids: Sequence[str]) -> int:
    """Moves them behind what waits; how many were there."""
    given = {"is_all": not entry_ids, "ids": json.dumps([number_of(entry_id) for entry_id in entry_ids])}
    connection.execute(_PUT_BACK, given)
    return connection.execute(f"DELETE {_THESE_ASIDE}", given).rowcount


def find(connection: sqlite3.Connection, operation: str) -> QueuedWrite | None:
    """The write of an operation."""
    query = f"SELECT {_WRITE} FROM queued_writes WHERE operation = ?"  # noqa: S608 - a list of columns
    row = connection.execute(query, (operation,)).fetchone()
    return None if row is None else QueuedWrite(*row)


def depth(connection: sqlite3.Connection, now_us: int) -> QueueDepth:
    """Counts; the oldest row is the one that was accepted first."""
    entries, taken, oldest_us, aside = connection.execute(_DEPTH, (now_us,)).fetchone()
    return QueueDepth(entries - taken, taken, oldest_us, aside)
