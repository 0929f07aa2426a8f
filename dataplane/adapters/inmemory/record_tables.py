"""The tables of the in-memory record store, and its two writes that must be atomic: commit and erase.

Both work on a copy of the tables, which the store takes over when they succeed.
"""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, fields, replace

from dataplane.adapters.record_rules import reinforced, spoken_of, superseded
from dataplane.changes import (
    AccessRecord,
    Change,
    Commit,
    ConflictRecord,
    DecisionRecord,
    Erasure,
    MemoryVersion,
    OperationRecord,
    RequestRecord,
    RetrievalRecord,
    Supersession,
)
from dataplane.errors import DuplicateContent, DuplicateFact, DuplicateRequest, StaleVersion
from dataplane.logic.strength import after_hit
from dataplane.model import Memory, Scope, State, Vector
from memplane.policy.model import DecayPolicy


@dataclass(frozen=True, slots=True)
class StoredRequest:
    """An answer, the namespace it belongs to, and the memories it may name."""

    record: RequestRecord
    namespace: str
    memory_ids: frozenset[str]


@dataclass(frozen=True, slots=True)
class Waiting:
    """An outbox row: a change of a memory at `time_us` of the store's clock.

    It is offered from `due_time_us` on; while somebody holds it (`owner`), that is when the lease ends. A row that was
    given up has a `dead_time_us`. `abandoned`: somebody held it and did not settle it.
    """

    position: int
    memory_id: str
    namespace: str
    time_us: int
    owner: str = ""
    due_time_us: int = 0
    attempts: int = 0
    reason: str = ""
    dead_time_us: int | None = None
    abandoned: bool = False


@dataclass(frozen=True, slots=True)
class Doubt:
    """A memory of which something old may yet reach an index; when it is to be applied once more."""

    namespace: str
    due_time_us: int


@dataclass(slots=True)
class Tables:
    """Everything that is stored, and the time of the store's clock.

    `doubts` are kept by index and memory id.
    `indexes` are those that follow, each with when it was seen last; `outbox` is what awaits them, by index and
    position, the older positions first.
    """

    memories: dict[str, Memory] = field(default_factory=dict)
    versions: dict[str, tuple[MemoryVersion, ...]] = field(default_factory=dict)
    embeddings: dict[tuple[str, int, str], Vector] = field(default_factory=dict)
    time_us: int = 0
    last_position: int = 0
    indexes: dict[str, int] = field(default_factory=dict)
    outbox: dict[tuple[str, int], Waiting] = field(default_factory=dict)
    doubts: dict[tuple[str, str], Doubt] = field(default_factory=dict)
    markers: dict[str, int] = field(default_factory=dict)
    operations: dict[str, OperationRecord] = field(default_factory=dict)
    decisions: list[tuple[str | None, DecisionRecord]] = field(default_factory=list)
    conflicts: list[ConflictRecord] = field(default_factory=list)
    requests: dict[tuple[str, str], StoredRequest] = field(default_factory=dict)
    retrievals: dict[str, RetrievalRecord] = field(default_factory=dict)
    accesses: dict[tuple[str, int], int] = field(default_factory=dict)
    tombstones: dict[str, Erasure] = field(default_factory=dict)


def beside(memories: Sequence[Memory], wanted: Sequence[Memory], reach: int) -> list[Memory]:
    """Those at most so many places before or after any of the wanted in its session, each once."""
    found = (each for memory in wanted for each in _beside(memories, memory, reach))
    return list({memory.memory_id: memory for memory in found}.values())


def _beside(memories: Sequence[Memory], memory: Memory, reach: int) -> list[Memory]:
    session = [m for m in memories if m.session_id and (m.namespace, m.session_id) == _session(memory)]
    session.sort(key=_place)
    before = [each for each in session if _place(each) < _place(memory)]
    after = [each for each in session if _place(each) > _place(memory)]
    return before[max(0, len(before) - reach) :] + after[:reach]


def _session(memory: Memory) -> tuple[str, str]:
    return memory.namespace, memory.session_id


def _place(memory: Memory) -> tuple[int, int, str]:
    return memory.sequence, memory.create_time_us, memory.memory_id


def find(tables: Tables, scope: Scope, memory_id: str) -> Memory | None:
    """The memory as it stands; None when it is not there or outside the scope."""
    memory = tables.memories.get(memory_id)
    return memory if memory and scope.covers(memory.namespace, memory.pool) else None


def copy_of(tables: Tables) -> Tables:
    """Tables to change without touching the first ones; what they hold is immutable."""
    return Tables(**{part.name: copy(getattr(tables, part.name)) for part in fields(Tables)})


def commit(tables: Tables, item: Commit) -> int:
    """Stores a commit and returns its position. Raises the port's refusals, leaving the tables half changed."""
    if item.request:
        save_request(tables, item.request, item.namespace, item.now_us, spoken_of(item))
    for supersession in item.supersedes:
        _supersede(tables, item, supersession)
    if item.memory:
        _store_memory(tables, item, item.memory)
    if item.decision:
        tables.decisions.append((item.memory.memory_id if item.memory else None, item.decision))
    tables.conflicts.extend(item.conflicts)
    return tables.last_position


def _check_unique(tables: Tables, memory: Memory) -> None:
    place = (memory.namespace, memory.subject_id)
    others = [
        other
        for other in tables.memories.values()
        if other.state is State.ACTIVE
        and (other.namespace, other.subject_id) == place
        and other.memory_id != memory.memory_id
    ]
    for other in others:
        if (other.kind, other.statement_key) == (memory.kind, memory.statement_key):
            raise DuplicateContent(other.memory_id)
    for other in others:
        if memory.fact_key and other.fact_key == memory.fact_key:
            raise DuplicateFact(other.memory_id)


def save_request(
    tables: Tables, request: RequestRecord, namespace: str, now_us: int, memory_ids: frozenset[str]
) -> None:
    """Keeps the first answer to a request, and lets expired ones go. Raises DuplicateRequest."""
    for key in [key for key, known in tables.requests.items() if known.record.expire_time_us <= now_us]:
        del tables.requests[key]
    if (request.principal_id, request.request_id) in tables.requests:
        raise DuplicateRequest(request.request_id)
    tables.requests[request.principal_id, request.request_id] = StoredRequest(request, namespace, memory_ids)


def _supersede(tables: Tables, item: Commit, supersession: Supersession) -> None:
    current = find(tables, item.scope, supersession.memory_id)
    expected = supersession.expected_version
    if current is None or current.version != expected or current.state is not State.ACTIVE:
        raise StaleVersion(supersession.memory_id, expected, current.version if current else 0)
    loser = superseded(current, supersession, item)
    tables.memories[loser.memory_id] = loser
    _add_version(tables, item, loser, Change.SUPERSEDED)
    add_to_outbox(tables, loser.memory_id, loser.namespace)


def _store_memory(tables: Tables, item: Commit, asked: Memory) -> None:
    current = _standing(tables, item, asked)
    added = asked.version > item.expected_version
    memory = reinforced(current, asked) if current and not added else asked
    if memory.state is State.ACTIVE:
        _check_unique(tables, memory)
    tables.memories[memory.memory_id] = memory
    changed = added or current is None or memory.state is not current.state
    if added:
        _add_version(tables, item, memory, item.change)
    key = (memory.memory_id, memory.version, item.embedding_model)
    if item.embedding is not None and key not in tables.embeddings:
        tables.embeddings[key] = read_only(item.embedding)
        changed = True
    if changed:
        add_to_outbox(tables, memory.memory_id, memory.namespace)


def _standing(tables: Tables, item: Commit, memory: Memory) -> Memory | None:
    """The row that a commit changes, None for a new memory. Raises StaleVersion when it is not as expected."""
    current = find(tables, item.scope, memory.memory_id)
    taken = current is None and memory.memory_id in tables.memories
    if taken or (current and current.namespace != memory.namespace):
        raise StaleVersion(memory.memory_id, item.expected_version, 0)
    standing = current.version if current else 0
    if standing != item.expected_version:
        raise StaleVersion(memory.memory_id, item.expected_version, standing)
    return current


def read_only(vector: Vector) -> Vector:
    """A copy that cannot be written to."""
    copy = vector.astype("<f4")
    copy.flags.writeable = False
    return copy


def _add_version(tables: Tables, item: Commit, memory: Memory, change: Change) -> None:
    version = MemoryVersion(memory, item.now_us, item.principal_id, change, item.reason)
    tables.versions[memory.memory_id] = (*tables.versions.get(memory.memory_id, ()), version)


def add_to_outbox(tables: Tables, memory_id: str, namespace: str) -> None:
    """Has every registered index follow a memory, at the next position."""
    tables.last_position += 1
    for index in tables.indexes:
        row = Waiting(tables.last_position, memory_id, namespace, tables.time_us)
        tables.outbox[index, row.position] = row


def erase(tables: Tables, erasure: Erasure) -> int:
    """Removes a memory, leaves a tombstone, and returns the position.

    Raises StaleVersion or DuplicateRequest, leaving the tables half changed.
    """
    current = find(tables, erasure.scope, erasure.memory_id)
    standing = current.version if current else 0
    if current is None or erasure.expected_version not in (0, standing):
        raise StaleVersion(erasure.memory_id, erasure.expected_version, standing)
    if erasure.request:
        save_request(tables, erasure.request, current.namespace, erasure.now_us, frozenset())
    _forget(tables, erasure.memory_id)
    tables.tombstones[erasure.memory_id] = erasure
    add_to_outbox(tables, erasure.memory_id, current.namespace)
    return tables.last_position


def _forget(tables: Tables, memory_id: str) -> None:
    del tables.memories[memory_id]
    tables.versions.pop(memory_id, None)
    tables.embeddings = {key: vector for key, vector in tables.embeddings.items() if key[0] != memory_id}
    tables.outbox = {
        key: row for key, row in tables.outbox.items() if row.memory_id != memory_id or row.owner or row.abandoned
    }
    tables.decisions = [(about, decision) for about, decision in tables.decisions if about != memory_id]
    tables.conflicts = [item for item in tables.conflicts if memory_id not in (item.winner_id, item.loser_id)]
    for key, known in tables.requests.items():
        if memory_id in known.memory_ids:
            emptied = replace(known.record, response=b"")
            tables.requests[key] = replace(known, record=emptied, memory_ids=known.memory_ids - {memory_id})
    tables.accesses = {key: times for key, times in tables.accesses.items() if key[0] != memory_id}
    tables.retrievals = {
        search_id: replace(search, hits=tuple(hit for hit in search.hits if hit[0] != memory_id))
        for search_id, search in tables.retrievals.items()
    }


def accessed(memory: Memory, access: AccessRecord) -> Memory:
    """The memory with an access counted and its strength raised."""
    policy = DecayPolicy(
        initial_strength=access.max_strength,
        hit_increment=access.hit_increment,
        max_strength=access.max_strength,
        monthly_decay=access.monthly_decay,
        cold_threshold=0.0,
    )
    strength = after_hit(memory.strength, memory.strength_time_us, access.time_us, policy)
    for _ in range(access.count - 1):
        strength = min(policy.max_strength, strength + policy.hit_increment)
    return replace(
        memory,
        strength=strength,
        strength_time_us=max(memory.strength_time_us, access.time_us),
        access_count=memory.access_count + access.count,
        last_access_time_us=max(memory.last_access_time_us or access.time_us, access.time_us),
    )
