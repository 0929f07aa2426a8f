"""What the data plane needs of the world, as promises.

Shared by every port. `scope` bounds what a call may read or change; an adapter enforces it in the store itself.
`deadline_s` is an instant of the event loop's clock (`loop.time()`); past it the call raises BackendUnavailable with
the backend's name. A method raises BackendUnavailable when its backend cannot answer, and never returns less than it
promises instead. Methods may be called concurrently from one event loop.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dataplane.changes import AccessRecord, Commit, Erasure, MemoryVersion, OutboxRow, RequestRecord, RetrievalRecord
from dataplane.model import Candidate, Filter, IndexEntry, Kind, Memory, Scope, State, StoredCandidate, Vector


class Clock(Protocol):
    """The time of day, so that tests own it."""

    def now_us(self) -> int:
        """Microseconds since 1970-01-01 UTC."""
        ...


@dataclass(frozen=True, slots=True)
class CommitResult:
    """What became of one Commit of a batch: the outbox position that covers it, or why nothing of it was stored."""

    position: int = 0
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class Pending:
    """Rows not yet projected. `truncated`: there were more than asked for, and the oldest are missing."""

    candidates: tuple[StoredCandidate, ...] = ()
    truncated: bool = False


@dataclass(frozen=True, slots=True)
class ListQuery:
    """Which rows to list: newest `create_time` first, ties by id descending.

    `after` is (create_time_us, memory_id) of the last row of the page before. `states` are stored states.
    """

    states: tuple[State, ...]
    filter: Filter
    page_size: int
    after: tuple[int, str] | None = None


class RecordStore(Protocol):
    """The one source of truth: memories, versions, embeddings, outbox, decisions, requests, logs.

    Uniqueness is the store's own: one ACTIVE memory per (namespace, subject_id, kind, statement_key), and one per
    (namespace, subject_id, fact_key) where fact_key is not empty.
    """

    async def commit(self, commits: Sequence[Commit], deadline_s: float) -> list[CommitResult]:
        """Stores each Commit atomically, in order; results are index-aligned.

        A failed one (`error` DuplicateContent, DuplicateFact, StaleVersion or DuplicateRequest) leaves no trace and
        does not touch the others. When this returns, successes survive kill -9. Outbox positions rise in commit order.
        A commit with `memory.version > expected_version` adds a version and an outbox row; one that changes state adds
        an outbox row; superseded memories get a version (change SUPERSEDED), valid_to, superseded_by_id and an outbox
        row of their own. Raises BackendUnavailable: then it is unknown whether the batch was stored.
        """
        ...

    async def get(self, scope: Scope, memory_id: str, deadline_s: float) -> Memory | None:
        """The memory as it stands, whatever its state but removed; None when it is not there or outside the scope."""
        ...

    async def get_version(self, scope: Scope, memory_id: str, version: int, deadline_s: float) -> MemoryVersion | None:
        """One version; None when there is none or it is outside the scope."""
        ...

    async def list_versions(
        self, scope: Scope, memory_id: str, before_version: int, page_size: int, deadline_s: float
    ) -> list[MemoryVersion]:
        """Versions below `before_version` (0: all), newest first, at most `page_size`."""
        ...

    async def list_memories(self, scope: Scope, query: ListQuery, deadline_s: float) -> list[Memory]:
        """A page of rows in the order of ListQuery."""
        ...

    async def find_same_content(
        self, scope: Scope, subject_id: str, kind: Kind, content_hash: str, deadline_s: float
    ) -> list[Memory]:
        """The ACTIVE memories with exactly this content, oldest first, at most 100."""
        ...

    async def find_fact(self, scope: Scope, subject_id: str, fact_key: str, deadline_s: float) -> Memory | None:
        """The ACTIVE memory with this fact key, if any."""
        ...

    async def fetch(
        self, scope: Scope, memory_ids: Sequence[str], model: str, access_since_us: int, deadline_s: float
    ) -> list[StoredCandidate]:
        """The rows of these ids that exist in the scope, in any order, each once, by one query.

        `embedding` is that of (memory, its current version, model). `recent_access_count` sums the access buckets from
        `access_since_us` on.
        """
        ...

    async def pending(
        self, scope: Scope, after_position: int, model: str, access_since_us: int, page_size: int, deadline_s: float
    ) -> Pending:
        """ACTIVE memories in the scope with an outbox row above `after_position`, newest first, each once."""
        ...

    async def history(self, scope: Scope, as_of_us: int, model: str, page_size: int, deadline_s: float) -> Pending:
        """Memories as recorded at `as_of_us`: the latest version with record time ≤ it, where that one was ACTIVE.

        What is SOFT_DELETED or QUARANTINED by now is left out: nothing forgotten comes back. Newest first. The
        embedding is that version's. `recent_access_count` is 0.
        """
        ...

    async def erase(self, erasure: Erasure, deadline_s: float) -> int:
        """Removes a memory with its versions, embeddings, decisions and log texts; leaves a tombstone without content.

        Returns the outbox position of its removal from the indexes. Raises StaleVersion (`current` 0: not there), or
        DuplicateRequest. Stored answers to other requests about this memory are emptied (`response` b""): the request
        is still known, what it was answered is not.
        """
        ...

    async def find_request(
        self, scope: Scope, principal_id: str, request_id: str, now_us: int, deadline_s: float
    ) -> RequestRecord | None:
        """The first answer to a request_id of this principal, if it has not expired."""
        ...

    async def read_outbox(self, after_position: int, page_size: int, deadline_s: float, model: str) -> list[OutboxRow]:
        """Projections due above a position, in order, with what the store says of each memory now."""
        ...

    async def last_position(self, deadline_s: float) -> int:
        """The newest outbox position; 0 when there is none."""
        ...

    async def trim_outbox(self, up_to_position: int, deadline_s: float) -> None:
        """Drops outbox rows at or below a position that every index has passed. Idempotent."""
        ...

    async def watermark(self, index: str, deadline_s: float) -> int:
        """The position up to which an index has been projected durably; 0 at first."""
        ...

    async def save_watermark(self, index: str, position: int, deadline_s: float) -> None:
        """Moves an index's watermark; it may go back when an index is rebuilt."""
        ...

    async def scan(self, after_id: str, page_size: int, deadline_s: float, model: str) -> list[OutboxRow]:
        """ACTIVE memories by id above `after_id`, for comparing and rebuilding indexes. `position` is 0."""
        ...

    async def save_embedding(
        self, memory_id: str, version: int, model: str, embedding: Vector, deadline_s: float
    ) -> None:
        """Keeps an embedding made after the commit; passed over when that version is not there any more."""
        ...

    async def tombstones(self, memory_ids: Sequence[str], deadline_s: float) -> set[str]:
        """Those of the ids that were erased."""
        ...

    async def record_accesses(self, accesses: Sequence[AccessRecord], deadline_s: float) -> None:
        """Counts each access in its day's bucket, and anchors the raised strength. Unknown ids are passed over."""
        ...

    async def record_retrievals(self, retrievals: Sequence[RetrievalRecord], deadline_s: float) -> None:
        """Appends to the retrieval log."""
        ...

    async def count(self, deadline_s: float) -> int:
        """How many ACTIVE memories there are in all namespaces."""
        ...

    async def close(self) -> None:
        """Finishes what was accepted and lets go of the store. Idempotent."""
        ...


class Index(Protocol):
    """What vector and text index share. An index is a projection: late, repeatable, rebuildable."""

    async def upsert(self, entries: Sequence[IndexEntry], deadline_s: float) -> None:
        """Brings the index to these entries; the last one of an id wins. Idempotent. Visible when it returns."""
        ...

    async def delete(self, memory_ids: Sequence[str], deadline_s: float) -> None:
        """Removes entries; unknown ids are passed over. Gone from searches when it returns."""
        ...

    async def versions(self, deadline_s: float) -> dict[str, int]:
        """Every memory id in the index with the version it holds."""
        ...

    async def flush(self, deadline_s: float) -> None:
        """Makes everything upserted or deleted so far durable."""
        ...

    async def purge(self, deadline_s: float) -> None:
        """Removes from disk what deleted and replaced entries left behind. Searches go on meanwhile; writes may wait.

        Slow: it may copy the whole index. When it fails nothing is lost, and it can be called again.
        """
        ...

    async def clear(self, deadline_s: float) -> None:
        """Removes everything."""
        ...

    async def close(self) -> None:
        """Flushes and lets go. Idempotent."""
        ...


class VectorIndex(Index, Protocol):
    """Nearest neighbours by cosine."""

    async def search(
        self, scope: Scope, vector: Vector, filter: Filter, top_k: int, deadline_s: float
    ) -> list[Candidate]:
        """The `top_k` entries in the scope that pass the filter, by cosine descending; ties in any order."""
        ...


class TextIndex(Index, Protocol):
    """Full text over tokens that we make (`logic.tokens`); BM25."""

    async def search(
        self, scope: Scope, tokens: Sequence[str], filter: Filter, top_k: int, deadline_s: float
    ) -> list[Candidate]:
        """The `top_k` entries that hold at least one of the tokens, by BM25 descending; none for no tokens."""
        ...


class Cache(Protocol):
    """A disposable key-value store; losing it loses time only."""

    async def get(self, scope: Scope, key: str, deadline_s: float) -> bytes | None:
        """The value, or None when absent or expired. Keys of different scopes never meet."""
        ...

    async def put(self, scope: Scope, key: str, value: bytes, ttl_s: float, deadline_s: float) -> None:
        """Keeps a value for at most `ttl_s`; the oldest go when it is full."""
        ...

    async def drop_namespace(self, namespace: str, deadline_s: float) -> None:
        """Removes every value whose scope touches a namespace."""
        ...


class Embedder(Protocol):
    """Turns text into vectors off the event loop. Raises BackendUnavailable("embedder") when it cannot."""

    @property
    def model(self) -> str:
        """Name and version of the model; embeddings of different models never meet."""
        ...

    @property
    def dimension(self) -> int:
        """Length of its vectors."""
        ...

    async def embed_queries(self, texts: Sequence[str], deadline_s: float) -> list[Vector]:
        """One unit vector a text, as questions. Texts are cut at the model's length."""
        ...

    async def embed_passages(self, texts: Sequence[str], deadline_s: float) -> list[Vector]:
        """One unit vector a text, as memories. Texts are cut at the model's length."""
        ...

    def count_tokens(self, text: str) -> int:
        """Tokens of a text as the model counts, without special ones. Texts may be long; the cost is linear."""
        ...

    def calibrate(self, cosine: float) -> float:
        """Maps a raw cosine of two passages to the calibrated similarity, 0 to 1, rising; 0.95: the same statement."""
        ...

    def relevance(self, question: str, cosines: Sequence[float]) -> list[float]:
        """How much memories say about a question, 0 to 1 each, in order, from their raw cosines with it.

        0.5 = as likely relevant as not among memories of which few are. For one question strictly rising with the
        cosine, so the order by cosine is kept; across questions comparable, whatever their language.
        """
        ...
