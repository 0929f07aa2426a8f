"""What stands in the store of the keys that a batch of commits can meet, in one round trip.

Keys are unique over all namespaces, and are looked up by the system role: what comes of it is ids alone. Memories are
read (and held until the transaction ends) in the scope of the batch.
"""

from collections.abc import Callable, Sequence
from typing import Final

from psycopg import AsyncCursor

from dataplane.adapters.postgres.arrays import Encoders, listed, smallints, texts
from dataplane.adapters.postgres.clauses import Parameters, fill
from dataplane.adapters.postgres.plan import Keys, Standing
from dataplane.adapters.postgres.pool import Connection, Pool, Row
from dataplane.adapters.record_rows import columns, memory_from
from dataplane.model import SYSTEM_SCOPE, Kind, Scope

Query = tuple[str, Parameters, Callable[[Standing, Sequence[Row]], None]]

_TAKEN = "SELECT memory_id FROM memplane.memories WHERE memory_id = ANY (%(ids)s)"
_STATEMENTS = """
SELECT namespace, subject_id, kind, statement_key, memory_id FROM memplane.memories
JOIN unnest(%(namespaces)s, %(subjects)s, %(kinds)s, %(keys)s)
    AS k (namespace, subject_id, kind, statement_key) USING (namespace, subject_id, kind, statement_key)
WHERE state = 1"""
_FACTS = """
SELECT namespace, subject_id, fact_key, memory_id FROM memplane.memories
JOIN unnest(%(namespaces)s, %(subjects)s, %(keys)s) AS k (namespace, subject_id, fact_key)
    USING (namespace, subject_id, fact_key)
WHERE state = 1 AND fact_key <> ''"""
# A memory that becomes ACTIVE again keeps its own keys.
_OWN_STATEMENTS = """
SELECT o.namespace, o.subject_id, o.kind, o.statement_key, o.memory_id
FROM memplane.memories AS m JOIN memplane.memories AS o USING (namespace, subject_id, kind, statement_key)
WHERE m.memory_id = ANY (%(ids)s) AND o.state = 1"""
_OWN_FACTS = """
SELECT o.namespace, o.subject_id, o.fact_key, o.memory_id
FROM memplane.memories AS m JOIN memplane.memories AS o USING (namespace, subject_id, fact_key)
WHERE m.memory_id = ANY (%(ids)s) AND o.state = 1 AND o.fact_key <> ''"""
_REQUESTS = """
SELECT principal_id, request_id, expire_time_us FROM memplane.requests
JOIN unnest(%(principals)s, %(requests)s) AS k (principal_id, request_id)
    USING (principal_id, request_id)"""
_EMBEDDED = "SELECT memory_id, version, model FROM memplane.embeddings WHERE memory_id = ANY (%(ids)s)"
_ROWS = fill(
    "SELECT {head} FROM memplane.memories AS m WHERE m.memory_id = ANY (%(ids)s) ORDER BY m.memory_id FOR UPDATE",
    head=columns("m"),
)
_STATEMENT: Final[Encoders] = {"namespaces": texts, "subjects": texts, "kinds": smallints, "keys": texts}
_FACT: Final[Encoders] = {"namespaces": texts, "subjects": texts, "keys": texts}
_REQUEST: Final[Encoders] = {"principals": texts, "requests": texts}


async def look_up(connection: Connection, pool: Pool, keys: Keys, scope: Scope, deadline_s: float) -> Standing:
    """Begins a transaction, leaves it in the scope, and returns what stands there."""
    queries = list(_keyed(keys))
    cursors: list[AsyncCursor[Row]] = []
    async with connection.pipeline():
        await connection.execute("BEGIN")
        await pool.enter(connection, SYSTEM_SCOPE, deadline_s)
        for statement, parameters, _ in queries:
            cursors.append(await _execute(connection, statement, parameters))
        await pool.enter(connection, scope, deadline_s)
        if keys.memory_ids:
            cursors.append(await _execute(connection, _ROWS, {"ids": texts(keys.memory_ids)}))
            queries.append((_ROWS, {}, _note_rows))
    standing = Standing()
    for cursor, (_, _, note) in zip(cursors, queries, strict=True):
        note(standing, await cursor.fetchall())
    return standing


async def _execute(connection: Connection, statement: str, parameters: Parameters) -> AsyncCursor[Row]:
    cursor = connection.cursor(binary=True)
    return await cursor.execute(statement, parameters)


def _keyed(keys: Keys) -> list[Query]:
    queries: list[Query] = []
    if keys.memory_ids:
        queries.append((_TAKEN, {"ids": texts(keys.memory_ids)}, _note_taken))
    if keys.statements:
        queries.append((_STATEMENTS, listed(_STATEMENT, keys.statements), _note_statements))
    if keys.facts:
        queries.append((_FACTS, listed(_FACT, keys.facts), _note_facts))
    if keys.requests:
        queries.append((_REQUESTS, listed(_REQUEST, keys.requests), _note_requests))
    if keys.standing_ids:
        standing = {"ids": texts(keys.standing_ids)}
        queries.append((_OWN_STATEMENTS, standing, _note_statements))
        queries.append((_OWN_FACTS, standing, _note_facts))
        queries.append((_EMBEDDED, standing, _note_embedded))
    return queries


def _note_taken(standing: Standing, rows: Sequence[Row]) -> None:
    standing.taken.update(row[0] for row in rows)


def _note_statements(standing: Standing, rows: Sequence[Row]) -> None:
    for namespace, subject_id, kind, key, memory_id in rows:
        standing.statements[namespace, subject_id, Kind(kind), key] = memory_id


def _note_facts(standing: Standing, rows: Sequence[Row]) -> None:
    for namespace, subject_id, key, memory_id in rows:
        standing.facts[namespace, subject_id, key] = memory_id


def _note_requests(standing: Standing, rows: Sequence[Row]) -> None:
    for principal_id, request_id, expire_time_us in rows:
        standing.requests[principal_id, request_id] = expire_time_us


def _note_embedded(standing: Standing, rows: Sequence[Row]) -> None:
    standing.embedded.update((memory_id, version, model) for memory_id, version, model in rows)


def _note_rows(standing: Standing, rows: Sequence[Row]) -> None:
    standing.rows.update((row[0], memory_from(row)) for row in rows)
