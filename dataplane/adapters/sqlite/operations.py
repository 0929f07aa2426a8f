"""Operations and markers as statements."""

import sqlite3
from collections.abc import Sequence
from dataclasses import astuple, fields
from typing import Any

from dataplane.adapters.sqlite.clauses import NOW_US, fill
from dataplane.changes import OperationRecord

_NAMES = ", ".join(field.name for field in fields(OperationRecord))
_SAVE = fill(
    """
INSERT INTO operations ({names}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT (name) DO UPDATE SET principal_id = excluded.principal_id, namespace = excluded.namespace,
    create_time_us = excluded.create_time_us, update_time_us = excluded.update_time_us,
    expire_time_us = excluded.expire_time_us, is_done = excluded.is_done, metadata = excluded.metadata,
    response = excluded.response, error = excluded.error
WHERE (NOT operations.is_done OR (operations.error <> x'' AND excluded.response <> x''))
    AND excluded.update_time_us >= operations.update_time_us""",
    names=_NAMES,
)
_EXPIRE = fill("DELETE FROM operations WHERE expire_time_us <= {now}", now=NOW_US)
_FIND = fill("SELECT {names} FROM operations WHERE name = ? AND expire_time_us > {now}", names=_NAMES, now=NOW_US)
_LIST = fill(
    "SELECT {names} FROM operations WHERE name > ? AND expire_time_us > {now} ORDER BY name LIMIT ?",
    names=_NAMES,
    now=NOW_US,
)
_SAVE_MARKER = """
INSERT INTO markers (name, value) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value"""


def save(connection: sqlite3.Connection, operations: Sequence[OperationRecord]) -> None:
    """See RecordStore.save_operations."""
    connection.execute(_EXPIRE)
    connection.executemany(_SAVE, [astuple(operation) for operation in operations])


def find(connection: sqlite3.Connection, name: str) -> OperationRecord | None:
    """See RecordStore.find_operation."""
    row = connection.execute(_FIND, (name,)).fetchone()
    return _from(row) if row else None


def page(connection: sqlite3.Connection, after_name: str, page_size: int) -> list[OperationRecord]:
    """See RecordStore.list_operations."""
    return [_from(row) for row in connection.execute(_LIST, (after_name, page_size))]


def marker(connection: sqlite3.Connection, name: str) -> int:
    """See RecordStore.marker."""
    row = connection.execute("SELECT value FROM markers WHERE name = ?", (name,)).fetchone()
    return int(row[0]) if row else 0


def save_marker(connection: sqlite3.Connection, name: str, value: int) -> None:
    """See RecordStore.save_marker."""
    connection.execute(_SAVE_MARKER, (name, value))


def _from(row: Sequence[Any]) -> OperationRecord:
    values = list(row)
    values[6] = bool(values[6])
    return OperationRecord(*values)
