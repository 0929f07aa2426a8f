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
    """A projection due: bring an index to what the record store now says of this memory.

    `memory` None: it is gone (or no longer searchable) and must leave the index. `embedding` None: not embedded yet.
    `covers` is the newest position of this memory when the row was read: settling the row settles all up to there.
    `attempts` counts the tries that failed before. `abandoned`: somebody held the row and did not settle it, so what
    they sent may still reach the index, after anything that is sent now.
    """

    position: int
    memory_id: str
    namespace: str
    memory: Memory | None
    embedding: Vector | None
    covers: int = 0
    attempts: int = 0
    abandoned: bool = False


@dataclass(frozen=True, slots=True)
class Lease:
    """Who takes outbox rows, and for how many seconds of the store's clock."""

    owner: str
    seconds: float


@dataclass(frozen=True, slots=True)
class Failure:
    """A leased row that an index refused, why, and seconds until it is tried again; None: never, it is dead."""

    row: OutboxRow
    reason: str
    wait_s: float | None


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A row that was given up: kept, visible and replayable. Searches go on finding its memory from the store."""

    index: str
    position: int
    memory_id: str
    namespace: str
    attempts: int
    reason: str
    time_us: int


@dataclass(frozen=True, slots=True)
class IndexProgress:
    """How far an index has followed.

    Every change at or below `watermark` is in it, but for the ones that failed before. `due_count` rows wait, `leased`
    and postponed ones included; `dead_count` were given up; `oldest_due_us` is the age anchor of the oldest waiting row
    (None: none waits).
    """

    index: str
    watermark: int
    due_count: int
    dead_count: int
    oldest_due_us: int | None


@dataclass(frozen=True, slots=True)
class OperationRecord:
    """Long work that a caller can ask after. `metadata`, `response` and `error` are serialised protobuf.

    `response` (a `google.protobuf.Any`) and `error` (a `google.rpc.Status`) are empty until `is_done`, then one is set.
    They hold no content of memories. `namespace` is "" for work on all of them.
    """

    name: str
    principal_id: str
    namespace: str
    create_time_us: int
    update_time_us: int
    expire_time_us: int
    is_done: bool
    metadata: bytes
    response: bytes = b""
    error: bytes = b""

    def gives_way_to(self, later: "OperationRecord") -> bool:
        """Whether another state of it takes its place: it is not done, or it failed and that one did not."""
        is_open = not self.is_done or bool(self.error and later.response)
        return is_open and later.update_time_us >= self.update_time_us


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
    """A memory returned `count` times, at last at `time_us`, by searches that record access; its strength is raised."""

    memory_id: str
    namespace: str
    time_us: int
    hit_increment: float
    max_strength: float
    monthly_decay: float
    count: int = 1


@dataclass(frozen=True, slots=True)
class QueuedWrite:
    """A write accepted to be applied later; `request` is its serialised `WriteMemoryRequest` with a request_id.

    `operation` names what the caller asks after. `time_us` is when it was accepted. Writes with an equal `order_key`
    are applied in the order in which they were accepted.
    """

    operation: str
    principal_id: str
    namespace: str
    request: bytes
    time_us: int
    order_key: str


@dataclass(frozen=True, slots=True)
class QueueEntry:
    """A queued write in somebody's hands; `deliveries` counts how often it was handed out, this time included."""

    entry_id: str
    write: QueuedWrite
    deliveries: int


@dataclass(frozen=True, slots=True)
class SetAsideWrite:
    """A write that the queue keeps aside, for it could not be applied. `write` None: nothing that can be read."""

    entry_id: str
    write: QueuedWrite | None


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """How many queued writes wait for a taker, how many are taken and not done, and when the oldest was accepted.

    `set_aside` counts what was kept out of the way because it cannot be applied.
    """

    waiting: int
    taken: int
    oldest_time_us: int | None
    set_aside: int = 0
