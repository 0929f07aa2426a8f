"""Every read of the record store as one statement; the scope is part of each."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from dataplane.adapters.record_rows import COLUMNS, columns, memory_from, vector_from_blob, version_from
from dataplane.adapters.sqlite.clauses import Parameters, fill, in_namespaces, in_scope, passes
from dataplane.adapters.sqlite.outbox import EMBEDDED
from dataplane.changes import MemoryVersion, RequestRecord
from dataplane.model import DAY_US, Filter, Kind, Memory, Scope, StoredCandidate
from dataplane.ports import ContentKey, ListQuery, Pending

_WIDTH = len(COLUMNS)
_HEAD = columns("m")
_VERSION = f"{columns('v')}, v.record_time_us, v.principal_id, v.change, v.reason"
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
# The buckets lead, for a namespace has far more memories than were read lately.
_MOST_USED = """
SELECT m.memory_id FROM access_buckets AS a CROSS JOIN memories AS m ON m.memory_id = a.memory_id
WHERE {buckets} AND a.day >= :day AND m.state = 1 AND {scope} AND {filter}
GROUP BY m.memory_id ORDER BY sum(a.count) DESC LIMIT :page_size"""
_FIND_SAME_CONTENT = """
SELECT {head} FROM memories AS m
WHERE m.state = 1 AND m.subject_id = :subject_id AND m.kind = :kind AND m.content_hash = :content_hash AND {scope}
ORDER BY +m.create_time_us, m.memory_id LIMIT 100"""  # + keeps it off the index of newest first, which reads all
_HAS_CONTENT = """
SELECT 1 FROM memories AS m
WHERE m.state = 1 AND m.namespace = :namespace AND m.subject_id = :subject_id AND m.kind = :kind
    AND m.content_hash = :content_hash AND {scope}
LIMIT 1"""
_FIND_FACT = """
SELECT {head} FROM memories AS m
WHERE m.state = 1 AND m.fact_key <> '' AND m.subject_id = :subject_id AND m.fact_key = :fact_key AND {scope}
LIMIT 1"""
# CROSS JOIN: the ids lead, whatever the planner thinks of the namespace.
_FETCH = """
SELECT {head}, e.vector, {recent}
FROM json_each(:ids) AS i CROSS JOIN memories AS m ON m.memory_id = i.value {embedded}
WHERE {scope}"""
# Places go by the index of sessions, each on its own, so that one in a long session costs no more.
_NEIGHBOURS = """
SELECT {head}, e.vector, {recent}
FROM (SELECT DISTINCT n.rowid AS place FROM json_each(:places) AS p CROSS JOIN memories AS n
    WHERE n.rowid IN ({before}) UNION
    SELECT DISTINCT n.rowid AS place FROM json_each(:places) AS p CROSS JOIN memories AS n
    WHERE n.rowid IN ({after})) AS b
CROSS JOIN memories AS m ON m.rowid = b.place {embedded}"""
_BESIDE = """
SELECT b.rowid FROM memories AS b
WHERE b.namespace = p.value ->> 0 AND b.session_id = p.value ->> 1 AND b.session_id <> '' AND b.state = 1
    AND (b.sequence, b.create_time_us, b.memory_id) {side} (p.value ->> 2, p.value ->> 3, p.value ->> 4) AND {scope}
ORDER BY b.sequence {order}, b.create_time_us {order}, b.memory_id {order} LIMIT :reach"""
# One index's newest rows above what it has applied, and those that failed before: each memory at its newest one.
_ABOVE = """
SELECT o.memory_id, o.position FROM outbox AS o {by} CROSS JOIN memories AS m ON m.memory_id = o.memory_id
WHERE o.index_id = {index_id} AND {outbox_scope} AND o.position > :applied{number} AND {scope} AND m.state = 1
    AND NOT EXISTS (SELECT 1 FROM outbox AS n
        WHERE n.memory_id = o.memory_id AND n.index_id = o.index_id AND n.position > o.position)
ORDER BY o.position DESC LIMIT :rows"""
_FAILED = """
SELECT o.memory_id, o.position FROM {table} AS o {by} CROSS JOIN memories AS m ON m.memory_id = o.memory_id
WHERE o.index_id = {index_id} AND {outbox_scope} {failed} AND {scope} AND m.state = 1
ORDER BY o.position DESC LIMIT :rows"""
_PART = "SELECT * FROM ({part})"  # SQLite takes no ORDER BY within a union otherwise
_PENDING = """
SELECT {head}, e.vector, {recent}
FROM (SELECT memory_id, max(position) AS position FROM ({due}) GROUP BY memory_id) AS d
CROSS JOIN memories AS m ON m.memory_id = d.memory_id {embedded}
ORDER BY d.position DESC LIMIT :rows"""
_COUNT_DUE = """
SELECT count(*) FROM (SELECT 1 FROM json_each(:applied) AS a CROSS JOIN indexes AS i ON i.name = a.key
    CROSS JOIN outbox AS o ON o.index_id = i.index_id AND o.position > a.value LIMIT :rows)"""
_ANY_FAILED = """
SELECT EXISTS (SELECT 1 FROM outbox INDEXED BY outbox_failed WHERE attempts > 0)
    OR EXISTS (SELECT 1 FROM dead_letters)"""
_HISTORY = """
SELECT {version}, e.vector
FROM memory_versions AS v JOIN memories AS m ON m.memory_id = v.memory_id
LEFT JOIN embeddings AS e ON e.memory_id = v.memory_id AND e.version = v.version AND e.model = :model
WHERE {version_scope} AND {scope} AND m.state NOT IN (3, 6) AND v.state = 1 AND v.record_time_us <= :as_of_us
    AND NOT EXISTS (SELECT 1 FROM memory_versions AS n
        WHERE n.memory_id = v.memory_id AND n.version > v.version AND n.record_time_us <= :as_of_us)
ORDER BY v.record_time_us DESC, v.memory_id DESC LIMIT :rows"""
_FIND_REQUESTS = """
SELECT m.principal_id, m.request_id, m.payload_hash, m.response, m.expire_time_us FROM requests AS m
WHERE m.principal_id = :principal_id AND m.request_id IN (SELECT value FROM json_each(:request_ids))
    AND m.expire_time_us > :now_us AND {scope}"""
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


def most_used(
    connection: sqlite3.Connection, scope: Scope, filter: Filter, access_since_us: int, page_size: int
) -> list[str]:
    """See RecordReads.most_used."""
    condition, parameters = in_scope(scope, "m")
    passing, values = passes(filter)
    parameters.update(values, day=access_since_us // DAY_US, page_size=page_size)
    buckets = "1"
    if not scope.system:
        buckets, touched = in_namespaces((*scope.namespaces, *scope.shared), "touched", "a")
        parameters.update(touched)
    statement = fill(_MOST_USED, buckets=buckets, scope=condition, filter=passing)
    return [row[0] for row in connection.execute(statement, parameters)]


def find_same_content(
    connection: sqlite3.Connection, scope: Scope, subject_id: str, kind: Kind, content_hash: str
) -> list[Memory]:
    """See RecordStore.find_same_content."""
    condition, parameters = in_scope(scope, "m")
    parameters.update(subject_id=subject_id, kind=int(kind), content_hash=content_hash)
    statement = fill(_FIND_SAME_CONTENT, head=_HEAD, scope=condition)
    return [memory_from(row) for row in connection.execute(statement, parameters)]


def find_contents(connection: sqlite3.Connection, scope: Scope, contents: Sequence[ContentKey]) -> set[ContentKey]:
    """See RecordStore.find_contents."""
    condition, parameters = in_scope(scope, "m")
    statement = fill(_HAS_CONTENT, scope=condition)
    return {key for key in contents if connection.execute(statement, {**parameters, **_parameters(key)}).fetchone()}


def _parameters(key: ContentKey) -> Parameters:
    return {
        "namespace": key.namespace,
        "subject_id": key.subject_id,
        "kind": int(key.kind),
        "content_hash": key.content_hash,
    }


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
    statement = fill(_FETCH, head=_HEAD, recent=_RECENT, embedded=EMBEDDED, scope=condition)
    return [_candidate_from(row) for row in connection.execute(statement, parameters)]


def neighbours(
    connection: sqlite3.Connection,
    scope: Scope,
    memories: Sequence[Memory],
    reach: int,
    model: str,
    access_since_us: int,
) -> list[StoredCandidate]:
    """See RecordReads.neighbours."""
    condition, parameters = in_scope(scope, "b")
    places = [(m.namespace, m.session_id, m.sequence, m.create_time_us, m.memory_id) for m in memories if m.session_id]
    parameters.update(places=json.dumps(places), reach=reach, model=model, day=access_since_us // DAY_US)
    statement = fill(
        _NEIGHBOURS,
        head=_HEAD,
        recent=_RECENT,
        embedded=EMBEDDED,
        before=fill(_BESIDE, side="<", order="DESC", scope=condition),
        after=fill(_BESIDE, side=">", order="ASC", scope=condition),
    )
    return [_candidate_from(row) for row in connection.execute(statement, parameters)]


def count_pending(connection: sqlite3.Connection, applied: Mapping[str, int], most: int) -> int:
    """How many outbox rows `pending` may have to look at, of any namespace: those above, up to a bound, else failed."""
    parameters: Parameters = {"applied": json.dumps(dict(applied)), "rows": most}
    (above,) = connection.execute(_COUNT_DUE, parameters).fetchone()
    return int(above or connection.execute(_ANY_FAILED).fetchone()[0])


def pending(
    connection: sqlite3.Connection,
    scope: Scope,
    applied: Mapping[str, int],
    model: str,
    access_since_us: int,
    page_size: int,
) -> Pending:
    """See RecordReads.pending."""
    if not applied:
        return Pending()
    condition, parameters = in_scope(scope, "m")
    parameters.update(model=model, day=access_since_us // DAY_US, rows=page_size + 1)
    if not scope.system:
        parameters["touched"] = json.dumps((*scope.namespaces, *scope.shared))
    due = []
    for number, (index, position) in enumerate(applied.items()):
        parameters.update({f"index{number}": index, f"applied{number}": position})
        due += [fill(_PART, part=part) for part in _due(scope, condition, number)]
    statement = fill(_PENDING, head=_HEAD, recent=_RECENT, embedded=EMBEDDED, due=" UNION ALL ".join(due))
    rows = connection.execute(statement, parameters).fetchall()
    return Pending(tuple(_candidate_from(row) for row in rows[:page_size]), len(rows) > page_size)


def _due(scope: Scope, condition: str, number: int) -> tuple[str, str, str]:
    """What awaits one index. The outbox knows namespaces only; the pool is the memory's to say.

    The index is named, for the planner would rather go by position through every namespace.
    """
    parts = {
        "index_id": fill("(SELECT i.index_id FROM indexes AS i WHERE i.name = :index{number})", number=str(number)),
        "outbox_scope": "1" if scope.system else "o.namespace IN (SELECT value FROM json_each(:touched))",
        "scope": condition,
        "number": str(number),
    }
    by = {name: "" if scope.system else f"INDEXED BY {name}" for name in ("outbox_namespace", "dead_letters_namespace")}
    failed = "" if scope.system else "INDEXED BY outbox_failed"
    return (
        fill(_ABOVE, by=by["outbox_namespace"], **parts),
        fill(_FAILED, table="outbox", by=failed, failed="AND o.attempts > 0", **parts),
        fill(_FAILED, table="dead_letters", by=by["dead_letters_namespace"], failed="", **parts),
    )


def history(connection: sqlite3.Connection, scope: Scope, as_of_us: int, model: str, page_size: int) -> Pending:
    """See RecordStore.history."""
    parts, parameters = _both_scopes(scope)
    parameters.update(as_of_us=as_of_us, model=model, rows=page_size + 1)
    rows = connection.execute(fill(_HISTORY, **parts), parameters).fetchall()
    found = tuple(StoredCandidate(memory_from(row), vector_from_blob(row[-1]), 0) for row in rows[:page_size])
    return Pending(found, len(rows) > page_size)


def find_requests(
    connection: sqlite3.Connection, scope: Scope, principal_id: str, request_ids: Sequence[str], now_us: int
) -> list[RequestRecord]:
    """See RecordStore.find_requests."""
    # An answer may speak of private memories: readers of shared rows alone do not see it.
    condition, parameters = in_scope(Scope(scope.namespaces, (), scope.system), "m")
    parameters.update(principal_id=principal_id, request_ids=json.dumps(list(request_ids)), now_us=now_us)
    return [RequestRecord(*row) for row in connection.execute(fill(_FIND_REQUESTS, scope=condition), parameters)]


def tombstones(connection: sqlite3.Connection, memory_ids: Sequence[str]) -> set[str]:
    """See RecordStore.tombstones."""
    return {row[0] for row in connection.execute(_TOMBSTONES, (json.dumps(list(memory_ids)),))}


def count_active(connection: sqlite3.Connection) -> int:
    """See RecordStore.count."""
    (found,) = connection.execute("SELECT count(*) FROM memories WHERE state = 1").fetchone()
    return int(found)


def _candidate_from(row: Sequence[Any]) -> StoredCandidate:
    return StoredCandidate(memory_from(row), vector_from_blob(row[_WIDTH]), row[_WIDTH + 1])
