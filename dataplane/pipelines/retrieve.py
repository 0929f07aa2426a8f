"""Retrieves candidates from every retriever at once, fuses them, and reads their rows from the record store."""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from dataplane.errors import BackendUnavailable
from dataplane.logic.fusion import fuse
from dataplane.logic.intent import Intent
from dataplane.logic.tokens import query_tokens
from dataplane.model import Candidate, Filter, Scope, State, StoredCandidate, Vector
from dataplane.pipelines.degraded import DegradedNotes
from dataplane.pipelines.project import Projectors
from dataplane.pipelines.query_embedding import QueryEmbeddings
from dataplane.pipelines.spaces import VectorSpace
from dataplane.pipelines.stages import ObserveStage, timed
from dataplane.ports import ListQuery, Pending, RecordReads, TextIndex
from memplane.policy.effective import NamespacePolicies

MAX_PENDING = 5_000
"""Rows scored from the record store when they are not projected yet; more and the answer is marked degraded."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What the retrievers look for, and where. `text` is the query with the turns it leans on."""

    space: VectorSpace
    reads: RecordReads
    scope: Scope
    text: str
    filter: Filter
    intent: Intent
    top_k: int
    policies: NamespacePolicies
    access_since_us: int


@dataclass(frozen=True, slots=True)
class Gathered:
    """Rows found, by id, and what is known of their relevance. `vector` None: the question could not be embedded.

    `unindexed_ids` are rows that the text index does not know as they are.
    """

    rows: dict[str, StoredCandidate]
    vector: Vector | None
    query_tokens: tuple[str, ...]
    text_scores: dict[str, Candidate] = field(default_factory=dict)
    unindexed_ids: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RetrieveParts:
    """What retrieving needs of the world."""

    texts: TextIndex
    query_embeddings: QueryEmbeddings
    projectors: Projectors
    observe_stage: ObserveStage


class Retrieval:
    """Gathers the candidates of a question."""

    def __init__(self, parts: RetrieveParts):
        self._parts = parts

    async def now(self, question: Question, degraded: DegradedNotes, deadline_s: float) -> Gathered:
        """Candidates as things stand, those not projected yet included.

        What awaits projection is read before the indexes are asked: the other way round, a row applied and settled in
        between would be in neither.
        """
        words = query_tokens(question.text)
        for index in self._parts.projectors.unlevel:
            degraded.add(index, "REBUILDING", "old memories may be missing from it until it is rebuilt")
        observe = self._parts.observe_stage
        vector, pending = await asyncio.gather(
            timed(observe, "embed", self._vector(question, degraded, deadline_s)),
            timed(observe, "pending", self._not_projected(question, degraded, deadline_s)),
        )
        near, texts = await asyncio.gather(
            timed(observe, "vector", self._by_meaning(question, vector, degraded, deadline_s)),
            timed(observe, "text", self._by_words(question, words, degraded, deadline_s)),
        )
        ids = await self._select(question, near, texts, degraded, deadline_s)
        rows = {row.memory.memory_id: row for row in pending.candidates}
        missing = [memory_id for memory_id in ids if memory_id not in rows]
        if missing:
            fetch = question.reads.fetch(
                question.scope, missing, question.space.model, question.access_since_us, deadline_s
            )
            fetched = await timed(self._parts.observe_stage, "fetch", fetch)
            rows.update((row.memory.memory_id, row) for row in fetched)
        scores = {item.memory_id: item for item in texts.get("text", ())}
        unindexed = frozenset(row.memory.memory_id for row in pending.candidates)
        return Gathered(rows, vector, words, scores, frozenset(rows) if degraded.any_of("text_index") else unindexed)

    async def then(self, question: Question, as_of_us: int, degraded: DegradedNotes, deadline_s: float) -> Gathered:
        """Candidates as they were recorded at an instant, scored from the record store alone."""
        vector, past = await asyncio.gather(
            self._vector(question, degraded, deadline_s),
            question.reads.history(question.scope, as_of_us, question.space.model, MAX_PENDING, deadline_s),
        )
        if past.truncated:
            degraded.add(
                "record_store", "HISTORY_TRUNCATED", f"the newest {MAX_PENDING} memories of then were searched"
            )
        rows = {row.memory.memory_id: row for row in past.candidates}
        return Gathered(rows, vector, query_tokens(question.text), unindexed_ids=frozenset(rows))

    async def _vector(self, question: Question, degraded: DegradedNotes, deadline_s: float) -> Vector | None:
        ttl_s = question.policies.cache.query_embedding_ttl_s
        embedding = self._parts.query_embeddings.embed(
            question.space.embedder, question.scope, question.text, ttl_s, deadline_s
        )
        return await _or_degraded(embedding, None, degraded, "found by words and recency")

    async def _by_meaning(
        self, question: Question, vector: Vector | None, degraded: DegradedNotes, deadline_s: float
    ) -> list[Candidate]:
        if vector is None:
            return []
        retrieve = question.policies.retrieve
        top_k = question.top_k * retrieve.vector_candidates
        vectors = question.space.vectors
        search = vectors.search(question.scope, vector, question.filter, top_k, retrieve.vector_ef, deadline_s)
        return await _or_degraded(search, [], degraded, "found by words and recency")

    async def _by_words(
        self, question: Question, words: tuple[str, ...], degraded: DegradedNotes, deadline_s: float
    ) -> dict[str, list[Candidate]]:
        top_k = question.top_k * question.policies.retrieve.text_candidates
        asked = {"text": words, "identifiers": question.intent.identifiers}
        found: dict[str, list[Candidate]] = {}
        for name, tokens in asked.items():
            if tokens:
                search = self._parts.texts.search(question.scope, tokens, question.filter, top_k, deadline_s)
                found[name] = await _or_degraded(search, [], degraded, "found by meaning and recency")
        return found

    async def _not_projected(self, question: Question, degraded: DegradedNotes, deadline_s: float) -> Pending:
        applied = self._parts.projectors.applied
        pending = await question.reads.pending(
            question.scope, applied, question.space.model, question.access_since_us, MAX_PENDING, deadline_s
        )
        if pending.truncated:
            degraded.add(
                "vector_index", "PROJECTION_BEHIND", f"only the newest {MAX_PENDING} unprojected were searched"
            )
        return pending

    async def _select(
        self,
        question: Question,
        near: list[Candidate],
        texts: dict[str, list[Candidate]],
        degraded: DegradedNotes,
        deadline_s: float,
    ) -> Sequence[str]:
        retrieve = question.policies.retrieve
        top_n = question.top_k * max(retrieve.vector_candidates, retrieve.text_candidates)
        ids = fuse({"vector": near, **texts}, retrieve.fusion, top_n)
        if not degraded.any_of("vector_index", "text_index", "embedder"):
            return ids
        listing = ListQuery((State.ACTIVE,), question.filter, top_n)
        recent = await question.reads.list_memories(question.scope, listing, deadline_s)
        return list(dict.fromkeys((*ids, *(memory.memory_id for memory in recent))))


async def _or_degraded(call: Awaitable[T], instead: T, degraded: DegradedNotes, fallback: str) -> T:
    try:
        return await call
    except BackendUnavailable as error:
        degraded.add(error.backend, "BACKEND_UNAVAILABLE", fallback)
        return instead
