"""The nouns of the data plane: immutable values that logic decides on and adapters store.

Times are whole microseconds since 1970-01-01 UTC (`*_us`); `None` is unknown. Enum numbers equal those of the contract
(`proto/memplane/v1/memory.proto`); a test holds them equal.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
"""An embedding: shape (dimension,), dtype float32, length 1."""

Scalar = str | int | float | bool
FieldValue = Scalar | tuple[str, ...] | None
"""A filterable field of a memory: times and counts as int, enums as their name, tags as a tuple, absent as None."""

DAY_US = 86_400_000_000

MAX_TAGS = 64
"""Most tags of a memory."""

MAX_STRUCT_BYTES = 16 * 1024
"""Largest `metadata` and `structured` of a memory, serialised."""


class Layer(IntEnum):
    """How long a memory is meant to stay."""

    WORKING = 1
    SHORT_TERM = 2
    LONG_TERM = 3
    KNOWLEDGE = 4


class Kind(IntEnum):
    """What sort of statement a memory is."""

    FACT = 1
    PREFERENCE = 2
    EPISODE = 3
    INSTRUCTION = 4
    TOOL_RESULT = 5
    DOCUMENT = 6
    SUMMARY = 7


class SourceType(IntEnum):
    """Who or what stated a memory."""

    HUMAN = 1
    API = 2
    USER = 3
    AGENT = 4
    LLM = 5
    EXTERNAL_DOC = 6


class State(IntEnum):
    """Where a memory stands in its life. COLD is computed from strength when read; stored rows say ACTIVE."""

    ACTIVE = 1
    PENDING_REVIEW = 2
    QUARANTINED = 3
    COLD = 4
    SUPERSEDED = 5
    SOFT_DELETED = 6


class Pool(IntEnum):
    """Who is meant to read a memory."""

    PRIVATE = 1
    SHARED = 2


class Action(IntEnum):
    """What a write came to."""

    CREATED = 1
    UPDATED = 2
    MERGED = 3
    KEPT_SHORT_TERM = 4
    KEPT_WORKING = 5
    REJECTED = 6
    PENDING_REVIEW = 7
    QUARANTINED = 8
    QUEUED = 9


@dataclass(frozen=True, slots=True)
class Scope:
    """The memories a port call may touch: all of `namespaces`, and the SHARED ones of `shared`.

    An adapter returns and changes nothing outside it. `SYSTEM_SCOPE` (every namespace) is for the projector and
    start-up checks alone.
    """

    namespaces: tuple[str, ...]
    shared: tuple[str, ...] = ()
    system: bool = False

    def covers(self, namespace: str, pool: Pool) -> bool:
        """True when a memory of that namespace and pool lies inside."""
        return self.system or namespace in self.namespaces or (pool is Pool.SHARED and namespace in self.shared)


SYSTEM_SCOPE = Scope((), (), system=True)


class Operator(IntEnum):
    """How a filter condition compares."""

    EQUALS = 1
    NOT_EQUALS = 2
    IN = 3
    EXISTS = 4
    LESS_THAN = 5
    LESS_OR_EQUAL = 6
    GREATER_THAN = 7
    GREATER_OR_EQUAL = 8


@dataclass(frozen=True, slots=True)
class Condition:
    """A comparison of one field. NOT_EQUALS is also true of an absent field; EQUALS on tags means contains."""

    field: str
    operator: Operator
    values: tuple[Scalar, ...] = ()


@dataclass(frozen=True, slots=True)
class AllOf:
    """True when every filter is; `AllOf(())` is always true."""

    filters: tuple["Filter", ...] = ()


@dataclass(frozen=True, slots=True)
class AnyOf:
    """True when at least one filter is."""

    filters: tuple["Filter", ...]


@dataclass(frozen=True, slots=True)
class Not:
    """True when the filter is not."""

    filter: "Filter"


Filter = AllOf | AnyOf | Not | Condition
EVERYTHING = AllOf()


@dataclass(frozen=True, slots=True)
class Source:
    """Who stated a memory and where."""

    type: SourceType = SourceType.AGENT
    ref: str = ""
    operator_id: str = ""


@dataclass(frozen=True, slots=True)
class Redaction:
    """Sensitive data of one type that was masked in a field, so many times; `action` is the policy's for the type."""

    type: str
    field: str
    count: int
    action: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A memory proposed, not yet admitted. Texts are normalised; sizes are checked.

    `payload_hash` is SHA-256 hex of the request without its request_id and delivery: equal for equal requests.
    `attempt_id` stands for `request_id` where the caller gave none and the write may be queued (`write_or_queue`).
    `redactions`: what was masked in it so far (`pipelines.redact`).
    """

    namespace: str
    content: str
    kind: Kind = Kind.FACT
    layer_hint: Layer | None = None
    subject_id: str = ""
    session_id: str = ""
    agent_id: str = ""
    source: Source = Source()
    source_id: str = ""
    event_time_us: int | None = None
    speaker: str = ""
    sequence: int = 0
    fact_key: str = ""
    entity_type: str = ""
    category: str = ""
    confidence: float | None = None
    embedding: Vector | None = None
    ttl_us: int | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, object] = field(default_factory=dict)
    structured: Mapping[str, object] = field(default_factory=dict)
    pool: Pool = Pool.PRIVATE
    valid_from_us: int | None = None
    valid_to_us: int | None = None
    request_id: str = ""
    attempt_id: str = ""
    payload_hash: str = ""
    validate_only: bool = False
    redactions: tuple[Redaction, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """A stored memory: the fields that decisions read, and `body`, all of it as it goes over the wire.

    `body` is a serialised `memplane.v1.Memory` of this version. The fields that change without a new version (state,
    strength, access_count, last_access_time, valid_to, superseded_by_id) are appended to it when answering; protobuf
    takes the later value. `sequence` is the place in the session. `strength` is the strength at `strength_time_us`;
    read it through `logic.strength`.
    `statement_key` is equal for what counts as the same statement (`logic.statement`); ACTIVE ones are unique by it.
    """

    memory_id: str
    namespace: str
    subject_id: str
    session_id: str
    kind: Kind
    layer: Layer
    state: State
    pool: Pool
    category: str
    fact_key: str
    source_type: SourceType
    confidence: float
    content_hash: str
    statement_key: str
    version: int
    create_time_us: int
    update_time_us: int
    event_time_us: int | None
    valid_from_us: int | None
    valid_to_us: int | None
    expire_time_us: int | None
    superseded_by_id: str
    strength: float
    strength_time_us: int
    access_count: int
    last_access_time_us: int | None
    sequence: int = 0
    body: bytes


@dataclass(frozen=True, slots=True)
class StoredCandidate:
    """A memory as ranking needs it: its row, its embedding of the asked model (None: not embedded yet), recent use."""

    memory: Memory
    embedding: Vector | None
    recent_access_count: int


@dataclass(frozen=True, slots=True)
class Candidate:
    """What an index proposes: a memory id, the version it indexed, and a raw score (higher is better).

    Raw scores are the index's own: cosine (−1 to 1) for vectors, BM25 (≥ 0) for text. `terms` are the tokens of the
    query that the memory holds, where the index tells them.
    """

    memory_id: str
    version: int
    score: float
    terms: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class IndexKey:
    """A memory in an index; its namespace says where in it."""

    memory_id: str
    namespace: str


@dataclass(frozen=True, slots=True)
class Held:
    """What an index holds of a memory.

    `fingerprint` is `logic.fingerprint` of the entry as it was upserted; "" where none was kept.
    """

    version: int
    namespace: str
    fingerprint: str = ""


@dataclass(frozen=True, slots=True)
class IndexEntry:
    """A memory as an index keeps it. `embedding` is None for the text index, `tokens` empty for the vector index.

    `partition` is the namespace subtree whose memories lie in a collection of their own; "" for the common one. `row`
    is the memory packed (`row_codec`), from which searches are answered while the record store is down.
    """

    memory_id: str
    version: int
    namespace: str
    pool: Pool
    fields: Mapping[str, FieldValue]
    embedding: Vector | None = None
    tokens: tuple[str, ...] = ()
    partition: str = ""
    row: bytes = b""
