"""The port of the record store, the one source of truth."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from dataplane.changes import (
    AccessRecord,
    Commit,
    Erasure,
    OperationRecord,
    OutboxRow,
    RequestRecord,
    RetrievalRecord,
)
from dataplane.model import Kind, Memory, Scope, Vector
from dataplane.ports.backend import Backend
from dataplane.ports.outbox import Outbox
from dataplane.ports.reads import RecordReads


@dataclass(frozen=True, slots=True)
class CommitResult:
    """What became of one Commit of a batch: the outbox position that covers it, or why nothing of it was stored."""

    position: int = 0
    error: Exception | None = None


@dataclass(frozen=True, slots=True)
class ContentKey:
    """What memories of exactly the same content have in common. `content_hash` as `logic.normalise` makes it."""

    namespace: str
    subject_id: str
    kind: Kind
    content_hash: str


class RecordStore(RecordReads, Outbox, Backend, Protocol):
    """The one source of truth: memories, versions, embeddings, outbox, decisions, requests, logs.

    Uniqueness is the store's own: one ACTIVE memory per (namespace, subject_id, kind, statement_key), and one per
    (namespace, subject_id, fact_key) where fact_key is not empty.
    """

    async def reads(self, at_least: int, deadline_s: float) -> RecordReads:
        """Something to read from that has everything up to a position: a replica if there is one, else this store."""
        ...

    async def commit(self, commits: Sequence[Commit], deadline_s: float) -> list[CommitResult]:
        """Stores each Commit atomically, in order; results are index-aligned.

        A failed one (`error` DuplicateContent, DuplicateFact, StaleVersion or DuplicateRequest) leaves no trace and
        does not touch the others. When this returns, successes survive kill -9. Outbox positions rise in commit order.
        A commit with `memory.version > expected_version` adds a version and an outbox row; one that changes state adds
        an outbox row; superseded memories get a version (change SUPERSEDED), valid_to, superseded_by_id and an outbox
        row of their own. Raises BackendUnavailable: then it is unknown whether the batch was stored.
        """
        ...

    async def find_same_content(
        self, scope: Scope, subject_id: str, kind: Kind, content_hash: str, deadline_s: float
    ) -> list[Memory]:
        """The ACTIVE memories with exactly this content, oldest first, at most 100."""
        ...

    async def find_contents(self, scope: Scope, contents: Sequence[ContentKey], deadline_s: float) -> set[ContentKey]:
        """Those of the contents that ACTIVE memories in the scope have, by one query."""
        ...

    async def find_fact(self, scope: Scope, subject_id: str, fact_key: str, deadline_s: float) -> Memory | None:
        """The ACTIVE memory with this fact key, if any."""
        ...

    async def erase(self, erasure: Erasure, deadline_s: float) -> int:
        """Removes a memory with its versions, embeddings, decisions and log texts; leaves a tombstone without content.

        Returns the outbox position of its removal from the indexes. Raises StaleVersion (`current` 0: not there), or
        DuplicateRequest. Stored answers to other requests about this memory are emptied (`response` b""): the request
        is still known, what it was answered is not.
        """
        ...

    async def find_requests(
        self, scope: Scope, principal_id: str, request_ids: Sequence[str], now_us: int, deadline_s: float
    ) -> list[RequestRecord]:
        """The first answers to request_ids of this principal that have not expired, in any order, by one query."""
        ...

    async def scan(self, after_id: str, page_size: int, deadline_s: float, model: str) -> list[OutboxRow]:
        """ACTIVE memories by id above `after_id`, for comparing and rebuilding indexes. `position` is 0."""
        ...

    async def marker(self, name: str, deadline_s: float) -> int:
        """A number kept under a name; 0 at first."""
        ...

    async def save_marker(self, name: str, value: int, deadline_s: float) -> None:
        """Keeps a number under a name."""
        ...

    async def raise_marker(self, name: str, value: int, unit: int, deadline_s: float) -> int:
        """Keeps a number under a name unless the one there is as high, in whole `unit`s; the one that is there then.

        So a save that comes late replaces none that was made after it.
        """
        ...

    async def stamp_marker(self, name: str, deadline_s: float) -> None:
        """Keeps the store's time, in µs, under a name."""
        ...

    async def stale_markers(self, prefix: str, seconds: float, page_size: int, deadline_s: float) -> list[str]:
        """Names that begin so and were stamped so many seconds ago or more; by name, at most a page."""
        ...

    async def drop_markers(self, names: Sequence[str], deadline_s: float) -> None:
        """Removes numbers; each is 0 again. Passes over unknown ones."""
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

    async def save_operations(self, operations: Sequence[OperationRecord], deadline_s: float) -> None:
        """Keeps operations, the later state of one name; lets expired ones go.

        What is done stays as it is, but a failure gives way to a success: what had failed was tried again.
        """
        ...

    async def find_operation(self, name: str, deadline_s: float) -> OperationRecord | None:
        """An operation by name, if it is known and has not expired."""
        ...

    async def list_operations(
        self, after_name: str, page_size: int, deadline_s: float, principal_id: str = ""
    ) -> list[OperationRecord]:
        """Operations by name above `after_name`: those of a principal, or of all for ""."""
        ...

    async def count(self, deadline_s: float) -> int:
        """How many ACTIVE memories there are in all namespaces."""
        ...
