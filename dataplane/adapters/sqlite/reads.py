"""Every read of the record store as one statement; the scope is part of each."""

import json
import sqlite3
from collections.abc import Sequence
from typing import Any

from dataplane.adapters.sqlite.clauses import Parameters, fill, in_namespaces, in_scope, passes
from dataplane.adapters.sqlite.rows import COLUMNS, columns, memory_from, vector_from_blob, version_from
from dataplane.changes import MemoryVersion, OutboxRow, RequestRecord
from dataplane.model import DAY_US, Kind, Memory, Scope, StoredCandidate
from dataplane.ports import ListQuery, Pending

_WIDTH = len(COLUMNS)
_HEAD = columns("m")
_VERSION = f"{columns('v')}, v.record_time_us, v.principal_id, v.change, v.reason"
_EMBEDDED = "LEFT JOIN embeddings AS e ON e.memory_id = m.memory_id AND e.version = m.version AND e.model = :model"
_RECENT = (
    "(SELECT coalesce(sum(a.count), 0) FROM access_buckets AS a WHERE a.memory_id = m.memory_id AND a.day >= :day)"
)

_GET_VERSION = """
SELECT {version} FROM memory_versions AS v JOIN memories AS m ON m.memory_id = v.memory_id
WHERE v.memory_id = :memory_id AND v.version = :version AND {scope} AND {version_scope}"""
_LIST_VERSIONS = """
SELECT {version} FROM memory_versions AS v JOIN memories AS m ON m.memory_id = v.memory_id
WHERE v.memory_id = :memory_id AND (:before = 0 OR v.version < :before) AND {scope} AND {version_scope}
ORDER BY v.version DESC LIMIT :page_size"""
_LIST = """
SELECT {head} FROM memories AS m
WHERE {scope} AND m.state IN (SELECT value FROM json_each(:states)) {after} AND {filter}
ORDER BY m.create_time_us DESC, m.memory_id DESC LIMIT :page_size"""
_AFTER = "AND (m.create_time_us, m.memory_id) < (:after_time_us, :after_id)"
_FIND_SAME_CONTENT = """
SELECT {head} FROM memories AS m
WHERE m.state = 1 AND m.subject_id = :subject_id AND m.kind = :kind AND m.content_hash = :content_hash AND {scope}
ORDER BY +m.create_time_us, m.memory_id LIMIT 100"""  # + keeps it off the index of newest first, which reads all
_FIND_FACT = """
SELECT {head} FROM memories AS m
WHERE m.state = 1 AND m.fact_key <> '' AND m.subject_id = :subject_id AND m.fact_key = :fact_key AND {scope}
LIMIT 1"""
# CROSS JOIN: the ids lead, whatever the planner thinks of the namespace.
_FETCH = """
SELECT {head}, e.vector, {recent}
FROM json_each(:ids) AS i CROSS JOIN memories AS m ON m.memory_id = i.value {embedded}
WHERE {scope}"""
_PENDING = """
SELECT {head}, e.vector, {recent}
FROM outbox AS o CROSS JOIN memories AS m ON m.memory_id = o.memory_id {embedded}
WHERE o.position > :position AND {outbox_scope} AND {scope} AND m.state = 1
    AND NOT EXISTS (SELECT 1 FROM outbox AS n WHERE n.memory_id = o.memory_id AND n.position > o.position)
ORDER BY o.position DESC LIMIT :rows"""
_HISTORY = """
SELECT {version}, e.vector
FROM memory_versions AS v JOIN memories AS m ON m.memory_id = v.memory_id
LEFT JOIN embeddings AS e ON e.memory_id = v.memory_id AND e.version = v.version AND e.model = :model
WHERE {version_scope} AND {scope} AND m.state NOT IN (3, 6) AND v.state = 1 AND v.record_time_us <= :as_of_us
    AND NOT EXISTS (SELECT 1 FROM memory_versions AS n
        WHERE n.memory_id = v.memory_id AND n.version > v.version AND n.record_time_us <= :as_of_us)
ORDER BY v.record_time_us DESC, v.memory_id DESC LIMIT :rows"""
_FIND_REQUEST = """
SELECT m.principal_id, m.request_id, m.payload_hash, m.response, m.expire_time_us FROM requests AS m
WHERE m.principal_id = :principal_id AND m.request_id = :request_id AND m.expire_time_us > :now_us AND {scope}"""
_READ_OUTBOX = fill(
    """
SELECT {head}, e.vector, o.position, o.memory_id, o.namespace
FROM (SELECT * FROM outbox WHERE position > :position ORDER BY position LIMIT :page_size) AS o
LEFT JOIN memories AS m ON m.memory_id = o.memory_id AND m.state = 1 {embedded}
ORDER BY o.position""",
    head=_HEAD,
    embedded=_EMBEDDED,
)
_SCAN = fill(
    """
SELECT {head}, e.vector, 0, m.memory_id, m.namespace FROM memories AS m {embedded}
WHERE m.memory_id > :after_id AND m.state = 1 ORDER BY m.memory_id LIMIT :page_size""",
    head=_HEAD,
    embedded=_EMBEDDED,
)
_TOMBSTONES = "SELECT memory_id FROM tombstones WHERE memory_id IN (SELECT value FROM json_each(?))"


def _both_scopes(scope: Scope) -> tuple[dict[str, str], Parameters]:
    """Head and version lie in the scope: what was private then, or is now, is not shown to readers of shared rows."""
    condition, parameters = in_scope(scope, "m")
    return {"scope": condition, "version_scope": in_scope(scope, "v")[0], "version": _VERSION}, parameters


def get_version(connection: sqlite3.Connection, scope: Scope, memory_id: str, version: int) -> MemoryVersion | None:
    """See RecordStore.get_version."""
    parts, parameters = _both_scopes(scope)
    parameters.update(memory_id=memory_id, version=version)
    row = connection.execute(fill(_GET_VERSION, **parts), parameters).fetchone()
    return version_from(row) if row else None


def list_versions(
    connection: sqlite3.Connection, scope: Scope, memory_id: str, before_version: int, page_size: int
) -> list[MemoryVersion]:
    """See RecordStore.list_versions."""
    parts, parameters = _both_scopes(scope)
    parameters.update(memory_id=memory_id, before=before_version, page_size=page_size)
    return [version_from(row) for row in connection.execute(fill(_LIST_VERSIONS, **parts), parameters)]


def list_memories(connection: sqlite3.Connection, scope: Scope, query: ListQuery) -> list[Memory]:
    """See RecordStore.list_memories."""
    condition, parameters = in_scope(scope, "m")
    passing, values = passes(query.filter)
    parameters.update(values, states=json.dumps(query.states), page_size=query.page_size)
    if query.after:
        parameters.update(after_time_us=query.after[0], after_id=query.after[1])
    after = _AFTER if query.after else ""
    statement = fill(_LIST, head=_HEAD, scope=condition, after=after, filter=passing)
    return [memory_from(row) for row in connection.execute(statement, parameters)]


def find_same_content(
    connection: sqlite3.Connection, scope: Scope, subject_id: str, kind: Kind, content_hash: str
) -> list[Memory]:
    """See RecordStore.find_same_content."""
    condition, parameters = in_scope(scope, "m")
    parameters.update(subject_id=subject_id, kind=int(kind), content_hash=content_hash)
    statement = fill(_FIND_SAME_CONTENT, head=_HEAD, scope=condition)
    return [memory_from(row) for row in connection.execute(statement, parameters)]


def find_fact(connection: sqlite3.Connection, scope: Scope, subject_id: str, fact_key: str) -> Memory | None:
    """See RecordStore.find_fact."""
    condition, parameters = in_scope(scope, "m")
    parameters.update(subject_id=subject_id, fact_key=fact_key)
    row = connection.execute(fill(_FIND_FACT, head=_HEAD, scope=condition), parameters).fetchone()
    return memory_from(row) if row else None


def fetch(
    connection: sqlite3.Connection, scope: Scope, memory_ids: Sequence[str], model: str, access_since_us: int
) -> list[StoredCandidate]:
    """See RecordStore.fetch."""
    condition, parameters = in_scope(scope, "m")
    parameters.update(ids=json.dumps(list(dict.fromkeys(memory_ids))), model=model, day=access_since_us // DAY_US)
    statement = fill(_FETCH, head=_HEAD, recent=_RECENT, embedded=_EMBEDDED, scope=condition)
    return [_candidate_from(row) for row in connection.execute(statement, parameters)]


def pending(
    connection: sqlite3.Connection, scope: Scope, after_position: int, model: str, access_since_us: int, page_size: int
) -> Pending:
    """See RecordStore.pending."""
    condition, parameters = in_scope(scope, "m")
    parameters.update(position=after_position, model=model, day=access_since_us // DAY_US, rows=page_size + 1)
    statement = fill(
        _PENDING,
        head=_HEAD,
        recent=_RECENT,
        embedded=_EMBEDDED,
        scope=condition,
        outbox_scope=_outbox_scope(scope),
    )
    rows = connection.execute(statement, parameters).fetchall()
    return Pending(tuple(_candidate_from(row) for row in rows[:page_size]), len(rows) > page_size)


def _outbox_scope(scope: Scope) -> str:
    """The outbox knows namespaces only; the pool is the memory's to say."""
    if scope.system:
        return "1"
    condition, _ = in_namespaces(scope.namespaces, "namespaces", "o")
    if scope.shared:
        condition = f"({condition} OR {in_namespaces(scope.shared, 'shared', 'o')[0]})"
    return condition


def history(connection: sqlite3.Connection, scope: Scope, as_of_us: int, model: str, page_size: int) -> Pending:
    """See RecordStore.history."""
    parts, parameters = _both_scopes(scope)
    parameters.update(as_of_us=as_of_us, model=model, rows=page_size + 1)
    rows = connection.execute(fill(_HISTORY, **parts), parameters).fetchall()
    found = tuple(StoredCandidate(memory_from(row), vector_from_blob(row[-1]), 0) for row in rows[:page_size])
    return Pending(found, len(rows) > page_size)


def find_request(
    connection: sqlite3.Connection, scope: Scope, principal_id: str, request_id: str, now_us: int
) -> RequestRecord | None:
    """See RecordStore.find_request."""
    # An answer may speak of private memories: readers of shared rows alone do not see it.
    condition, parameters = in_scope(Scope(scope.namespaces, (), scope.system), "m")
    parameters.update(principal_id=principal_id, request_id=request_id, now_us=now_us)
    row = connection.execute(fill(_FIND_REQUEST, scope=condition), parameters).fetchone()
    return RequestRecord(*row) if row else None


def read_outbox(connection: sqlite3.Connection, after_position: int, page_size: int, model: str) -> list[OutboxRow]:
    """See RecordStore.read_outbox."""
    parameters: Parameters = {"position": after_position, "page_size": page_size, "model": model}
    return [_outbox_row_from(row) for row in connection.execute(_READ_OUTBOX, parameters)]


def scan(connection: sqlite3.Connection, after_id: str, page_size: int, model: str) -> list[OutboxRow]:
    """See RecordStore.scan."""
    parameters: Parameters = {"after_id": after_id, "page_size": page_size, "model": model}
    return [_outbox_row_from(row) for row in connection.execute(_SCAN, parameters)]


def watermark(connection: sqlite3.Connection, name: str) -> int:
    """See RecordStore.watermark."""
    row = connection.execute("SELECT position FROM watermarks WHERE name = ?", (name,)).fetchone()
    return int(row[0]) if row else 0


def tombstones(connection: sqlite3.Connection, memory_ids: Sequence[str]) -> set[str]:
    """See RecordStore.tombstones."""
    return {row[0] for row in connection.execute(_TOMBSTONES, (json.dumps(list(memory_ids)),))}


def count_active(connection: sqlite3.Connection) -> int:
    """See RecordStore.count."""
    (found,) = connection.execute("SELECT count(*) FROM memories WHERE state = 1").fetchone()
    return int(found)


def _candidate_from(row: Sequence[Any]) -> StoredCandidate:
    return StoredCandidate(memory_from(row), vector_from_blob(row[_WIDTH]), row[_WIDTH + 1])


def _outbox_row_from(row: Sequence[Any]) -> OutboxRow:
    memory = None if row[0] is None else memory_from(row)
    embedding = vector_from_blob(row[_WIDTH])
    position, memory_id, namespace = row[_WIDTH + 1 :]
    return OutboxRow(position, memory_id, namespace, memory, embedding)
