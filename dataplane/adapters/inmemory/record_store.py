"""A record store in memory: the plainest reading of the port, for tests. Linear in what is stored."""

import asyncio
from collections.abc import Iterator, Mapping, Sequence

from dataplane.adapters import record_rules
from dataplane.adapters.inmemory import record_outbox as outbox
from dataplane.adapters.inmemory import record_tables as stored
from dataplane.adapters.inmemory.record_markers import InMemoryMarkers
from dataplane.adapters.record_rules import FieldsOf
from dataplane.changes import (
    AccessRecord,
    Commit,
    DeadLetter,
    Erasure,
    Failure,
    IndexProgress,
    Lease,
    MemoryVersion,
    OperationRecord,
    OutboxRow,
    RequestRecord,
    RetrievalRecord,
)
from dataplane.errors import (
    BackendUnavailable,
    DuplicateContent,
    DuplicateFact,
    DuplicateRequest,
    StaleVersion,
)
from dataplane.logic.filters import matches
from dataplane.model import DAY_US, Filter, Kind, Memory, Scope, State, StoredCandidate, Vector
from dataplane.ports import Clock, CommitResult, ContentKey, Examination, ListQuery, Pending, RecordReads
from memplane.process import SystemClock


class InMemoryRecordStore(InMemoryMarkers):
    """A `ports.RecordStore`. `fields_of` gives what filters see of a memory; `clock` is its own, else the system's."""

    def __init__(self, fields_of: FieldsOf, clock: Clock | None = None) -> None:
        self._fields_of = fields_of
        self._clock = clock or SystemClock()
        self._tables = stored.Tables()
        self._closed = False

    async def close(self) -> None:
        """See the port."""
        self._closed = True

    async def examine(self, deadline_s: float) -> Examination:
        """See the port."""
        self._check(deadline_s)
        return Examination("in memory")

    async def reads(self, at_least: int, deadline_s: float) -> RecordReads:
        """See the port; there is nothing else to read from."""
        self._check(deadline_s)
        return self

    def _check(self, deadline_s: float) -> None:
        if self._closed:
            raise BackendUnavailable("record_store", "closed")
        if asyncio.get_running_loop().time() > deadline_s:
            raise BackendUnavailable("record_store", "deadline passed")
        self._tables.time_us = self._clock.now_us()

    async def commit(self, commits: Sequence[Commit], deadline_s: float) -> list[CommitResult]:
        """See the port. Raises ValueError for a memory outside its commit's scope or below its expected version."""
        self._check(deadline_s)
        for item in commits:
            record_rules.check(item)
        return [self._commit_or_refuse(item) for item in commits]

    def _commit_or_refuse(self, item: Commit) -> CommitResult:
        tables = stored.copy_of(self._tables)
        try:
            position = stored.commit(tables, item)
        except (DuplicateContent, DuplicateFact, DuplicateRequest, StaleVersion) as refusal:
            return CommitResult(error=refusal)
        self._tables = tables
        return CommitResult(position)

    async def erase(self, erasure: Erasure, deadline_s: float) -> int:
        """See the port."""
        self._check(deadline_s)
        tables = stored.copy_of(self._tables)
        position = stored.erase(tables, erasure)
        self._tables = tables
        return position

    async def save_embedding(
        self, memory_id: str, version: int, model: str, embedding: Vector, deadline_s: float
    ) -> None:
        """See the port."""
        self._check(deadline_s)
        if any(item.memory.version == version for item in self._tables.versions.get(memory_id, ())):
            self._tables.embeddings[memory_id, version, model] = stored.read_only(embedding)

    async def save_operations(self, operations: Sequence[OperationRecord], deadline_s: float) -> None:
        """See the port."""
        self._check(deadline_s)
        kept = {name: item for name, item in self._tables.operations.items() if self._stands(item)}
        for operation in operations:
            known = kept.get(operation.name)
            if known is None or known.gives_way_to(operation):
                kept[operation.name] = operation
        self._tables.operations = kept

    async def find_operation(self, name: str, deadline_s: float) -> OperationRecord | None:
        """See the port."""
        self._check(deadline_s)
        found = self._tables.operations.get(name)
        return found if found and self._stands(found) else None

    async def list_operations(
        self, after_name: str, page_size: int, deadline_s: float, principal_id: str = ""
    ) -> list[OperationRecord]:
        """See the port."""
        self._check(deadline_s)
        known = [item for name, item in sorted(self._tables.operations.items()) if name > after_name]
        owned = [item for item in known if principal_id in ("", item.principal_id)]
        return [item for item in owned if self._stands(item)][:page_size]

    def _stands(self, operation: OperationRecord) -> bool:
        return operation.expire_time_us > self._tables.time_us

    async def record_accesses(self, accesses: Sequence[AccessRecord], deadline_s: float) -> None:
        """See the port."""
        self._check(deadline_s)
        for access in accesses:
            memory = self._tables.memories.get(access.memory_id)
            if memory and memory.namespace == access.namespace:
                self._tables.memories[memory.memory_id] = stored.accessed(memory, access)
                bucket = (memory.memory_id, access.time_us // DAY_US)
                self._tables.accesses[bucket] = self._tables.accesses.get(bucket, 0) + access.count

    async def record_retrievals(self, retrievals: Sequence[RetrievalRecord], deadline_s: float) -> None:
        """See the port."""
        self._check(deadline_s)
        for search in retrievals:
            self._tables.retrievals.setdefault(search.search_id, search)

    async def get(self, scope: Scope, memory_id: str, deadline_s: float) -> Memory | None:
        """See the port."""
        self._check(deadline_s)
        return stored.find(self._tables, scope, memory_id)

    async def get_version(self, scope: Scope, memory_id: str, version: int, deadline_s: float) -> MemoryVersion | None:
        """See the port. Both the version and the memory as it stands must lie in the scope."""
        self._check(deadline_s)
        return next((item for item in self._versions(scope, memory_id) if item.memory.version == version), None)

    async def list_versions(
        self, scope: Scope, memory_id: str, before_version: int, page_size: int, deadline_s: float
    ) -> list[MemoryVersion]:
        """See the port. Both the version and the memory as it stands must lie in the scope."""
        self._check(deadline_s)
        found = self._versions(scope, memory_id)
        return [item for item in found if not before_version or item.memory.version < before_version][::-1][:page_size]

    def _versions(self, scope: Scope, memory_id: str) -> list[MemoryVersion]:
        if stored.find(self._tables, scope, memory_id) is None:
            return []
        versions = self._tables.versions[memory_id]
        return [item for item in versions if scope.covers(item.memory.namespace, item.memory.pool)]

    async def list_memories(self, scope: Scope, query: ListQuery, deadline_s: float) -> list[Memory]:
        """See the port."""
        self._check(deadline_s)
        found = [
            memory
            for memory in self._in_scope(scope)
            if memory.state in query.states
            and matches(query.filter, self._fields_of(memory))
            and (query.after is None or (memory.create_time_us, memory.memory_id) < query.after)
        ]
        found.sort(key=lambda memory: (memory.create_time_us, memory.memory_id), reverse=True)
        return found[: query.page_size]

    def _in_scope(self, scope: Scope) -> Iterator[Memory]:
        return (memory for memory in self._tables.memories.values() if scope.covers(memory.namespace, memory.pool))

    def _active(self, scope: Scope) -> Iterator[Memory]:
        return (memory for memory in self._in_scope(scope) if memory.state is State.ACTIVE)

    async def most_used(
        self, scope: Scope, filter: Filter, access_since_us: int, page_size: int, deadline_s: float
    ) -> list[str]:
        """See the port."""
        self._check(deadline_s)
        passing = (m.memory_id for m in self._active(scope) if matches(filter, self._fields_of(m)))
        uses = [(self._recent(memory_id, access_since_us), memory_id) for memory_id in passing]
        return [memory_id for times, memory_id in sorted(uses, reverse=True) if times][:page_size]

    async def find_same_content(
        self, scope: Scope, subject_id: str, kind: Kind, content_hash: str, deadline_s: float
    ) -> list[Memory]:
        """See the port."""
        self._check(deadline_s)
        wanted = (subject_id, kind, content_hash)
        found = [m for m in self._active(scope) if (m.subject_id, m.kind, m.content_hash) == wanted]
        return sorted(found, key=lambda memory: (memory.create_time_us, memory.memory_id))[:100]

    async def find_contents(self, scope: Scope, contents: Sequence[ContentKey], deadline_s: float) -> set[ContentKey]:
        """See the port."""
        self._check(deadline_s)
        held = {ContentKey(m.namespace, m.subject_id, m.kind, m.content_hash) for m in self._active(scope)}
        return held.intersection(contents)

    async def find_fact(self, scope: Scope, subject_id: str, fact_key: str, deadline_s: float) -> Memory | None:
        """See the port."""
        self._check(deadline_s)
        wanted = (subject_id, fact_key)
        return next((m for m in self._active(scope) if fact_key and (m.subject_id, m.fact_key) == wanted), None)

    async def fetch(
        self, scope: Scope, memory_ids: Sequence[str], model: str, access_since_us: int, deadline_s: float
    ) -> list[StoredCandidate]:
        """See the port."""
        self._check(deadline_s)
        found = (stored.find(self._tables, scope, memory_id) for memory_id in dict.fromkeys(memory_ids))
        return [self._candidate(memory, model, access_since_us) for memory in found if memory]

    async def neighbours(
        self, scope: Scope, memories: Sequence[Memory], reach: int, model: str, access_since_us: int, deadline_s: float
    ) -> list[StoredCandidate]:
        """See the port."""
        self._check(deadline_s)
        found = stored.beside(list(self._active(scope)), memories, reach)
        return [self._candidate(memory, model, access_since_us) for memory in found]

    def _candidate(self, memory: Memory, model: str, access_since_us: int) -> StoredCandidate:
        recent = self._recent(memory.memory_id, access_since_us)
        return StoredCandidate(memory, self._embedding(memory, model), recent)

    def _recent(self, memory_id: str, access_since_us: int) -> int:
        since = access_since_us // DAY_US
        return sum(n for (each, day), n in self._tables.accesses.items() if each == memory_id and day >= since)

    def _embedding(self, memory: Memory, model: str) -> Vector | None:
        return self._tables.embeddings.get((memory.memory_id, memory.version, model))

    async def pending(
        self,
        scope: Scope,
        applied: Mapping[str, int],
        model: str,
        access_since_us: int,
        page_size: int,
        deadline_s: float,
    ) -> Pending:
        """See the port."""
        self._check(deadline_s)
        due = [
            (row.position, row.memory_id)
            for index, position in applied.items()
            for row in outbox.rows_of(self._tables, index)
            if row.position > position or row.attempts
        ]
        newest_first = dict.fromkeys(memory_id for _, memory_id in sorted(due, reverse=True))
        found = (stored.find(self._tables, scope, memory_id) for memory_id in newest_first)
        active = [memory for memory in found if memory and memory.state is State.ACTIVE]
        page = tuple(self._candidate(memory, model, access_since_us) for memory in active[:page_size])
        return Pending(page, len(active) > page_size)

    async def history(self, scope: Scope, as_of_us: int, model: str, page_size: int, deadline_s: float) -> Pending:
        """See the port. Both the version and the memory as it stands must lie in the scope."""
        self._check(deadline_s)
        found: list[MemoryVersion] = []
        for memory in self._in_scope(scope):
            if memory.state in (State.QUARANTINED, State.SOFT_DELETED):
                continue
            known = [item for item in self._tables.versions[memory.memory_id] if item.record_time_us <= as_of_us]
            if (
                known
                and known[-1].memory.state is State.ACTIVE
                and scope.covers(memory.namespace, known[-1].memory.pool)
            ):
                found.append(known[-1])
        found.sort(key=lambda item: (item.record_time_us, item.memory.memory_id), reverse=True)
        page = tuple(StoredCandidate(item.memory, self._embedding(item.memory, model), 0) for item in found[:page_size])
        return Pending(page, len(found) > page_size)

    async def find_requests(
        self, scope: Scope, principal_id: str, request_ids: Sequence[str], now_us: int, deadline_s: float
    ) -> list[RequestRecord]:
        """See the port."""
        self._check(deadline_s)
        known = (self._tables.requests.get((principal_id, request_id)) for request_id in dict.fromkeys(request_ids))
        inside = (item for item in known if item and (scope.system or item.namespace in scope.namespaces))
        return [item.record for item in inside if item.record.expire_time_us > now_us]

    async def register_index(self, index: str, deadline_s: float) -> bool:
        """See the port."""
        self._check(deadline_s)
        return outbox.register(self._tables, index)

    async def retire_index(self, index: str, deadline_s: float) -> None:
        """See the port."""
        self._check(deadline_s)
        outbox.retire(self._tables, index)

    async def retire_unseen(self, seconds: float, deadline_s: float) -> list[str]:
        """See the port."""
        self._check(deadline_s)
        return outbox.retire_unseen(self._tables, seconds)

    async def enqueue_all(self, index: str, after_id: str, page_size: int, deadline_s: float) -> list[str]:
        """See the port."""
        self._check(deadline_s)
        return outbox.enqueue_all(self._tables, index, after_id, page_size)

    async def lease_outbox(
        self, index: str, lease: Lease, page_size: int, model: str, deadline_s: float
    ) -> list[OutboxRow]:
        """See the port."""
        self._check(deadline_s)
        leased = outbox.lease(self._tables, index, lease, page_size)
        return [outbox.filled(self._tables, row, model) for row in leased]

    async def renew_outbox(self, lease: Lease, deadline_s: float) -> None:
        """See the port."""
        self._check(deadline_s)
        outbox.renew(self._tables, lease)

    async def settle_outbox(self, index: str, owner: str, rows: Sequence[OutboxRow], deadline_s: float) -> None:
        """See the port."""
        self._check(deadline_s)
        outbox.settle(self._tables, index, owner, rows)

    async def postpone_outbox(self, index: str, owner: str, failures: Sequence[Failure], deadline_s: float) -> None:
        """See the port."""
        self._check(deadline_s)
        outbox.postpone(self._tables, index, owner, failures)

    async def release_outbox(self, owner: str, deadline_s: float) -> None:
        """See the port."""
        self._check(deadline_s)
        outbox.release(self._tables, owner)

    async def doubt_outbox(self, index: str, rows: Sequence[OutboxRow], seconds: float, deadline_s: float) -> None:
        """See the port."""
        self._check(deadline_s)
        outbox.doubt(self._tables, index, rows, seconds)

    async def enqueue_doubted(self, index: str, page_size: int, deadline_s: float) -> int:
        """See the port."""
        self._check(deadline_s)
        return outbox.enqueue_doubted(self._tables, index, page_size)

    async def undelivered(self, memory_id: str, deadline_s: float) -> set[str]:
        """See the port."""
        self._check(deadline_s)
        return outbox.undelivered(self._tables, memory_id)

    async def unapplied_removals(self, after_id: str, page_size: int, deadline_s: float) -> list[str]:
        """See the port."""
        self._check(deadline_s)
        return outbox.unapplied_removals(self._tables, after_id)[:page_size]

    async def progress(self, deadline_s: float) -> list[IndexProgress]:
        """See the port."""
        self._check(deadline_s)
        return [outbox.progress(self._tables, index) for index in sorted(self._tables.indexes)]

    async def dead_letters(
        self, index: str, after_position: int, page_size: int, deadline_s: float
    ) -> list[DeadLetter]:
        """See the port."""
        self._check(deadline_s)
        return outbox.dead_letters(self._tables, index, after_position)[:page_size]

    async def replay_dead_letters(self, index: str, positions: Sequence[int], deadline_s: float) -> int:
        """See the port."""
        self._check(deadline_s)
        return outbox.replay(self._tables, index, positions)

    async def last_position(self, deadline_s: float) -> int:
        """See the port."""
        self._check(deadline_s)
        return self._tables.last_position

    async def scan(self, after_id: str, page_size: int, deadline_s: float, model: str) -> list[OutboxRow]:
        """See the port."""
        self._check(deadline_s)
        memories = self._tables.memories.values()
        ids = sorted(m.memory_id for m in memories if m.state is State.ACTIVE and m.memory_id > after_id)
        rows = [OutboxRow(0, id, self._tables.memories[id].namespace, None, None) for id in ids[:page_size]]
        return [outbox.filled(self._tables, row, model) for row in rows]

    async def tombstones(self, memory_ids: Sequence[str], deadline_s: float) -> set[str]:
        """See the port."""
        self._check(deadline_s)
        return {memory_id for memory_id in memory_ids if memory_id in self._tables.tombstones}

    async def count(self, deadline_s: float) -> int:
        """See the port."""
        self._check(deadline_s)
        return sum(memory.state is State.ACTIVE for memory in self._tables.memories.values())
