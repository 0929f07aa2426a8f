"""A search: authorise, read the intent, retrieve, drop what may not be shown, rank, hear whose word it is, cut, record.

Retrievers and fusion select candidates; rank scores them, always with every signal. Rows come from the record store by
id, which drops what an index still holds but the store does not; rows not projected yet are scored from the store.

While the record store is down, or too slow for the caller's deadline, candidates and rows come from the indexes alone
(`pipelines.without_records`), unless the question is about the past (`as_of`). Such an answer leaves no trace: no
retrieval, no access, nothing in the cache; and it has no position. A cached answer is as right as ever then: it is
found only under the stamp of its scope, which every change that was acknowledged replaces.
"""

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from dataplane.changes import AccessRecord, RetrievalRecord
from dataplane.codec import fields_of
from dataplane.errors import BackendUnavailable
from dataplane.logic.diversity import diverse
from dataplane.logic.expiry import has_expired
from dataplane.logic.filters import matches
from dataplane.logic.intent import read_intent
from dataplane.logic.parts import asked_parts
from dataplane.logic.profiles.table import least_confidence
from dataplane.logic.rank import Ranked, Ranking, effective_weights, rank
from dataplane.logic.strength import is_cold
from dataplane.model import DAY_US, EVERYTHING, Filter, Memory, Scope, State, StoredCandidate
from dataplane.pipelines.answer_cache import AnswerCache, Found, Wish
from dataplane.pipelines.caller import Caller
from dataplane.pipelines.consensus import by_consensus
from dataplane.pipelines.degraded import DegradedNotes
from dataplane.pipelines.record import Recorder
from dataplane.pipelines.redact import redacted_text
from dataplane.pipelines.relevance import rank_inputs
from dataplane.pipelines.retrieve import Asked, Gathered, Question, Retrieval, Wording
from dataplane.pipelines.sight import Sight, narrowed, sight_of
from dataplane.pipelines.spaces import Spaces
from dataplane.pipelines.stages import ObserveStage, cut, timing
from dataplane.pipelines.without_records import BACKEND, NOT_AS_FRESH, WithoutRecords
from dataplane.ports import Clock, RecordReads, RecordStore
from memplane.errors import InvalidField, Unavailable
from memplane.policy.effective import NamespacePolicies, lineage
from memplane.policy.retrieve import Weights

CONTEXT_TURNS = 2
"""How many of the last turns are read together with the query for its meaning: of 1, 2, 4 and 6 none is better on both
MADial sets (2026-11)."""
WORD_TURNS = 8
"""How many of the last turns lend their words. With 8 recall@10 on MADial zh is .704 and en .708, with 2 .673 and .698
(2026-11)."""


POOL = 3
"""Ranked memories a hit among which diverse ones are chosen. Unmeasured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchQuery:
    """A question, checked. `top_k` 0 and `min_confidence` None: the policy's; `at_least_as_fresh` 0: none."""

    namespaces: tuple[str, ...]
    query: str
    include_shared: bool = False
    filter: Filter = EVERYTHING
    top_k: int = 0
    min_confidence: float | None = None
    context_turns: tuple[str, ...] = ()
    task_type: str = ""
    reference_time_us: int | None = None
    as_of_us: int | None = None
    record_access: bool = True
    at_least_as_fresh: int = 0
    include_cold: bool = False
    explain: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchAnswer:
    """The hits, best first, what counted in their scores, and what the answer says about itself.

    `position` 0: nothing is known of what it holds, for it was made without the record store.
    """

    hits: tuple[Ranked, ...]
    weights: Weights
    policies: NamespacePolicies
    search_id: str
    position: int
    omitted_namespaces: tuple[str, ...]
    degraded: DegradedNotes
    now_us: int


@dataclass(frozen=True, slots=True)
class SearchParts:
    """What a search needs of the world."""

    store: RecordStore
    answers: AnswerCache
    spaces: Spaces
    retrieval: Retrieval
    without_records: WithoutRecords
    recorder: Recorder
    clock: Clock
    new_search_id: Callable[[], str]
    observe_stage: ObserveStage


@dataclass(frozen=True, slots=True)
class _Source:
    """Candidates, the position up to which they are whole, and where they were read (None: not in the store)."""

    gathered: Gathered
    position: int
    reads: RecordReads | None


class SearchPipeline:
    """Answers questions."""

    def __init__(self, parts: SearchParts):
        self._parts = parts

    async def search(self, query: SearchQuery, caller: Caller, deadline_s: float) -> SearchAnswer:
        """The memories that answer.

        Raises PermissionDenied when no namespace is readable, Unavailable when nothing is left to answer from.
        """
        scope, omitted = _authorise(query, caller)
        policies = caller.snapshot.policies.for_namespace(scope.namespaces[0])
        query = await _redacted(query, caller, scope)

        async def find() -> Found:
            return await self._find(query, caller, scope, policies, deadline_s)

        now_s = asyncio.get_running_loop().time
        begun_s = now_s()
        found = await self._parts.answers.through(self._wish(query, caller, scope, policies), find, deadline_s)
        if found.is_known:
            self._parts.observe_stage("cached", now_s() - begun_s)
        search_id = self._parts.new_search_id()
        if found.is_recorded:
            self._record(search_id, query, scope, caller, found.hits)
        return SearchAnswer(
            hits=found.hits,
            weights=found.weights,
            policies=policies,
            search_id=search_id,
            position=found.position,
            omitted_namespaces=omitted,
            degraded=found.degraded,
            now_us=self._parts.clock.now_us(),
        )

    def _wish(self, query: SearchQuery, caller: Caller, scope: Scope, policies: NamespacePolicies) -> Wish:
        told = replace(query, record_access=True, at_least_as_fresh=0, explain=False)
        ttl_s = policies.retrieve.query_cache_ttl_s if query.as_of_us is None else 0
        sight = sight_of(caller, scope).words
        words = f"{caller.snapshot.version} {sight} {self._parts.spaces.current.model} {told!r}"
        return Wish(scope, words, ttl_s, query.at_least_as_fresh)

    async def _find(
        self, query: SearchQuery, caller: Caller, scope: Scope, policies: NamespacePolicies, deadline_s: float
    ) -> Found:
        sight = sight_of(caller, scope)
        query = replace(query, filter=narrowed(query.filter, sight.filter()))
        question = self._question(query, scope, policies)
        async with self._parts.retrieval.asking(question, deadline_s) as asked:
            source = await self._source(asked, query, deadline_s)
        now_us = self._parts.clock.now_us()
        gathered = source.gathered
        shown = [row for row in gathered.rows.values() if _may_show(row.memory, question, query, caller, now_us)]
        shown = [row for row in shown if sight.covers(row.memory)]
        if query.as_of_us is not None and not sight.is_whole:
            shown = await self._readable_now(shown, scope, sight, deadline_s)
        with timing(self._parts.observe_stage, "rank"):
            ranked, weights = self._rank(question, query, gathered, shown, now_us)
        return Found(tuple(ranked), weights, source.position, asked.degraded, source.reads)

    async def _readable_now(
        self, shown: list[StoredCandidate], scope: Scope, sight: Sight, deadline_s: float
    ) -> list[StoredCandidate]:
        """Those whose memory, as it stands, may still be read."""
        ids, model = [row.memory.memory_id for row in shown], self._parts.spaces.current.model
        try:
            current = await self._parts.store.fetch(scope, ids, model, 0, deadline_s)
        except BackendUnavailable as error:
            raise Unavailable(error.backend) from error
        readable = {row.memory.memory_id for row in current if sight.covers(row.memory)}
        return [row for row in shown if row.memory.memory_id in readable]

    async def _source(self, asked: Asked, query: SearchQuery, deadline_s: float) -> "_Source":
        """The candidates, from the record store or else from the indexes."""
        try:
            return await self._from_records(asked, query, cut(deadline_s))
        except BackendUnavailable as error:
            if query.as_of_us is not None:
                raise Unavailable(error.backend) from error
        try:
            gathered = await self._parts.without_records.gather(asked, deadline_s)
        except BackendUnavailable as error:
            raise Unavailable(BACKEND) from error
        if query.at_least_as_fresh:
            asked.degraded.reword(NOT_AS_FRESH, BACKEND)
        return _Source(gathered, 0, None)

    async def _from_records(self, asked: Asked, query: SearchQuery, deadline_s: float) -> "_Source":
        reads = await self._parts.store.reads(query.at_least_as_fresh, deadline_s)
        position = await _position(reads, query, deadline_s)
        if query.as_of_us is None:
            gathered = await self._parts.retrieval.now(asked, reads, deadline_s)
        else:
            gathered = await self._parts.retrieval.then(asked, reads, query.as_of_us, deadline_s)
        return _Source(gathered, position, reads)

    def _question(self, query: SearchQuery, scope: Scope, policies: NamespacePolicies) -> Question:
        turns = [turn for turn in query.context_turns if turn]
        text = "\n".join((*turns[-CONTEXT_TURNS:], query.query))
        window_us = policies.retrieve.frequency_window_days * DAY_US
        return Question(
            space=self._parts.spaces.current,
            scope=scope,
            query=query.query,
            text=text,
            wordings=_wordings(query.query, text, turns[-WORD_TURNS:]),
            leans_on_turns=bool(turns),
            filter=query.filter,
            intent=read_intent(query.query, policies.retrieve.recency_words, self._reads_times_at(query, policies)),
            top_k=query.top_k or policies.retrieve.top_k,
            policies=policies,
            access_since_us=self._parts.clock.now_us() - window_us,
        )

    def _reads_times_at(self, query: SearchQuery, policies: NamespacePolicies) -> int | None:
        if policies.retrieve.asked_time.use == "off":
            return None
        return _reference_us(query, self._parts.clock.now_us())

    def _rank(
        self,
        question: Question,
        query: SearchQuery,
        gathered: Gathered,
        shown: Sequence[StoredCandidate],
        now_us: int,
    ) -> tuple[list[Ranked], Weights]:
        ranking = Ranking(
            policy=question.policies.retrieve,
            decay=question.policies.decay,
            credibility=question.policies.credibility,
            now_us=_reference_us(query, now_us),
            intent=question.intent,
            task_type=query.task_type,
            leans_on_turns=question.leans_on_turns,
        )
        items = rank_inputs(shown, question, gathered, ranking)
        least = least_confidence(question.policies.retrieve, query.min_confidence)
        ranked = [item for item in rank(items, ranking) if item.confidence >= least]
        ranked = _diverse(ranked, question)
        heard = by_consensus(ranked, question.text, question.policies.guard)
        return heard[: question.top_k], effective_weights(items, ranking)

    def _record(
        self, search_id: str, query: SearchQuery, scope: Scope, caller: Caller, ranked: Sequence[Ranked]
    ) -> None:
        now_us = self._parts.clock.now_us()
        decay = caller.snapshot.policies.for_namespace(scope.namespaces[0]).decay
        retrieval = RetrievalRecord(
            search_id=search_id,
            namespace=scope.namespaces[0],
            principal_id=caller.principal_id,
            time_us=now_us,
            policy_version=caller.snapshot.version,
            query_hash=hashlib.sha256(query.query.encode()).hexdigest(),
            hits=tuple((item.candidate.memory.memory_id, item.score) for item in ranked),
        )
        counts = query.record_access and query.as_of_us is None
        accesses = [
            AccessRecord(
                memory.memory_id, memory.namespace, now_us, decay.hit_increment, decay.max_strength, decay.monthly_decay
            )
            for memory in (item.candidate.memory for item in ranked if counts)
        ]
        self._parts.recorder.note(retrieval, accesses)


def _wordings(query: str, text: str, turns: Sequence[str]) -> tuple[Wording, ...]:
    """What is asked for: the parts of a query, or the query and its turns as one."""
    if turns:
        return (Wording((query, text), "\n".join((*turns, query))),)
    return tuple(Wording((part,), part) for part in asked_parts(query))


def _diverse(ranked: list[Ranked], question: Question) -> list[Ranked]:
    """The hits with what repeats others behind.

    As they are where an exact or the newest answer is asked for, or what a conversation brings to mind: there recall@10
    on MADial loses .006 (zh) and .012 (en; 2026-11).
    """
    weight, intent = question.policies.retrieve.diversity, question.intent
    if weight == 0 or intent.identifiers or intent.wants_recent or question.leans_on_turns:
        return ranked
    head, tail = ranked[: POOL * question.top_k], ranked[POOL * question.top_k :]
    embeddings = [hit.candidate.embedding for hit in head]
    similarity = question.space.embedder.calibrate
    order = diverse([hit.score for hit in head], embeddings, similarity, weight, question.top_k)
    return [*(head[place] for place in order), *tail]


async def _position(reads: RecordReads, query: SearchQuery, deadline_s: float) -> int:
    """The newest committed position; everything up to it is in the answer."""
    position = await reads.last_position(deadline_s)
    if query.at_least_as_fresh > position:
        raise InvalidField.one(
            "at_least_as_fresh", "names a write that this record store does not have; was the token made elsewhere?"
        )
    return position


def _reference_us(query: SearchQuery, now_us: int) -> int:
    """The "now" of freshness: as the caller says, else the time that is asked about, else now."""
    given = (query.reference_time_us, query.as_of_us)
    return next((time_us for time_us in given if time_us is not None), now_us)


async def _redacted(query: SearchQuery, caller: Caller, scope: Scope) -> SearchQuery:
    """The query masked like the memories that it looks for, so that a number finds its form, and is kept nowhere.

    As it is where one of the namespaces keeps what others mask.
    """
    sensitive = {caller.snapshot.policies.for_namespace(namespace).sensitive for namespace in scope.namespaces}
    if len(sensitive) > 1:
        return query
    policy = sensitive.pop()
    words = await redacted_text(query.query, policy)
    turns = [await redacted_text(turn, policy) for turn in query.context_turns]
    return replace(query, query=words, context_turns=tuple(turns))


def _authorise(query: SearchQuery, caller: Caller) -> tuple[Scope, tuple[str, ...]]:
    readable, omitted = caller.readable(query.namespaces)
    wants_shared = query.include_shared or not caller.snapshot.policies.for_namespace(readable[0]).default_isolation
    if not wants_shared:
        return Scope(readable), omitted
    above = dict.fromkeys(name for namespace in readable for name in lineage(namespace) if name not in readable)
    shared = tuple(name for name in above if caller.may("memory.read", name))
    unread = tuple(name for name in above if name not in shared) if query.include_shared else ()
    return Scope(readable, shared), (*omitted, *unread)


def _may_show(memory: Memory, question: Question, query: SearchQuery, caller: Caller, now_us: int) -> bool:
    if memory.state is not State.ACTIVE:
        return False
    if has_expired(memory, now_us if query.as_of_us is None else query.as_of_us):
        return False
    decay = caller.snapshot.policies.for_namespace(memory.namespace).decay
    if not query.include_cold and query.as_of_us is None and is_cold(memory, now_us, decay):
        return False
    return question.filter == EVERYTHING or matches(question.filter, fields_of(memory))
