"""A plan as statements: one for each table, however many rows, in one round trip with COMMIT.

COPY is not for tables with row-level security; arrays unnested by the server come close to it. The counter of positions
is taken last, so that its lock, which orders the commits of all processes, is held for the shortest time. The list of
indexes is read after that in a statement of its own, so that it is the one that `register_index` left.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from dataplane.adapters.postgres.arrays import Encoders, bigints, byteas, floats, listed, smallints, texts
from dataplane.adapters.postgres.clauses import Parameters, fields_to_json, fill
from dataplane.adapters.postgres.plan import Plan, VersionRow
from dataplane.adapters.postgres.pool import Connection, Pool
from dataplane.adapters.record_rows import COLUMNS, values_of, vector_to_blob
from dataplane.adapters.record_rules import FieldsOf
from dataplane.model import SYSTEM_SCOPE, Memory, Scope, State

Query = tuple[str, Parameters]

_COLUMNS: Final[Encoders] = {
    **dict.fromkeys(COLUMNS, texts),
    **dict.fromkeys(("kind", "layer", "state", "pool", "source_type"), smallints),
    **dict.fromkeys(("confidence", "strength"), floats),
    **dict.fromkeys(("version", "access_count", "sequence"), bigints),
    **{name: bigints for name in COLUMNS if name.endswith("_time_us") or name in ("valid_from_us", "valid_to_us")},
    "body": byteas,
}
_NAMES: Final = ", ".join(COLUMNS)
_UNNESTED: Final = ", ".join(f"%({name})s" for name in COLUMNS)

_INSERT = fill(
    "INSERT INTO memplane.memories ({names}, fields) SELECT {names}, fields::jsonb"
    " FROM unnest({unnested}, %(fields)s) AS t ({names}, fields)",
    names=_NAMES,
    unnested=_UNNESTED,
)
_UPDATE = fill(
    "UPDATE memplane.memories AS m SET {sets}, fields = t.fields::jsonb"
    " FROM unnest({unnested}, %(fields)s) AS t ({names}, fields) WHERE m.memory_id = t.memory_id",
    names=_NAMES,
    unnested=_UNNESTED,
    sets=", ".join(f"{name} = t.{name}" for name in COLUMNS[1:]),
)
_INSERT_VERSIONS = fill(
    "INSERT INTO memplane.memory_versions ({names}, record_time_us, principal_id, change, reason)"
    " SELECT * FROM unnest({unnested}, %(record_time_us)s, %(principal_id)s, %(change)s,"
    " %(reason)s)",
    names=_NAMES,
    unnested=_UNNESTED,
)
_INSERT_EMBEDDINGS = """
INSERT INTO memplane.embeddings (memory_id, version, model, namespace, pool, vector)
SELECT * FROM unnest(%(ids)s, %(versions)s, %(models)s, %(namespaces)s,
    %(pools)s, %(vectors)s)"""
_FORGET_REQUESTS = """
WITH oldest AS MATERIALIZED (SELECT principal_id, request_id FROM memplane.requests
    WHERE expire_time_us <= %(now_us)s ORDER BY expire_time_us LIMIT 500 FOR UPDATE SKIP LOCKED),
gone AS (DELETE FROM memplane.requests AS r
    USING (SELECT * FROM oldest UNION SELECT * FROM unnest(%(principals)s, %(requests)s))
        AS k (principal_id, request_id)
    WHERE r.principal_id = k.principal_id AND r.request_id = k.request_id AND r.expire_time_us <= %(now_us)s
    RETURNING r.principal_id, r.request_id)
DELETE FROM memplane.request_memories AS m USING gone
WHERE m.principal_id = gone.principal_id AND m.request_id = gone.request_id"""
_INSERT_REQUESTS = """
INSERT INTO memplane.requests (principal_id, request_id, namespace, payload_hash, response, expire_time_us)
SELECT * FROM unnest(%(principals)s, %(requests)s, %(namespaces)s, %(hashes)s,
    %(responses)s, %(expire_times)s)"""
_INSERT_REQUEST_MEMORIES = """
INSERT INTO memplane.request_memories (memory_id, principal_id, request_id, namespace)
SELECT * FROM unnest(%(ids)s, %(principals)s, %(requests)s, %(namespaces)s)"""
_INSERT_DECISIONS = """
INSERT INTO memplane.decisions (namespace, memory_id, time_us, principal_id, action, score, policy_version, payload)
SELECT * FROM unnest(%(namespaces)s, %(ids)s, %(times)s, %(principals)s,
    %(actions)s, %(scores)s, %(policies)s, %(payloads)s)"""
_INSERT_CONFLICTS = """
INSERT INTO memplane.conflicts (namespace, time_us, winner_id, loser_id, fact_key, similarity, rule)
SELECT * FROM unnest(%(namespaces)s, %(times)s, %(winners)s, %(losers)s,
    %(facts)s, %(similarities)s, %(rules)s)"""
TAKE_POSITIONS = """
UPDATE memplane.last_position SET position = position + %(count)s::bigint RETURNING position - %(count)s::bigint"""
"""The newest position before; from now on no other transaction commits a change before this one."""
ADD_TO_OUTBOX = """
INSERT INTO memplane.outbox (index_id, position, memory_id, namespace, time_us)
SELECT i.index_id, l.position - %(count)s::bigint + c.number, c.memory_id, c.namespace, (SELECT memplane.now_us())
FROM memplane.last_position AS l, memplane.indexes AS i,
    unnest(%(ids)s, %(namespaces)s) WITH ORDINALITY AS c (memory_id, namespace, number)"""
_VERSIONS: Final[Encoders] = {"record_time_us": bigints, "principal_id": texts, "change": texts, "reason": texts}
_EMBEDDINGS: Final[Encoders] = {
    "ids": texts,
    "versions": bigints,
    "models": texts,
    "namespaces": texts,
    "pools": smallints,
    "vectors": byteas,
}
_REQUESTS: Final[Encoders] = {
    "principals": texts,
    "requests": texts,
    "namespaces": texts,
    "hashes": texts,
    "responses": byteas,
    "expire_times": bigints,
}
_REQUEST_MEMORIES: Final[Encoders] = {"ids": texts, "principals": texts, "requests": texts, "namespaces": texts}
_DECISIONS: Final[Encoders] = {
    "namespaces": texts,
    "ids": texts,
    "times": bigints,
    "principals": texts,
    "actions": smallints,
    "scores": floats,
    "policies": texts,
    "payloads": byteas,
}
_CONFLICTS: Final[Encoders] = {
    "namespaces": texts,
    "times": bigints,
    "winners": texts,
    "losers": texts,
    "facts": texts,
    "similarities": floats,
    "rules": texts,
}
OUTBOX: Final[Encoders] = {"ids": texts, "namespaces": texts}
"""The columns of ADD_TO_OUTBOX."""

_LAST_POSITION = "SELECT position FROM memplane.last_position"


async def write(
    connection: Connection, pool: Pool, plan: Plan, scope: Scope, fields_of: FieldsOf, deadline_s: float
) -> int:
    """Writes the plan, commits, and returns the newest position before. The transaction stands in the scope."""
    async with connection.pipeline():
        if plan.expired_us is not None:
            await pool.enter(connection, SYSTEM_SCOPE, deadline_s)
            await connection.execute(*forget_requests(plan.requests, plan.expired_us))
            await pool.enter(connection, scope, deadline_s)
        for statement, parameters in (*_memories(plan, fields_of), *_logs(plan)):
            await connection.execute(statement, parameters)
        count = len(plan.outbox)
        counter = await connection.execute(TAKE_POSITIONS if count else _LAST_POSITION, {"count": count})
        if plan.outbox:
            await connection.execute(ADD_TO_OUTBOX, {"count": count, **listed(OUTBOX, plan.outbox)})
        await connection.execute("COMMIT")
    [(before,)] = await counter.fetchall()
    return int(before)


def _memories(plan: Plan, fields_of: FieldsOf) -> list[Query]:
    """Rows that free a unique key come before those that may take it."""
    freeing = [memory for memory in plan.updated.values() if memory.state is not State.ACTIVE]
    others = [memory for memory in plan.updated.values() if memory.state is State.ACTIVE]
    queries = [(_UPDATE, _rows(memories, fields_of)) for memories in (freeing, others) if memories]
    rows: Parameters = {}
    inserted = list(plan.inserted.values())
    if inserted:
        rows = _rows(inserted, fields_of)
        queries.append((_INSERT, rows))
    if plan.versions:
        # New memories alone: their versions are the same columns.
        is_same = [row.memory for row in plan.versions] == inserted
        heads = {name: rows[name] for name in COLUMNS} if is_same else _heads([row.memory for row in plan.versions])
        queries.append((_INSERT_VERSIONS, {**heads, **_version_logs(plan.versions)}))
    if plan.embeddings:
        embedded = [
            (memory.memory_id, memory.version, model, memory.namespace, memory.pool, vector_to_blob(vector))
            for memory, model, vector in plan.embeddings
        ]
        queries.append((_INSERT_EMBEDDINGS, listed(_EMBEDDINGS, embedded)))
    return queries


def _rows(memories: Sequence[Memory], fields_of: FieldsOf) -> Parameters:
    return {**_heads(memories), "fields": texts([fields_to_json(fields_of(memory)) for memory in memories])}


def _heads(memories: Sequence[Memory]) -> Parameters:
    return listed(_COLUMNS, [values_of(memory) for memory in memories])


def _version_logs(versions: Sequence[VersionRow]) -> Parameters:
    logged = [(row.commit.now_us, row.commit.principal_id, row.change.value, row.commit.reason) for row in versions]
    return listed(_VERSIONS, logged)


def forget_requests(keys: Iterable[tuple[str, str]], now_us: int) -> Query:
    """Lets these requests go, and the oldest others, as far as they expired by `now_us`."""
    pairs = list(keys)
    return _FORGET_REQUESTS, {
        "now_us": now_us,
        "principals": texts([principal_id for principal_id, _ in pairs]),
        "requests": texts([request_id for _, request_id in pairs]),
    }


def _logs(plan: Plan) -> list[Query]:
    queries: list[Query] = []
    if plan.requests:
        queries.append((_INSERT_REQUESTS, _request_rows(plan)))
    named = [
        (memory_id, *key, row.namespace) for key, row in plan.requests.items() for memory_id in sorted(row.memory_ids)
    ]
    if named:
        queries.append((_INSERT_REQUEST_MEMORIES, listed(_REQUEST_MEMORIES, named)))
    if plan.decisions:
        queries.append((_INSERT_DECISIONS, _decision_rows(plan)))
    if plan.conflicts:
        queries.append((_INSERT_CONFLICTS, _conflict_rows(plan)))
    return queries


def _request_rows(plan: Plan) -> Parameters:
    return listed(
        _REQUESTS,
        [
            (*key, row.namespace, row.record.payload_hash, row.record.response, row.record.expire_time_us)
            for key, row in plan.requests.items()
        ],
    )


def _decision_rows(plan: Plan) -> Parameters:
    return listed(
        _DECISIONS,
        [
            (
                commit.namespace,
                commit.memory.memory_id if commit.memory else None,
                commit.now_us,
                commit.principal_id,
                decision.action,
                decision.score,
                decision.policy_version,
                decision.payload,
            )
            for commit, decision in plan.decisions
        ],
    )


def _conflict_rows(plan: Plan) -> Parameters:
    return listed(
        _CONFLICTS,
        [
            (commit.namespace, commit.now_us, item.winner_id, item.loser_id, item.fact_key, item.similarity, item.rule)
            for commit, item in plan.conflicts
        ],
    )
