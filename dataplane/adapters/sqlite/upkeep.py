"""The other writes: erasing, counting accesses, logging searches."""

import sqlite3

from dataplane.adapters.record_rows import vector_to_blob
from dataplane.adapters.sqlite.commits import add_to_outbox, find_in_scope, last_position, save_request
from dataplane.changes import AccessRecord, Erasure, RetrievalRecord
from dataplane.errors import StaleVersion
from dataplane.model import DAY_US, Vector

# Everything that may hold or betray content of a memory. A stored answer is emptied: its request stays known.
_ERASE = (
    "UPDATE requests SET response = x'' WHERE (principal_id, request_id) IN"
    " (SELECT principal_id, request_id FROM request_memories WHERE memory_id = ?)",
    "DELETE FROM request_memories WHERE memory_id = ?",
    "DELETE FROM memories WHERE memory_id = ?",
    "DELETE FROM memory_versions WHERE memory_id = ?",
    "DELETE FROM embeddings WHERE memory_id = ?",
    "DELETE FROM decisions WHERE memory_id = ?",
    "DELETE FROM conflicts WHERE winner_id = ?",
    "DELETE FROM conflicts WHERE loser_id = ?",
    "DELETE FROM access_buckets WHERE memory_id = ?",
    "DELETE FROM retrieval_hits WHERE memory_id = ?",
    # What somebody holds, or held, stays: they may yet bring the memory into the index; its removal comes after them.
    "DELETE FROM outbox WHERE memory_id = ? AND lease_owner = '' AND NOT abandoned",
    "DELETE FROM dead_letters WHERE memory_id = ?",
)
# strength now = max(0, s − monthly_decay × Δt / 30 d) + n × hit_increment, at most max_strength, for n accesses;
# DESIGN §9: a month is 30 days, decay is continuous from the last anchor. An access older than the anchor does not move
# it back.
_ACCESS = """
UPDATE memories SET
    strength = min(:max_strength, :count * :hit_increment
        + max(0, strength - :monthly_decay * max(0, :time_us - strength_time_us) / 2592000000000.0)),
    strength_time_us = max(strength_time_us, :time_us),
    access_count = access_count + :count,
    last_access_time_us = max(coalesce(last_access_time_us, :time_us), :time_us)
WHERE memory_id = :memory_id AND namespace = :namespace"""
_COUNT_ACCESS = """
INSERT INTO access_buckets (memory_id, namespace, day, count) VALUES (?, ?, ?, ?)
ON CONFLICT (memory_id, day) DO UPDATE SET count = count + excluded.count"""
_SAVE_EMBEDDING = """
INSERT OR REPLACE INTO embeddings (memory_id, version, model, vector)
SELECT ?, ?, ?, ? WHERE EXISTS (SELECT 1 FROM memory_versions WHERE memory_id = ? AND version = ?)"""


def erase(connection: sqlite3.Connection, erasure: Erasure) -> int:
    """Removes a memory and leaves a tombstone; the outbox position of its removal. See RecordStore.erase.

    With `secure_delete` its rows are overwritten; what the write-ahead log and gaps of pages hold goes when the writer
    empties the log after this, see `log`.
    """
    memory_id = erasure.memory_id
    current = find_in_scope(connection, erasure.scope, memory_id)
    standing = current.version if current else 0
    if current is None or erasure.expected_version not in (0, standing):
        raise StaleVersion(memory_id, erasure.expected_version, standing)
    if erasure.request:
        # Before anything goes, so that a repeated request is seen; not linked to the memory, so that it stays.
        save_request(connection, erasure.request, current.namespace, erasure.now_us, frozenset())
    for statement in _ERASE:
        connection.execute(statement, (memory_id,))
    connection.execute(
        "INSERT OR REPLACE INTO tombstones (memory_id, namespace, time_us, principal_id, reason)"
        " VALUES (?, ?, ?, ?, ?)",
        (memory_id, current.namespace, erasure.now_us, erasure.principal_id, erasure.reason),
    )
    add_to_outbox(connection, memory_id, current.namespace)
    return last_position(connection)


def save_embedding(connection: sqlite3.Connection, key: tuple[str, int, str], embedding: Vector) -> None:
    """Keeps an embedding by (memory, version, model), the later one of two, if there is such a version."""
    connection.execute(_SAVE_EMBEDDING, (*key, vector_to_blob(embedding), *key[:2]))


def record_accesses(connection: sqlite3.Connection, accesses: list[AccessRecord]) -> None:
    """Counts accesses and anchors the raised strengths."""
    for access in accesses:
        parameters = {
            "max_strength": access.max_strength,
            "hit_increment": access.hit_increment,
            "monthly_decay": access.monthly_decay,
            "time_us": access.time_us,
            "count": access.count,
            "memory_id": access.memory_id,
            "namespace": access.namespace,
        }
        if connection.execute(_ACCESS, parameters).rowcount:
            bucket = (access.memory_id, access.namespace, access.time_us // DAY_US, access.count)
            connection.execute(_COUNT_ACCESS, bucket)


def record_retrievals(connection: sqlite3.Connection, retrievals: list[RetrievalRecord]) -> None:
    """Appends searches to the log; one that is there already stays as it is."""
    connection.executemany(
        "INSERT OR IGNORE INTO retrievals (search_id, namespace, principal_id, time_us, policy_version, query_hash)"
        " VALUES (?, ?, ?, ?, ?, ?)",
        [
            (item.search_id, item.namespace, item.principal_id, item.time_us, item.policy_version, item.query_hash)
            for item in retrievals
        ],
    )
    connection.executemany(
        "INSERT OR IGNORE INTO retrieval_hits (search_id, rank, memory_id, score) VALUES (?, ?, ?, ?)",
        [
            (item.search_id, rank, memory_id, score)
            for item in retrievals
            for rank, (memory_id, score) in enumerate(item.hits, start=1)
        ],
    )
