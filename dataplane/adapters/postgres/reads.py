"""Every read of memories as one statement, for the primary and a replica alike; the scope is part of each.

The conditions of scope stand here so that indexes serve them; that nobody sees more is row-level security's to hold.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from dataplane.adapters.postgres.clauses import Parameters, fill, in_scope, opaque, passes
from dataplane.adapters.postgres.pool import Pool, Row
from dataplane.adapters.record_rows import COLUMNS, columns, memory_from, vector_from_blob, version_from
from dataplane.changes import MemoryVersion
from dataplane.model import DAY_US, Filter, Memory, Scope, StoredCandidate
from dataplane.ports import ListQuery, Pending

_WIDTH: Final = len(COLUMNS)
_HEAD: Final = columns("m")
_VERSION: Final = f"{columns('v')}, v.record_time_us, v.principal_id, v.change, v.reason"
EMBEDDED: Final = (
    "LEFT JOIN memplane.embeddings AS e"
    " ON e.memory_id = m.memory_id AND e.version = m.version AND e.model = %(model)s::text"
)
"""Joins the embedding of a memory `m` as it stands."""

_RECENT: Final = (
    "(SELECT coalesce(sum(a.count), 0)::bigint FROM memplane.access_buckets AS a"
    " WHERE a.memory_id = m.memory_id AND a.day >= %(day)s::integer)"
)
_GET = fill(
    "SELECT {head} FROM memplane.memories AS m WHERE m.memory_id = %(memory_id)s::text AND {{scope}}", head=_HEAD
)
_GET_VERSION = """
SELECT {version} FROM memplane.memory_versions AS v JOIN memplane.memories AS m ON m.memory_id = v.memory_id
WHERE v.memory_id = %(memory_id)s::text AND v.version = %(number)s::bigint AND {scope} AND {version_scope}"""
_LIST_VERSIONS = """
SELECT {version} FROM memplane.memory_versions AS v JOIN memplane.memories AS m ON m.memory_id = v.memory_id
WHERE v.memory_id = %(memory_id)s::text AND (%(before)s::bigint = 0 OR v.version < %(before)s::bigint)
    AND {scope} AND {version_scope}
ORDER BY v.version DESC LIMIT %(page_size)s::bigint"""
_LIST = """
SELECT {head} FROM memplane.memories AS m
WHERE {scope} AND m.state = ANY (%(states)s::smallint[]) {after} AND {filter}
ORDER BY m.create_time_us DESC, m.memory_id DESC LIMIT %(page_size)s::bigint"""
# The buckets lead, for a namespace has far more memories than were read lately.
_MOST_USED = """
SELECT m.memory_id FROM (SELECT a.memory_id, sum(a.count) AS uses FROM memplane.access_buckets AS a
    WHERE {buckets} AND a.day >= %(day)s::integer GROUP BY a.memory_id) AS u
JOIN memplane.memories AS m ON m.memory_id = u.memory_id
WHERE m.state = 1 AND {scope} AND {filter}
ORDER BY u.uses DESC LIMIT %(page_size)s::bigint"""
_AFTER = "AND (m.create_time_us, m.memory_id) < (%(after_time_us)s::bigint, %(after_id)s::text)"
# Several namespaces: the newest of each by its index, then the newest of those.
_LIST_OF_EACH = """
SELECT {head} FROM unnest(%(touched)s::text[]) AS t (namespace) CROSS JOIN LATERAL (
    SELECT * FROM memplane.memories AS m
    WHERE m.namespace = t.namespace AND {scope} AND m.state = ANY (%(states)s::smallint[]) {after} AND {filter}
    ORDER BY m.create_time_us DESC, m.memory_id DESC LIMIT %(page_size)s::bigint) AS m
ORDER BY m.create_time_us DESC, m.memory_id DESC LIMIT %(page_size)s::bigint"""
_FETCH = """
SELECT {head}, e.vector, {recent}
FROM memplane.memories AS m {embedded}
WHERE m.memory_id = ANY (%(ids)s::text[]) AND {scope}"""
# Each place goes by the index of sessions.
_NEIGHBOURS = """
SELECT {head}, e.vector, {recent}
FROM (SELECT DISTINCT b.memory_id FROM unnest(%(spaces)s::text[], %(sessions)s::text[], %(sequences)s::bigint[],
        %(times)s::bigint[], %(ids)s::text[]) AS p (namespace, session_id, sequence, create_time_us, memory_id)
    CROSS JOIN LATERAL (({before}) UNION ALL ({after})) AS b) AS n
JOIN memplane.memories AS m ON m.memory_id = n.memory_id {embedded}
WHERE {scope}"""
_BESIDE = """
SELECT m.memory_id FROM memplane.memories AS m
WHERE m.namespace = p.namespace AND m.session_id = p.session_id AND m.session_id <> '' AND m.state = 1
    AND (m.sequence, m.create_time_us, m.memory_id) {side} (p.sequence, p.create_time_us, p.memory_id) AND {scope}
ORDER BY m.sequence {order}, m.create_time_us {order}, m.memory_id {order} LIMIT %(reach)s::bigint"""
# One index's newest rows above what it has applied, and those that failed before: each memory at its newest one.
_ABOVE = """
(SELECT o.memory_id, o.position FROM memplane.outbox AS o JOIN memplane.memories AS m ON m.memory_id = o.memory_id
WHERE o.index_id = {index_id} AND {outbox_scope} AND o.position > %(applied{number})s::bigint AND {scope}
    AND m.state = 1 AND NOT EXISTS (SELECT 1 FROM memplane.outbox AS n
        WHERE n.memory_id = o.memory_id AND n.index_id = o.index_id AND n.position > o.position)
ORDER BY o.position DESC LIMIT %(rows)s::bigint)"""
_FAILED = """
(SELECT o.memory_id, o.position FROM memplane.{table} AS o JOIN memplane.memories AS m ON m.memory_id = o.memory_id
WHERE o.index_id = {index_id} AND {outbox_scope} AND o.attempts > 0 AND {scope} AND m.state = 1
ORDER BY o.position DESC LIMIT %(rows)s::bigint)"""
_INDEX_ID = "(SELECT i.index_id FROM memplane.indexes AS i WHERE i.name = %(index{number})s::text)"
# Asked first, for as a rule nothing awaits and this is planned and answered in a fraction of the time.
_AWAITS = """
SELECT EXISTS (SELECT FROM memplane.outbox AS o WHERE o.namespace = ANY (%(touched)s::text[]) AND {followed})
    OR EXISTS (SELECT FROM memplane.dead_letters AS o WHERE o.namespace = ANY (%(touched)s::text[]) AND {followed})"""
_FOLLOWED = "o.index_id IN (SELECT i.index_id FROM memplane.indexes AS i WHERE i.name = ANY (%(names)s::text[]))"
_PENDING = """
SELECT {head}, e.vector, {recent}
FROM (SELECT memory_id, max(position) AS position FROM ({due}) AS d GROUP BY memory_id) AS o
JOIN memplane.memories AS m ON m.memory_id = o.memory_id {embedded}
WHERE {scope}
ORDER BY o.position DESC LIMIT %(rows)s::bigint"""
_HISTORY = """
SELECT {version}, e.vector
FROM memplane.memory_versions AS v JOIN memplane.memories AS m ON m.memory_id = v.memory_id
LEFT JOIN memplane.embeddings AS e
    ON e.memory_id = v.memory_id AND e.version = v.version AND e.model = %(model)s::text
WHERE {version_scope} AND {scope} AND m.state NOT IN (3, 6) AND v.state = 1
    AND v.record_time_us <= %(as_of_us)s::bigint
    AND NOT EXISTS (SELECT 1 FROM memplane.memory_versions AS n
        WHERE n.memory_id = v.memory_id AND n.version > v.version AND n.record_time_us <= %(as_of_us)s::bigint)
ORDER BY v.record_time_us DESC, v.memory_id DESC LIMIT %(rows)s::bigint"""
_LAST_POSITION = "SELECT position FROM memplane.last_position"


class PostgresReads:
    """A `ports.RecordReads` on one server."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def last_position(self, deadline_s: float) -> int:
        """See the port."""
        [(position,)] = await self._pool.read(Scope(()), _LAST_POSITION, {}, deadline_s)
        return int(position)

    async def get(self, scope: Scope, memory_id: str, deadline_s: float) -> Memory | None:
        """See the port."""
        condition, parameters = in_scope(scope, "m")
        parameters["memory_id"] = memory_id
        rows = await self._pool.read(scope, fill(_GET, scope=condition), parameters, deadline_s)
        return memory_from(rows[0]) if rows else None

    async def get_version(self, scope: Scope, memory_id: str, version: int, deadline_s: float) -> MemoryVersion | None:
        """See the port. Both the version and the memory as it stands must lie in the scope."""
        parts, parameters = _both_scopes(scope)
        parameters.update(memory_id=memory_id, number=version)
        rows = await self._pool.read(scope, fill(_GET_VERSION, **parts), parameters, deadline_s)
        return version_from(rows[0]) if rows else None

    async def list_versions(
        self, scope: Scope, memory_id: str, before_version: int, page_size: int, deadline_s: float
    ) -> list[MemoryVersion]:
        """See the port. Both the version and the memory as it stands must lie in the scope."""
        parts, parameters = _both_scopes(scope)
        parameters.update(memory_id=memory_id, before=before_version, page_size=page_size)
        rows = await self._pool.read(scope, fill(_LIST_VERSIONS, **parts), parameters, deadline_s)
        return [version_from(row) for row in rows]

    async def list_memories(self, scope: Scope, query: ListQuery, deadline_s: float) -> list[Memory]:
        """See the port."""
        condition, parameters = in_scope(scope, "m")
        passing, values = passes(query.filter)
        parameters.update(values, states=[int(state) for state in query.states], page_size=query.page_size)
        if query.after:
            parameters.update(after_time_us=query.after[0], after_id=query.after[1])
        after = _AFTER if query.after else ""
        touched = _touched(scope)
        parameters["touched"] = touched
        template, condition = (_LIST_OF_EACH, opaque(condition)) if len(touched) > 1 else (_LIST, condition)
        statement = fill(template, head=_HEAD, scope=condition, after=after, filter=opaque(passing))
        return [memory_from(row) for row in await self._pool.read(scope, statement, parameters, deadline_s)]

    async def most_used(
        self, scope: Scope, filter: Filter, access_since_us: int, page_size: int, deadline_s: float
    ) -> list[str]:
        """See the port."""
        condition, parameters = in_scope(scope, "m")
        passing, values = passes(filter)
        parameters.update(values, day=_day(access_since_us), page_size=page_size, touched=_touched(scope))
        buckets = "true" if scope.system else "a.namespace = ANY (%(touched)s::text[])"
        statement = fill(_MOST_USED, buckets=buckets, scope=opaque(condition), filter=opaque(passing))
        return [row[0] for row in await self._pool.read(scope, statement, parameters, deadline_s)]

    async def fetch(
        self, scope: Scope, memory_ids: Sequence[str], model: str, access_since_us: int, deadline_s: float
    ) -> list[StoredCandidate]:
        """See the port."""
        condition, parameters = in_scope(scope, "m")
        parameters.update(ids=list(dict.fromkeys(memory_ids)), model=model, day=_day(access_since_us))
        statement = fill(_FETCH, head=_HEAD, recent=_RECENT, embedded=EMBEDDED, scope=condition)
        rows = await self._pool.read(scope, statement, parameters, deadline_s)
        return [_candidate_from(row) for row in rows]

    async def neighbours(
        self, scope: Scope, memories: Sequence[Memory], reach: int, model: str, access_since_us: int, deadline_s: float
    ) -> list[StoredCandidate]:
        """See the port."""
        condition, parameters = in_scope(scope, "m")
        parameters.update(_places([memory for memory in memories if memory.session_id]))
        parameters.update(reach=reach, model=model, day=_day(access_since_us))
        statement = fill(
            _NEIGHBOURS,
            head=_HEAD,
            recent=_RECENT,
            embedded=EMBEDDED,
            scope=condition,
            before=fill(_BESIDE, side="<", order="DESC", scope=opaque(condition)),
            after=fill(_BESIDE, side=">", order="ASC", scope=opaque(condition)),
        )
        rows = await self._pool.read(scope, statement, parameters, deadline_s)
        return [_candidate_from(row) for row in rows]

    async def pending(
        self,
        scope: Scope,
        applied: Mapping[str, int],
        model: str,
        access_since_us: int,
        page_size: int,
        deadline_s: float,
    ) -> Pending:
        """See the port."""
        self._pool.check(deadline_s)
        if not applied or not await self._awaits(scope, list(applied), deadline_s):
            return Pending()
        condition, parameters = in_scope(scope, "m")
        parameters.update(model=model, day=_day(access_since_us), rows=page_size + 1)
        parameters["touched"] = _touched(scope)
        due: list[str] = []
        for number, (index, position) in enumerate(applied.items()):
            parameters.update({f"index{number}": index, f"applied{number}": position})
            due += _due(scope, condition, str(number))
        statement = fill(
            _PENDING, head=_HEAD, recent=_RECENT, embedded=EMBEDDED, due=" UNION ALL ".join(due), scope=condition
        )
        rows = await self._pool.read(scope, statement, parameters, deadline_s)
        return Pending(tuple(_candidate_from(row) for row in rows[:page_size]), len(rows) > page_size)

    async def _awaits(self, scope: Scope, names: list[str], deadline_s: float) -> bool:
        """Whether there may be rows of these indexes in the scope."""
        if scope.system:
            return True
        statement, parameters = fill(_AWAITS, followed=_FOLLOWED), {"touched": _touched(scope), "names": names}
        return bool((await self._pool.read(scope, statement, parameters, deadline_s))[0][0])

    async def history(self, scope: Scope, as_of_us: int, model: str, page_size: int, deadline_s: float) -> Pending:
        """See the port. Both the version and the memory as it stands must lie in the scope."""
        parts, parameters = _both_scopes(scope)
        parameters.update(as_of_us=as_of_us, model=model, rows=page_size + 1)
        rows = await self._pool.read(scope, fill(_HISTORY, **parts), parameters, deadline_s)
        found = tuple(StoredCandidate(memory_from(row), vector_from_blob(row[-1]), 0) for row in rows[:page_size])
        return Pending(found, len(rows) > page_size)


def _both_scopes(scope: Scope) -> tuple[dict[str, str], Parameters]:
    """Head and version lie in the scope: what was private then, or is now, is not shown to readers of shared rows."""
    condition, parameters = in_scope(scope, "m")
    return {"scope": condition, "version_scope": in_scope(scope, "v")[0], "version": _VERSION}, parameters


def _places(memories: Sequence[Memory]) -> Parameters:
    """Where memories stand in their sessions, a list a column."""
    return {
        "spaces": [memory.namespace for memory in memories],
        "sessions": [memory.session_id for memory in memories],
        "sequences": [memory.sequence for memory in memories],
        "times": [memory.create_time_us for memory in memories],
        "ids": [memory.memory_id for memory in memories],
    }


def _touched(scope: Scope) -> list[str]:
    """The namespaces of a scope, each once; none for the system's."""
    return list(dict.fromkeys((*scope.namespaces, *scope.shared)))


def _due(scope: Scope, condition: str, number: str) -> tuple[str, str, str]:
    """What awaits one index. The outbox knows namespaces only; the pool is the memory's to say."""
    parts = {
        "index_id": fill(_INDEX_ID, number=number),
        "outbox_scope": "true" if scope.system else "o.namespace = ANY (%(touched)s::text[])",
        "scope": condition,
        "number": number,
    }
    return fill(_ABOVE, **parts), fill(_FAILED, table="outbox", **parts), fill(_FAILED, table="dead_letters", **parts)


def _day(time_us: int) -> int:
    return time_us // DAY_US


def _candidate_from(row: Row) -> StoredCandidate:
    return StoredCandidate(memory_from(row), vector_from_blob(row[_WIDTH]), row[_WIDTH + 1])
