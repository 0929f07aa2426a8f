"""What a batch of commits comes to, decided on what stands in the store; the rows to write follow.

Pure. The commits are applied one after the other to a picture of all that they can meet (`Standing`), each wholly or
not at all, in the order of the port: the request (a repeated one stops here), the superseded memories (so that their
fact key is free), the memory, its logs. So commits of one batch may build on each other, and however many they are, a
handful of statements writes them. What the picture cannot know, because another process writes at the same time, the
unique keys of the tables refuse; then the batch is planned anew.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dataplane.adapters.record_rules import reinforced, spoken_of, superseded
from dataplane.changes import Change, Commit, ConflictRecord, DecisionRecord, RequestRecord, Supersession
from dataplane.errors import DuplicateContent, DuplicateFact, DuplicateRequest, StaleVersion
from dataplane.model import Kind, Memory, State, Vector

StatementKey = tuple[str, str, Kind, str]
FactKey = tuple[str, str, str]
RequestKey = tuple[str, str]
EmbeddingKey = tuple[str, int, str]

REFUSALS = (DuplicateContent, DuplicateFact, DuplicateRequest, StaleVersion)


@dataclass(frozen=True, slots=True)
class Keys:
    """All that a batch can meet in the store. `standing_ids` are those of `memory_ids` that should be there."""

    memory_ids: list[str]
    statements: list[StatementKey]
    facts: list[FactKey]
    requests: list[RequestKey]
    standing_ids: list[str]


@dataclass(slots=True)
class Standing:
    """What is there of the keys. `rows` are those in the batch's scope; `taken` are all ids, in it or not.

    `statements` and `facts` name the ACTIVE memory that has a key; `requests` when each known one expires.
    """

    rows: dict[str, Memory] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    statements: dict[StatementKey, str] = field(default_factory=dict)
    facts: dict[FactKey, str] = field(default_factory=dict)
    requests: dict[RequestKey, int] = field(default_factory=dict)
    embedded: set[EmbeddingKey] = field(default_factory=set)


@dataclass(frozen=True, slots=True)
class VersionRow:
    """A version to add."""

    memory: Memory
    commit: Commit
    change: Change


@dataclass(frozen=True, slots=True)
class RequestRow:
    """A request to keep, of which namespace, and the memories that its answer may name."""

    record: RequestRecord
    namespace: str
    memory_ids: frozenset[str]


@dataclass(slots=True)
class Plan:
    """What to write, and what became of each commit.

    `results`: how many outbox changes the batch had made when the commit was done, or why it was refused. `inserted`
    and `updated` are memories as they end up. `expired_us`: requests that expire until then are forgotten; `soonest_us`
    is when the first of those that are known expires.
    """

    results: list[int | Exception] = field(default_factory=list)
    inserted: dict[str, Memory] = field(default_factory=dict)
    updated: dict[str, Memory] = field(default_factory=dict)
    versions: list[VersionRow] = field(default_factory=list)
    embeddings: list[tuple[Memory, str, Vector]] = field(default_factory=list)
    outbox: list[tuple[str, str]] = field(default_factory=list)
    requests: dict[RequestKey, RequestRow] = field(default_factory=dict)
    expired_us: int | None = None
    soonest_us: int | None = None
    decisions: list[tuple[Commit, DecisionRecord]] = field(default_factory=list)
    conflicts: list[tuple[Commit, ConflictRecord]] = field(default_factory=list)

    @property
    def writes(self) -> bool:
        """Whether anything is to be written."""
        return any(not isinstance(result, Exception) for result in self.results)


def keys_of(commits: Sequence[Commit]) -> Keys:
    """The keys to look up before planning, each once and sorted, so that batches lock rows in one order."""
    memories = [commit.memory for commit in commits if commit.memory]
    losers = [supersession.memory_id for commit in commits for supersession in commit.supersedes]
    standing = [commit.memory for commit in commits if commit.memory and commit.expected_version]
    return Keys(
        memory_ids=_once([*(memory.memory_id for memory in memories), *losers]),
        statements=_once(map(statement_of, memories)),
        facts=_once(fact_of(memory) for memory in memories if memory.fact_key),
        requests=_once(request_of(commit.request) for commit in commits if commit.request),
        standing_ids=_once(memory.memory_id for memory in standing),
    )


def _once(found: Iterable[Any]) -> list[Any]:
    return sorted(set(found))


def statement_of(memory: Memory) -> StatementKey:
    """What is unique among ACTIVE memories."""
    return memory.namespace, memory.subject_id, memory.kind, memory.statement_key


def fact_of(memory: Memory) -> FactKey:
    """What is unique among ACTIVE memories that have a fact key."""
    return memory.namespace, memory.subject_id, memory.fact_key


def request_of(request: RequestRecord) -> RequestKey:
    """What is unique among requests."""
    return request.principal_id, request.request_id


def plan(commits: Sequence[Commit], standing: Standing) -> Plan:
    """Applies the commits in order. `standing` is changed on the way and of no use afterwards."""
    made = Plan()
    for commit in commits:
        try:
            _Step(standing, made, commit).apply()
        except REFUSALS as refusal:
            made.results.append(refusal)
        else:
            made.results.append(len(made.outbox))
    return made


class _Step:
    """One commit: first all that can refuse it, then its effects."""

    def __init__(self, standing: Standing, made: Plan, commit: Commit) -> None:
        self._standing = standing
        self._made = made
        self._commit = commit
        self._changed: dict[str, Memory] = {}

    def apply(self) -> None:
        """Adds the commit to the plan, or raises one of REFUSALS and changes nothing."""
        commit = self._commit
        self._refuse_known_request(commit)
        losers = [self._superseded(item) for item in commit.supersedes]
        if commit.memory is None:
            self._keep(losers)
            return
        current = self._standing_row(commit.memory)
        added = commit.memory.version > commit.expected_version
        memory = reinforced(current, commit.memory) if current and not added else commit.memory
        self._refuse_duplicate(memory, is_new=current is None)
        self._keep(losers)
        self._store(memory, current, added=added)

    def _refuse_known_request(self, commit: Commit) -> None:
        if commit.request is None:
            return
        expires_us = self._standing.requests.get(request_of(commit.request))
        if expires_us is not None and expires_us > commit.now_us:
            raise DuplicateRequest(commit.request.request_id)

    def _find(self, memory_id: str) -> Memory | None:
        """The memory as this commit leaves it so far; None when it is outside the commit's scope."""
        memory = self._changed.get(memory_id) or self._standing.rows.get(memory_id)
        return memory if memory and self._commit.scope.covers(memory.namespace, memory.pool) else None

    def _superseded(self, supersession: Supersession) -> Memory:
        memory_id, expected = supersession.memory_id, supersession.expected_version
        current = self._find(memory_id)
        if current is None or current.version != expected or current.state is not State.ACTIVE:
            raise StaleVersion(memory_id, expected, current.version if current else 0)
        self._changed[memory_id] = superseded(current, supersession, self._commit)
        return self._changed[memory_id]

    def _standing_row(self, memory: Memory) -> Memory | None:
        expected = self._commit.expected_version
        current = self._find(memory.memory_id)
        if current and current.namespace != memory.namespace:
            raise StaleVersion(memory.memory_id, expected, 0)
        version = current.version if current else 0
        if version != expected:
            raise StaleVersion(memory.memory_id, expected, version)
        return current

    def _refuse_duplicate(self, memory: Memory, *, is_new: bool) -> None:
        if is_new and memory.memory_id in self._standing.taken:
            raise StaleVersion(memory.memory_id, 0, 0)  # its id is taken outside the scope
        if memory.state is not State.ACTIVE:
            return
        if holder := self._other(memory, self._standing.statements.get(statement_of(memory))):
            raise DuplicateContent(holder)
        if memory.fact_key and (holder := self._other(memory, self._standing.facts.get(fact_of(memory)))):
            raise DuplicateFact(holder)

    def _other(self, memory: Memory, holder: str | None) -> str | None:
        """The holder of a key, unless it is the memory itself or this commit supersedes it."""
        return None if holder in (None, memory.memory_id) or holder in self._changed else holder

    def _keep(self, losers: list[Memory]) -> None:
        for loser in losers:
            self._put(loser)
            self._made.versions.append(VersionRow(loser, self._commit, Change.SUPERSEDED))
            self._made.outbox.append((loser.memory_id, loser.namespace))
        self._log()

    def _store(self, memory: Memory, current: Memory | None, *, added: bool) -> None:
        self._put(memory)
        if added:
            self._made.versions.append(VersionRow(memory, self._commit, self._commit.change))
        changed = added or current is None or memory.state is not current.state
        if self._embed(memory) or changed:
            self._made.outbox.append((memory.memory_id, memory.namespace))

    def _put(self, memory: Memory) -> None:
        standing, memory_id = self._standing, memory.memory_id
        before = standing.rows.get(memory_id)
        if before and before.state is State.ACTIVE:
            standing.statements.pop(statement_of(before), None)
            standing.facts.pop(fact_of(before), None)
        if memory.state is State.ACTIVE:
            standing.statements[statement_of(memory)] = memory_id
            if memory.fact_key:
                standing.facts[fact_of(memory)] = memory_id
        standing.rows[memory_id] = memory
        is_new = memory_id in self._made.inserted or memory_id not in standing.taken
        (self._made.inserted if is_new else self._made.updated)[memory_id] = memory
        standing.taken.add(memory_id)

    def _embed(self, memory: Memory) -> bool:
        """Keeps the commit's embedding; True when there was none of this version and model before."""
        vector, model = self._commit.embedding, self._commit.embedding_model
        key = (memory.memory_id, memory.version, model)
        if vector is None or key in self._standing.embedded:
            return False
        self._standing.embedded.add(key)
        self._made.embeddings.append((memory, model, vector))
        return True

    def _log(self) -> None:
        made, commit = self._made, self._commit
        if commit.request:
            self._keep_request(commit.request)
        if commit.decision:
            made.decisions.append((commit, commit.decision))
        made.conflicts += [(commit, conflict) for conflict in commit.conflicts]

    def _keep_request(self, request: RequestRecord) -> None:
        """Forgets what has expired by now, and keeps this one."""
        known, made, now_us = self._standing.requests, self._made, self._commit.now_us
        if made.soonest_us is None:
            made.soonest_us = min(known.values(), default=request.expire_time_us)
        if made.soonest_us <= now_us:
            for key in [key for key, expires_us in known.items() if expires_us <= now_us]:
                del known[key]
                made.requests.pop(key, None)
            made.soonest_us = min(known.values(), default=request.expire_time_us)
        made.soonest_us = min(made.soonest_us, request.expire_time_us)
        known[request_of(request)] = request.expire_time_us
        made.requests[request_of(request)] = RequestRow(request, self._commit.namespace, spoken_of(self._commit))
        made.expired_us = max(now_us, made.expired_us or now_us)
