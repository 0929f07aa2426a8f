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
_LIST_OWN = fill(
    "SELECT {names} FROM operations WHERE principal_id = ? AND name > ? AND expire_time_us > {now}"
    " ORDER BY name LIMIT ?",
    names=_NAMES,
    now=NOW_US,
)
_SAVE_MARKER = """
INSERT INTO markers (name, value) VALUES (?, ?)
ON CONFLICT (name) DO UPDATE SET value = excluded.value"""
_RAISE_MARKER = """
INSERT INTO markers (name, value) VALUES (:name, :value)
ON CONFLICT (name) DO UPDATE SET value = excluded.value WHERE excluded.value / :unit > markers.value / :unit"""
_STAMP_MARKER = fill(
    "INSERT INTO markers (name, value) VALUES (?, {now}) ON CONFLICT (name) DO UPDATE SET value = excluded.value",
    now=NOW_US,
)
_STALE_MARKERS = fill(
    "SELECT name FROM markers WHERE substr(name, 1, length(:prefix)) = :prefix AND value <= {now} - :age_us"
    " ORDER BY name LIMIT :page_size",
    now=NOW_US,
)


def save(connection: sqlite3.Connection, operations: Sequence[OperationRecord]) -> None:
    """See RecordStore.save_operations."""
    connection.execute(_EXPIRE)
    connection.executemany(_SAVE, [astuple(operation) for operation in operations])


def find(connection: sqlite3.Connection, name: str) -> OperationRecord | None:
    """See RecordStore.find_operation."""
    row = connection.execute(_FIND, (name,)).fetchone()
    return _from(row) if row else None


def page(connection: sqlite3.Connection, after_name: str, page_size: int, principal_id: str) -> list[OperationRecord]:
    """See RecordStore.list_operations."""
    if principal_id:
        return [_from(row) for row in connection.execute(_LIST_OWN, (principal_id, after_name, page_size))]
    return [_from(row) for row in connection.execute(_LIST, (after_name, page_size))]


def marker(connection: sqlite3.Connection, name: str) -> int:
    """See RecordStore.marker."""
    row = connection.execute("SELECT value FROM markers WHERE name = ?", (name,)).fetchone()
    return int(row[0]) if row else 0


def save_marker(connection: sqlite3.Connection, name: str, value: int) -> None:
    """See RecordStore.save_marker."""
    connection.execute(_SAVE_MARKER, (name, value))


def raise_marker(connection: sqlite3.Connection, name: str, value: int, unit: int) -> int:
    """See RecordStore.raise_marker."""
    connection.execute(_RAISE_MARKER, {"name": name, "value": value, "unit": unit})
    return marker(connection, name)


def stamp_marker(connection: sqlite3.Connection, name: str) -> None:
    """See RecordStore.stamp_marker."""
    connection.execute(_STAMP_MARKER, (name,))


def stale_markers(connection: sqlite3.Connection, prefix: str, seconds: float, page_size: int) -> list[str]:
    """See RecordStore.stale_markers."""
    given = {"prefix": prefix, "age_us": int(seconds * 1e6), "page_size": page_size}
    return [name for (name,) in connection.execute(_STALE_MARKERS, given)]


def drop_markers(connection: sqlite3.Connection, names: Sequence[str]) -> None:
    """See RecordStore.drop_markers."""
    connection.executemany("DELETE FROM markers WHERE name = ?", [(name,) for name in names])


def _from(row: Sequence[Any]) -> OperationRecord:
    values = list(row)
    values[6] = bool(values[6])
    return OperationRecord(*values)
