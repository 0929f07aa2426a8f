"""What the record store takes and gives: changes of memories, their history, and what is logged beside them."""

from dataclasses import dataclass
from enum import StrEnum

from dataplane.model import Action, Memory, Scope, Vector


class Change(StrEnum):
    """What made a version."""

    CREATED = "CREATED"
    UPDATED = "UPDATED"
    MERGED = "MERGED"
    SUPERSEDED = "SUPERSEDED"
    FORGOTTEN = "FORGOTTEN"


@dataclass(frozen=True, slots=True)
class MemoryVersion:
    """One version of a memory's history."""

    memory: Memory
    record_time_us: int
    principal_id: str
    change: Change
    reason: str


@dataclass(frozen=True, slots=True)
class ConflictRecord:
    """Two memories that stated different things under one fact key, and who won by which rule."""

    winner_id: str
    loser_id: str
    fact_key: str
    similarity: float
    rule: str


@dataclass(frozen=True, slots=True)
class Supersession:
    """An ACTIVE memory that a commit turns SUPERSEDED, if it still stands at `expected_version`."""

    memory_id: str
    expected_version: int
    valid_to_us: int


@dataclass(frozen=True, slots=True)
class DecisionRecord:
    """A gate decision for the decision log; `payload` is a serialised `memplane.v1.Decision`."""

    action: Action
    score: float
    policy_version: str
    payload: bytes


@dataclass(frozen=True, slots=True)
class RequestRecord:
    """The first answer to a `request_id`, kept 24 hours. `payload_hash` is SHA-256 hex of the request."""

    principal_id: str
    request_id: str
    payload_hash: str
    response: bytes
    expire_time_us: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One atomic change: everything in it is stored, or nothing is.

    `memory` None: only the decision and request are logged (a REJECTED write). `expected_version` 0: the memory is
    new; n: it stands at version n, else StaleVersion. With `memory.version == expected_version` the row's changing
    fields are replaced and no version is added (reinforcement).
    """

    scope: Scope
    namespace: str
    now_us: int
    principal_id: str
    change: Change
    reason: str = ""
    memory: Memory | None = None
    embedding: Vector | None = None
    embedding_model: str = ""
    expected_version: int = 0
    supersedes: tuple[Supersession, ...] = ()
    conflicts: tuple[ConflictRecord, ...] = ()
    decision: DecisionRecord | None = None
    request: RequestRecord | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """A memory to remove for good. `expected_version` 0: whatever is current."""

    scope: Scope
    memory_id: str
    now_us: int
    principal_id: str
    reason: str = ""
    expected_version: int = 0
    request: RequestRecord | None = None


@dataclass(frozen=True, slots=True)
class OutboxRow:
    """A projection due: bring the indexes to what the record store now says of this memory.

    `memory` None: it is gone (or no longer searchable) and must leave the indexes. `embedding` None: not embedded yet.
    """

    position: int
    memory_id: str
    namespace: str
    memory: Memory | None
    embedding: Vector | None


@dataclass(frozen=True, slots=True)
class RetrievalRecord:
    """A search for the retrieval log: who asked, under which policy, and what came back in which order."""

    search_id: str
    namespace: str
    principal_id: str
    time_us: int
    policy_version: str
    query_hash: str
    hits: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class AccessRecord:
    """A memory returned by a search that records access, with its strength raised."""

    memory_id: str
    namespace: str
    time_us: int
    hit_increment: float
    max_strength: float
    monthly_decay: float
