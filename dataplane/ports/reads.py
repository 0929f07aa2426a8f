"""The port by which memories are read from the record store or a replica."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from dataplane.changes import MemoryVersion
from dataplane.model import Filter, Memory, Scope, State, StoredCandidate


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


class RecordReads(Protocol):
    """What can be read of memories, from the record store or from a replica of it.

    A replica may lag, so a call reads from one RecordReads throughout.
    """

    async def last_position(self, deadline_s: float) -> int:
        """The newest outbox position; 0 when there is none."""
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

    async def most_used(
        self, scope: Scope, filter: Filter, access_since_us: int, page_size: int, deadline_s: float
    ) -> list[str]:
        """Ids of the ACTIVE memories with the most accesses in the buckets from `access_since_us` on, most first.

        Those without any are left out. Ties in any order.
        """
        ...

    async def fetch(
        self, scope: Scope, memory_ids: Sequence[str], model: str, access_since_us: int, deadline_s: float
    ) -> list[StoredCandidate]:
        """The rows of these ids that exist in the scope, in any order, each once, by one query.

        `embedding` is that of (memory, its current version, model). `recent_access_count` sums the access buckets from
        `access_since_us` on.
        """
        ...

    async def neighbours(
        self, scope: Scope, memories: Sequence[Memory], reach: int, model: str, access_since_us: int, deadline_s: float
    ) -> list[StoredCandidate]:
        """The ACTIVE memories in the scope at most `reach` places before or after any of these, in its session.

        By one query, in any order, each once; those asked about are among them where they are beside another. A
        session is of one namespace, in order of (sequence, create_time_us, memory_id); memories without a session have
        no neighbours. Else as `fetch`.
        """
        ...

    async def pending(
        self,
        scope: Scope,
        applied: Mapping[str, int],
        model: str,
        access_since_us: int,
        page_size: int,
        deadline_s: float,
    ) -> Pending:
        """ACTIVE memories in the scope with an outbox row that an index has not applied, newest first, each once.

        `applied` names the indexes that count, each with the position up to which it is known to have applied all rows
        but those that failed before (0: nothing is known, so every row that is still there counts).
        """
        ...

    async def history(self, scope: Scope, as_of_us: int, model: str, page_size: int, deadline_s: float) -> Pending:
        """Memories as recorded at `as_of_us`: the latest version with record time ≤ it, where that one was ACTIVE.

        What is SOFT_DELETED or QUARANTINED by now is left out: nothing forgotten comes back. Newest first. The
        embedding is that version's. `recent_access_count` is 0.
        """
        ...
