"""One Commit as statements, within a savepoint of the writer.

Order: the request (a repeated one stops here), the superseded memories (so that their fact key is free), the memory,
its logs. Whatever is raised on the way undoes all of it.
"""

import sqlite3
from typing import Final

from dataplane.adapters.record_rows import COLUMNS, columns, memory_from, values_of, vector_to_blob
from dataplane.adapters.record_rules import FieldsOf, reinforced, spoken_of, superseded
from dataplane.adapters.sqlite.clauses import NOW_US, fill, in_scope
from dataplane.adapters.sqlite.rows import fields_to_json
from dataplane.adapters.sqlite.writer import savepoint
from dataplane.changes import Change, Commit, RequestRecord, Supersession
from dataplane.errors import DuplicateContent, DuplicateFact, DuplicateRequest, StaleVersion
from dataplane.model import Memory, Scope, State
from dataplane.ports import CommitResult

REFUSALS = (DuplicateContent, DuplicateFact, DuplicateRequest, StaleVersion)

_NAMES: Final = ", ".join(COLUMNS)
_MARKS: Final = ", ".join("?" * len(COLUMNS))
_SETS: Final = ", ".join(f"{name} = ?" for name in COLUMNS)
_INSERT = fill("INSERT INTO memories ({names}, fields) VALUES ({marks}, ?)", names=_NAMES, marks=_MARKS)
_UPDATE = fill("UPDATE memories SET {sets}, fields = ? WHERE memory_id = ?", sets=_SETS)
_REINFORCE = """
UPDATE memories SET state = ?, valid_to_us = ?, superseded_by_id = ?, strength = ?, strength_time_us = ?,
    access_count = ?, last_access_time_us = ?, fields = ?
WHERE memory_id = ?"""
_INSERT_VERSION = fill(
    "INSERT INTO memory_versions ({names}, record_time_us, principal_id, change, reason) VALUES ({marks}, ?, ?, ?, ?)",
    names=_NAMES,
    marks=_MARKS,
)
_INSERT_DECISION = """
INSERT INTO decisions (namespace, memory_id, time_us, principal_id, action, score, policy_version, payload)
VALUES (?, ?, ?, ?, ?, ?, ?, ?)"""
_SELECT = fill("SELECT {columns} FROM memories AS m WHERE m.memory_id = :memory_id AND ", columns=columns("m"))
_NEXT_POSITION = "UPDATE last_position SET position = position + 1"
_ADD_TO_OUTBOX = fill(
    "INSERT INTO outbox (index_id, position, memory_id, namespace, time_us)"
    " SELECT i.index_id, l.position, ?, ?, {now} FROM indexes AS i, last_position AS l",
    now=NOW_US,
)
_SAME_ID = "SELECT 1 FROM memories WHERE memory_id = ?"
_SAME_STATEMENT = """
SELECT memory_id FROM memories
WHERE state = 1 AND namespace = ? AND subject_id = ? AND kind = ? AND statement_key = ? AND memory_id <> ?"""
_SAME_FACT = """
SELECT memory_id FROM memories
WHERE state = 1 AND fact_key <> '' AND namespace = ? AND subject_id = ? AND fact_key = ? AND memory_id <> ?"""


def commit(connection: sqlite3.Connection, commits: list[Commit], fields_of: FieldsOf) -> list[CommitResult]:
    """Stores each commit or refuses it, in order."""
    return [_commit_or_refuse(connection, item, fields_of) for item in commits]


def _commit_or_refuse(connection: sqlite3.Connection, commit: Commit, fields_of: FieldsOf) -> CommitResult:
    try:
        with savepoint(connection):
            return CommitResult(position=_store(connection, commit, fields_of))
    except REFUSALS as refusal:
        return CommitResult(error=refusal)


def _store(connection: sqlite3.Connection, commit: Commit, fields_of: FieldsOf) -> int:
    if commit.request:
        save_request(connection, commit.request, commit.namespace, commit.now_us, spoken_of(commit))
    for supersession in commit.supersedes:
        _supersede(connection, commit, supersession, fields_of)
    if commit.memory:
        _store_memory(connection, commit, commit.memory, fields_of)
    _log(connection, commit)
    return last_position(connection)


def save_request(
    connection: sqlite3.Connection, request: RequestRecord, namespace: str, now_us: int, memory_ids: frozenset[str]
) -> None:
    """Keeps the first answer to a request, and lets expired ones go. Raises DuplicateRequest."""
    connection.execute("DELETE FROM requests WHERE expire_time_us <= ?", (now_us,))
    key = (request.principal_id, request.request_id)
    added = connection.execute(
        "INSERT INTO requests (principal_id, request_id, namespace, payload_hash, response, expire_time_us)"
        " VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (*key, namespace, request.payload_hash, request.response, request.expire_time_us),
    )
    if not added.rowcount:
        raise DuplicateRequest(request.request_id)
    connection.executemany(
        "INSERT INTO request_memories (memory_id, principal_id, request_id) VALUES (?, ?, ?)",
        [(memory_id, *key) for memory_id in sorted(memory_ids)],
    )


def find_in_scope(connection: sqlite3.Connection, scope: Scope, memory_id: str) -> Memory | None:
    """The memory as it stands; None when it is not there or outside the scope."""
    condition, parameters = in_scope(scope, "m")
    row = connection.execute(_SELECT + condition, {**parameters, "memory_id": memory_id}).fetchone()
    return memory_from(row) if row else None


def _supersede(connection: sqlite3.Connection, commit: Commit, supersession: Supersession, fields_of: FieldsOf) -> None:
    memory_id, expected = supersession.memory_id, supersession.expected_version
    current = find_in_scope(connection, commit.scope, memory_id)
    if current is None or current.version != expected or current.state is not State.ACTIVE:
        raise StaleVersion(memory_id, expected, current.version if current else 0)
    loser = superseded(current, supersession, commit)
    _update(connection, loser, fields_of)
    _add_version(connection, loser, commit, Change.SUPERSEDED)
    add_to_outbox(connection, loser.memory_id, loser.namespace)


def _store_memory(connection: sqlite3.Connection, commit: Commit, asked: Memory, fields_of: FieldsOf) -> None:
    current = _standing(connection, commit, asked)
    added = asked.version > commit.expected_version
    memory = reinforced(current, asked) if current and not added else asked
    try:
        _write_row(connection, memory, current, fields_of)
    except sqlite3.IntegrityError:
        _raise_duplicate(connection, memory, commit.expected_version)
        raise
    if added:
        _add_version(connection, memory, commit, commit.change)
    changed = added or current is None or memory.state is not current.state
    if _embed(connection, commit, memory) or changed:
        add_to_outbox(connection, memory.memory_id, memory.namespace)


def _standing(connection: sqlite3.Connection, commit: Commit, memory: Memory) -> Memory | None:
    """The row that a commit changes, None for a new memory. Raises StaleVersion when it is not as expected."""
    current = find_in_scope(connection, commit.scope, memory.memory_id)
    if current and current.namespace != memory.namespace:
        raise StaleVersion(memory.memory_id, commit.expected_version, 0)
    standing = current.version if current else 0
    if standing != commit.expected_version:
        raise StaleVersion(memory.memory_id, commit.expected_version, standing)
    return current


def _write_row(connection: sqlite3.Connection, memory: Memory, current: Memory | None, fields_of: FieldsOf) -> None:
    if current is None:
        connection.execute(_INSERT, (*values_of(memory), fields_to_json(fields_of(memory))))
    elif memory.version > current.version:
        _update(connection, memory, fields_of)
    else:
        _reinforce(connection, memory, fields_of)


def _update(connection: sqlite3.Connection, memory: Memory, fields_of: FieldsOf) -> None:
    connection.execute(_UPDATE, (*values_of(memory), fields_to_json(fields_of(memory)), memory.memory_id))


def _reinforce(connection: sqlite3.Connection, memory: Memory, fields_of: FieldsOf) -> None:
    changing = (
        memory.state,
        memory.valid_to_us,
        memory.superseded_by_id,
        memory.strength,
        memory.strength_time_us,
        memory.access_count,
        memory.last_access_time_us,
    )
    connection.execute(_REINFORCE, (*changing, fields_to_json(fields_of(memory)), memory.memory_id))


def _raise_duplicate(connection: sqlite3.Connection, memory: Memory, expected_version: int) -> None:
    """Names the row that stands in the way; returns when none does."""
    if not expected_version and connection.execute(_SAME_ID, (memory.memory_id,)).fetchone():
        raise StaleVersion(memory.memory_id, expected_version, 0)  # its id is taken outside the scope
    place = (memory.namespace, memory.subject_id)
    said = (*place, memory.kind, memory.statement_key, memory.memory_id)
    row = connection.execute(_SAME_STATEMENT, said).fetchone()
    if row:
        raise DuplicateContent(row[0])
    row = connection.execute(_SAME_FACT, (*place, memory.fact_key, memory.memory_id)).fetchone()
    if row:
        raise DuplicateFact(row[0])


def _add_version(connection: sqlite3.Connection, memory: Memory, commit: Commit, change: Change) -> None:
    recorded = (commit.now_us, commit.principal_id, change.value, commit.reason)
    connection.execute(_INSERT_VERSION, (*values_of(memory), *recorded))


def _embed(connection: sqlite3.Connection, commit: Commit, memory: Memory) -> bool:
    """Keeps the commit's embedding; True when there was none of this version and model before."""
    if commit.embedding is None:
        return False
    added = connection.execute(
        "INSERT INTO embeddings (memory_id, version, model, vector) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        (memory.memory_id, memory.version, commit.embedding_model, vector_to_blob(commit.embedding)),
    )
    return added.rowcount > 0


def _log(connection: sqlite3.Connection, commit: Commit) -> None:
    if decision := commit.decision:
        connection.execute(
            _INSERT_DECISION,
            (
                commit.namespace,
                commit.memory.memory_id if commit.memory else None,
                commit.now_us,
                commit.principal_id,
                decision.action,
                decision.score,
                decision.policy_version,
                decision.payload,
            ),
        )
    connection.executemany(
        "INSERT INTO conflicts (namespace, time_us, winner_id, loser_id, fact_key, similarity, rule)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            (commit.namespace, commit.now_us, item.winner_id, item.loser_id, item.fact_key, item.similarity, item.rule)
            for item in commit.conflicts
        ],
    )


def add_to_outbox(connection: sqlite3.Connection, memory_id: str, namespace: str) -> None:
    """Has every registered index follow a memory, at the next position."""
    connection.execute(_NEXT_POSITION)
    connection.execute(_ADD_TO_OUTBOX, (memory_id, namespace))


def last_position(connection: sqlite3.Connection) -> int:
    """The newest outbox position ever given; 0 when there is none."""
    (position,) = connection.execute("SELECT position FROM last_position").fetchone()
    return int(position)
