"""The other writes: erasing, counting accesses, logging searches, embeddings made late.

All of it is the system role's; what a caller may erase is decided in the caller's scope first.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Any, Final

from dataplane.adapters.postgres.arrays import listed
from dataplane.adapters.postgres.clauses import fill, in_scope
from dataplane.adapters.postgres.plan import request_of
from dataplane.adapters.postgres.pool import Connection, Parameters, Pool
from dataplane.adapters.postgres.writes import ADD_TO_OUTBOX, OUTBOX, TAKE_POSITIONS, forget_requests
from dataplane.adapters.record_rows import vector_to_blob
from dataplane.changes import AccessRecord, Erasure, RequestRecord, RetrievalRecord
from dataplane.errors import DuplicateRequest, StaleVersion
from dataplane.model import SYSTEM_SCOPE, Vector

_FIND = (
    "SELECT m.version, m.namespace FROM memplane.memories AS m"
    " WHERE m.memory_id = %(memory_id)s::text AND {scope} FOR UPDATE"
)
_KEEP_REQUEST = """
INSERT INTO memplane.requests (principal_id, request_id, namespace, payload_hash, response, expire_time_us)
VALUES (%(principal_id)s, %(request_id)s, %(namespace)s, %(payload_hash)s, %(response)s, %(expire_time_us)s)
ON CONFLICT (principal_id, request_id) DO NOTHING RETURNING 1"""
# Everything that may hold or betray content of a memory. A stored answer is emptied: its request stays known.
_ERASE: Final = (
    "UPDATE memplane.requests AS r SET response = '' FROM memplane.request_memories AS m"
    " WHERE m.memory_id = %(id)s::text AND r.principal_id = m.principal_id AND r.request_id = m.request_id",
    *(
        fill("DELETE FROM memplane.{table} WHERE {column} = %(id)s::text", table=table, column=column)
        for table, column in (
            ("request_memories", "memory_id"),
            ("memories", "memory_id"),
            ("memory_versions", "memory_id"),
            ("embeddings", "memory_id"),
            ("decisions", "memory_id"),
            ("conflicts", "winner_id"),
            ("conflicts", "loser_id"),
            ("access_buckets", "memory_id"),
            ("retrieval_hits", "memory_id"),
            ("dead_letters", "memory_id"),
        )
    ),
    # What somebody holds, or held, stays: they may yet bring the memory into the index; its removal comes after them.
    "DELETE FROM memplane.outbox WHERE memory_id = %(id)s::text AND lease_owner = '' AND NOT abandoned",
)
_BURY = """
INSERT INTO memplane.tombstones (memory_id, namespace, time_us, principal_id, reason)
VALUES (%(id)s, %(namespace)s, %(time_us)s, %(principal_id)s, %(reason)s)
ON CONFLICT (memory_id) DO UPDATE SET namespace = excluded.namespace, time_us = excluded.time_us,
    principal_id = excluded.principal_id, reason = excluded.reason"""
# strength now = max(0, s − monthly_decay × Δt / 30 d) + n × hit_increment, at most max_strength, for n accesses;
# DESIGN §9: a month is 30 days, decay is continuous from the last anchor. An access older than the anchor does not move
# it back. Rows are locked in the order of their ids, as commits do.
_ACCESS = """
WITH access AS MATERIALIZED (
    SELECT a.* FROM unnest(%(ids)s::text[], %(namespaces)s::text[], %(times)s::bigint[], %(increments)s::float8[],
        %(mosts)s::float8[], %(decays)s::float8[], %(counts)s::bigint[])
        AS a (memory_id, namespace, time_us, hit_increment, max_strength, monthly_decay, count)
    JOIN memplane.memories AS m USING (memory_id, namespace) ORDER BY memory_id FOR UPDATE OF m),
counted AS (
    UPDATE memplane.memories AS m SET
        strength = least(a.max_strength, a.count * a.hit_increment + greatest(0, m.strength
            - a.monthly_decay * greatest(0, a.time_us - m.strength_time_us) / 2592000000000.0::float8)),
        strength_time_us = greatest(m.strength_time_us, a.time_us),
        access_count = m.access_count + a.count,
        last_access_time_us = greatest(m.last_access_time_us, a.time_us)
    FROM access AS a WHERE m.memory_id = a.memory_id
    RETURNING m.memory_id, m.namespace, a.time_us, a.count)
INSERT INTO memplane.access_buckets AS b (memory_id, namespace, day, count)
SELECT memory_id, namespace, floor(time_us / 86400000000.0)::integer, count FROM counted
ON CONFLICT (memory_id, day) DO UPDATE SET count = b.count + excluded.count"""
_LOG_SEARCHES = """
INSERT INTO memplane.retrievals (search_id, namespace, principal_id, time_us, policy_version, query_hash)
SELECT * FROM unnest(%(searches)s::text[], %(namespaces)s::text[], %(principals)s::text[], %(times)s::bigint[],
    %(policies)s::text[], %(hashes)s::text[])
ON CONFLICT DO NOTHING"""
_LOG_HITS = """
INSERT INTO memplane.retrieval_hits (search_id, time_us, rank, namespace, memory_id, score)
SELECT * FROM unnest(%(searches)s::text[], %(times)s::bigint[], %(ranks)s::integer[], %(namespaces)s::text[],
    %(ids)s::text[], %(scores)s::float8[])
ON CONFLICT DO NOTHING"""
_SAVE_EMBEDDING = """
INSERT INTO memplane.embeddings (memory_id, version, model, namespace, pool, vector)
SELECT memory_id, version, %(model)s, namespace, pool, %(vector)s FROM memplane.memory_versions
WHERE memory_id = %(memory_id)s::text AND version = %(version)s::bigint
ON CONFLICT (memory_id, version, model) DO UPDATE SET vector = excluded.vector"""


async def erase(pool: Pool, erasure: Erasure, deadline_s: float) -> int:
    """Removes a memory and leaves a tombstone; the outbox position of its removal. See RecordStore.erase.

    What the table files and the write-ahead log still hold goes with vacuum and the recycling of the log.
    """
    async with pool.transaction(erasure.scope, deadline_s) as connection:
        condition, parameters = in_scope(erasure.scope, "m")
        parameters["memory_id"] = erasure.memory_id
        found = await (await connection.execute(fill(_FIND, scope=condition), parameters)).fetchall()
        standing, namespace = found[0] if found else (0, "")
        if not found or erasure.expected_version not in (0, standing):
            raise StaleVersion(erasure.memory_id, erasure.expected_version, standing)
        await pool.enter(connection, SYSTEM_SCOPE, deadline_s)
        if erasure.request:
            # Before anything goes, so that a repeated request is seen; not linked to the memory, so that it stays.
            await _keep_request(connection, erasure.request, namespace, erasure.now_us)
        return await _remove(connection, erasure, namespace)


async def _keep_request(connection: Connection, request: RequestRecord, namespace: str, now_us: int) -> None:
    principal_id, request_id = request_of(request)
    await connection.execute(*forget_requests([(principal_id, request_id)], now_us))
    row = {
        "principal_id": principal_id,
        "request_id": request_id,
        "namespace": namespace,
        "payload_hash": request.payload_hash,
        "response": request.response,
        "expire_time_us": request.expire_time_us,
    }
    added = await connection.execute(_KEEP_REQUEST, row)
    if await added.fetchone() is None:
        raise DuplicateRequest(request.request_id)


async def _remove(connection: Connection, erasure: Erasure, namespace: str) -> int:
    tombstone = {
        "id": erasure.memory_id,
        "namespace": namespace,
        "time_us": erasure.now_us,
        "principal_id": erasure.principal_id,
        "reason": erasure.reason,
    }
    async with connection.pipeline():
        for statement in _ERASE:
            await connection.execute(statement, {"id": erasure.memory_id})
        await connection.execute(_BURY, tombstone)
        taken = await connection.execute(TAKE_POSITIONS, {"count": 1})
        changed = {"count": 1, **listed(OUTBOX, [(erasure.memory_id, namespace)])}
        await connection.execute(ADD_TO_OUTBOX, changed)
    [(before,)] = await taken.fetchall()
    return int(before) + 1


async def save_embedding(pool: Pool, key: tuple[str, int, str], embedding: Vector, deadline_s: float) -> None:
    """Keeps an embedding by (memory, version, model), the later one of two, if there is such a version."""
    memory_id, version, model = key
    parameters = {"memory_id": memory_id, "version": version, "model": model, "vector": vector_to_blob(embedding)}
    await pool.transact(SYSTEM_SCOPE, [(_SAVE_EMBEDDING, parameters)], deadline_s)


async def record_accesses(pool: Pool, accesses: Sequence[AccessRecord], deadline_s: float) -> None:
    """Counts accesses and anchors the raised strengths; several of one memory count in the order given."""
    queries = [(_ACCESS, _access_rows(once)) for once in _rounds(accesses)]
    if queries:
        await pool.transact(SYSTEM_SCOPE, queries, deadline_s, is_repeatable=False)


def _rounds(accesses: Sequence[AccessRecord]) -> list[list[AccessRecord]]:
    """The accesses in rounds that name each memory once, for one statement changes a row once."""
    numbered: dict[str, int] = {}
    ranked: list[tuple[int, AccessRecord]] = []
    for access in accesses:
        numbered[access.memory_id] = numbered.get(access.memory_id, 0) + 1
        ranked.append((numbered[access.memory_id], access))
    ranked.sort(key=lambda item: item[0])
    return [[access for _, access in group] for _, group in groupby(ranked, key=lambda item: item[0])]


def _access_rows(accesses: Sequence[AccessRecord]) -> Parameters:
    return {
        "ids": [access.memory_id for access in accesses],
        "namespaces": [access.namespace for access in accesses],
        "times": [access.time_us for access in accesses],
        "increments": [access.hit_increment for access in accesses],
        "mosts": [access.max_strength for access in accesses],
        "decays": [access.monthly_decay for access in accesses],
        "counts": [access.count for access in accesses],
    }


async def record_retrievals(pool: Pool, retrievals: Sequence[RetrievalRecord], deadline_s: float) -> None:
    """Appends searches to the log; one that is there already stays as it is."""
    hits = [
        (search, rank, memory_id, score)
        for search in retrievals
        for rank, (memory_id, score) in enumerate(search.hits, start=1)
    ]
    searches: dict[str, Any] = {
        "searches": [search.search_id for search in retrievals],
        "namespaces": [search.namespace for search in retrievals],
        "principals": [search.principal_id for search in retrievals],
        "times": [search.time_us for search in retrievals],
        "policies": [search.policy_version for search in retrievals],
        "hashes": [search.query_hash for search in retrievals],
    }
    ranked: dict[str, Any] = {
        "searches": [search.search_id for search, *_ in hits],
        "times": [search.time_us for search, *_ in hits],
        "ranks": [rank for _, rank, _, _ in hits],
        "namespaces": [search.namespace for search, *_ in hits],
        "ids": [memory_id for _, _, memory_id, _ in hits],
        "scores": [score for *_, score in hits],
    }
    await pool.transact(SYSTEM_SCOPE, [(_LOG_SEARCHES, searches), (_LOG_HITS, ranked)], deadline_s)
