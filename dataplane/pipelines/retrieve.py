"""Retrieves candidates from every retriever at once, fuses them, and reads their rows from the record store.

Nothing waits for what it does not need: the text index is not kept waiting by the embedder, and a retriever that is
slow costs the answer its own time limit, not the sum of several. Each step ends early enough for the next to have its
turn before the deadline (`stages.cut`).
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

import numpy as np

from dataplane.ending import end
from dataplane.errors import BackendUnavailable
from dataplane.logic.fusion import fuse
from dataplane.logic.intent import Intent
from dataplane.logic.tokens import query_tokens
from dataplane.model import Candidate, Filter, Memory, Scope, State, StoredCandidate, Vector
from dataplane.pipelines.degraded import BACKEND_UNAVAILABLE, DegradedNotes
from dataplane.pipelines.lineage import RECORD_STORE_RESTORED, Lineage
from dataplane.pipelines.project import Projectors
from dataplane.pipelines.query_embedding import QueryEmbeddings
from dataplane.pipelines.spaces import VectorSpace
from dataplane.pipelines.stages import ObserveStage, cut, timed
from dataplane.ports import ListQuery, Pending, RecordReads, TextIndex
from memplane.policy.effective import NamespacePolicies

MAX_PENDING = 5_000
"""Rows scored from the record store when they are not projected yet; more and the answer is marked degraded."""

ANCHORS = 2
"""Candidates a hit whose neighbours are read. On LoCoMo 1.3 lose .002 of recall@10, 3.3 gain .001 (2026-11)."""

BY_WORDS, BY_MEANING = "found by words and recency", "found by meaning and recency"
BY_USE = "the most recent and the most used memories were looked through"
"""What is done without the vector index or the embedder, without the text index, and without either."""

Vectors = tuple[Vector, ...]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Wording:
    """One thing that is asked for: `texts` are embedded, their mean is its vector; `words` are looked for as words."""

    texts: tuple[str, ...]
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What the retrievers look for, and where. `text` is the `query` with the turns it leans on.

    `wordings` are its parts, at least one; each is looked for by itself.
    """

    space: VectorSpace
    scope: Scope
    query: str
    text: str
    wordings: tuple[Wording, ...]
    leans_on_turns: bool
    filter: Filter
    intent: Intent
    top_k: int
    policies: NamespacePolicies
    access_since_us: int

    @property
    def most_candidates(self) -> int:
        """How many candidates go into ranking."""
        retrieve = self.policies.retrieve
        return self.top_k * max(retrieve.vector_candidates, retrieve.text_candidates)

    @property
    def anchors(self) -> int:
        """How many of the best candidates bring the turns beside them."""
        return self.top_k * ANCHORS


@dataclass(frozen=True, slots=True)
class Asked:
    """A question under way: the vectors of its wordings in the making (none: they could not be made), and its notes."""

    question: Question
    embedding: asyncio.Task[Vectors]
    degraded: DegradedNotes

    @property
    def vectors(self) -> Vectors:
        """The vectors, if they were made by now."""
        return self.embedding.result() if self.embedding.done() else ()

    async def vectors_by(self, deadline_s: float) -> Vectors:
        """The vectors; none, and noted, when they are not made in time."""
        try:
            async with asyncio.timeout_at(deadline_s):
                return await asyncio.shield(self.embedding)
        except TimeoutError:
            self.degraded.add("embedder", BACKEND_UNAVAILABLE, BY_WORDS)
            return ()


@dataclass(frozen=True, slots=True)
class Proposed:
    """What the indexes propose. `near` has each memory once, at its best for any wording.

    `texts` has a list for the words of each wording, and one for the identifiers of the question.
    """

    near: list[Candidate]
    texts: dict[str, list[Candidate]]

    def fused(self, question: Question) -> list[str]:
        """The ids of the best."""
        lists = {"vector": self.near, **self.texts}
        return fuse(lists, question.policies.retrieve.fusion, question.most_candidates)

    def by_words(self, question: Question) -> tuple[dict[str, Candidate], ...]:
        """What the words of each wording found, by id."""
        lists = (self.texts.get(name, ()) for name in _names(question))
        return tuple({item.memory_id: item for item in found} for found in lists)


@dataclass(frozen=True, slots=True)
class Gathered:
    """Rows found, by id, and what is known of their relevance. Without `vectors` the question could not be embedded.

    `vectors` and `text_scores` are index-aligned with the question's wordings. `unindexed_ids` are rows that the text
    index does not know as they are. `cosines` are those that the vector index told, where the rows come without
    embeddings; None: they come with them.
    """

    rows: dict[str, StoredCandidate]
    vectors: Vectors
    text_scores: tuple[dict[str, Candidate], ...] = ()
    unindexed_ids: frozenset[str] = frozenset()
    cosines: Mapping[str, float] | None = None


@dataclass(frozen=True, slots=True)
class RetrieveParts:
    """What retrieving needs of the world."""

    texts: TextIndex
    query_embeddings: QueryEmbeddings
    projectors: Projectors
    lineage: Lineage
    observe_stage: ObserveStage


class Retrieval:
    """Gathers the candidates of a question."""

    def __init__(self, parts: RetrieveParts):
        self._parts = parts

    @asynccontextmanager
    async def asking(self, question: Question, deadline_s: float) -> AsyncIterator[Asked]:
        """Begins to embed the question; what is not needed by the end is given up."""
        degraded = DegradedNotes()
        embedding = asyncio.create_task(self._vectors(question, degraded, cut(deadline_s)))
        try:
            yield Asked(question, embedding, degraded)
        finally:
            if not embedding.done():
                await end(embedding)

    async def now(self, asked: Asked, reads: RecordReads, deadline_s: float) -> Gathered:
        """Candidates as things stand, those not projected yet included.

        What awaits projection is read before the indexes are asked: the other way round, a row applied and settled in
        between would be in neither.
        """
        question, degraded = asked.question, asked.degraded
        for index in self._parts.projectors.unlevel:
            degraded.add(index, "REBUILDING", "old memories may be missing from it until it is rebuilt")
        pending = await self._timed("pending", partial(self._not_projected, asked, reads, deadline_s))
        proposed = await self.propose(asked, frozenset(), cut(deadline_s))
        ids = [*proposed.fused(question), *await self._instead(asked, reads, deadline_s)]
        rows = {row.memory.memory_id: row for row in pending.candidates}
        missing = [memory_id for memory_id in dict.fromkeys(ids) if memory_id not in rows]
        if missing:
            of = (question.scope, missing, question.space.model, question.access_since_us)
            fetch = partial(reads.fetch, *of, deadline_s)
            rows.update((row.memory.memory_id, row) for row in await self._timed("fetch", fetch))
        anchors = [rows[memory_id].memory for memory_id in ids[: question.anchors] if memory_id in rows]
        for row in await self._timed("neighbours", partial(self._beside, asked, reads, anchors, deadline_s)):
            rows.setdefault(row.memory.memory_id, row)
        if self._parts.lineage.is_restored:  # said only of an answer that is made from it after all
            degraded.add("record_store", RECORD_STORE_RESTORED, "answered from an older state: memories may be missing")
        unindexed = frozenset(row.memory.memory_id for row in pending.candidates)
        return Gathered(
            rows,
            asked.vectors,
            proposed.by_words(question),
            frozenset(rows) if degraded.any_of("text_index") else unindexed,
        )

    async def then(self, asked: Asked, reads: RecordReads, as_of_us: int, deadline_s: float) -> Gathered:
        """Candidates as they were recorded at an instant, scored from the record store alone."""
        question = asked.question
        past = await reads.history(question.scope, as_of_us, question.space.model, MAX_PENDING, deadline_s)
        if past.truncated:
            asked.degraded.add(
                "record_store", "HISTORY_TRUNCATED", f"the newest {MAX_PENDING} memories of then were searched"
            )
        rows = {row.memory.memory_id: row for row in past.candidates}
        vectors = await asked.vectors_by(deadline_s)
        return Gathered(rows, vectors, tuple({} for _ in question.wordings), unindexed_ids=frozenset(rows))

    async def propose(self, asked: Asked, but: frozenset[str], deadline_s: float) -> Proposed:
        """What the indexes propose, `but` some by name; an index that does not answer is noted."""
        by_meaning, by_words = partial(self._by_meaning, asked, deadline_s), partial(self._by_words, asked, deadline_s)
        near, texts = await asyncio.gather(
            self._timed("vector", by_meaning) if "vector_index" not in but else _nothing([]),
            self._timed("text", by_words) if "text_index" not in but else _nothing({}),
        )
        return Proposed(near, texts)

    async def _vectors(self, question: Question, degraded: DegradedNotes, deadline_s: float) -> Vectors:
        nothing: Vectors = ()
        embed = partial(self._embedded, question, deadline_s)
        return await self._timed("embed", partial(_or_degraded, embed, nothing, degraded, BY_WORDS))

    async def _embedded(self, question: Question, deadline_s: float) -> Vectors:
        ttl_s, embed = question.policies.cache.query_embedding_ttl_s, self._parts.query_embeddings.embed
        of = (question.space.embedder, question.scope)
        texts = [text for wording in question.wordings for text in wording.texts]
        made = iter(await asyncio.gather(*(embed(*of, text, ttl_s, deadline_s) for text in texts)))
        return tuple(_mean([next(made) for _ in wording.texts]) for wording in question.wordings)

    async def _by_meaning(self, asked: Asked, deadline_s: float) -> list[Candidate]:
        question, retrieve = asked.question, asked.question.policies.retrieve
        is_given_up = asked.degraded.any_of("embedder")
        vectors = asked.vectors if is_given_up else await asked.vectors_by(cut(deadline_s))
        top_k, index = question.top_k * retrieve.vector_candidates, question.space.vectors
        searches = [
            partial(index.search, question.scope, vector, question.filter, top_k, retrieve.vector_ef, deadline_s)
            for vector in vectors
        ]
        nothing: list[Candidate] = []
        found = (_or_degraded(search, nothing, asked.degraded, BY_WORDS) for search in searches)
        return _each_at_best(await asyncio.gather(*found))

    async def _by_words(self, asked: Asked, deadline_s: float) -> dict[str, list[Candidate]]:
        question, texts = asked.question, self._parts.texts
        top_k = question.top_k * question.policies.retrieve.text_candidates
        words = (query_tokens(wording.words) for wording in question.wordings)
        wanted = {**dict(zip(_names(question), words, strict=True)), "identifiers": question.intent.identifiers}
        searches = {
            name: partial(texts.search, question.scope, tokens, question.filter, top_k, deadline_s)
            for name, tokens in wanted.items()
            if tokens
        }
        found = await asyncio.gather(
            *(_or_degraded(search, None, asked.degraded, BY_MEANING) for search in searches.values())
        )
        return {name: hits for name, hits in zip(searches, found, strict=True) if hits is not None}

    async def _not_projected(self, asked: Asked, reads: RecordReads, deadline_s: float) -> Pending:
        applied, question = self._parts.projectors.applied, asked.question
        pending = await reads.pending(
            question.scope, applied, question.space.model, question.access_since_us, MAX_PENDING, deadline_s
        )
        if pending.truncated:
            asked.degraded.add(
                "vector_index", "PROJECTION_BEHIND", f"only the newest {MAX_PENDING} unprojected were searched"
            )
        return pending

    async def _beside(
        self, asked: Asked, reads: RecordReads, anchors: Sequence[Memory], deadline_s: float
    ) -> Sequence[StoredCandidate]:
        """The turns beside the best candidates."""
        question, policy = asked.question, asked.question.policies.retrieve.neighbours
        turns = [memory for memory in anchors if memory.session_id]
        if policy.use == "off" or not turns:
            return ()
        of = (question.scope, turns, policy.reach, question.space.model, question.access_since_us)
        return await reads.neighbours(*of, deadline_s)

    async def _instead(self, asked: Asked, reads: RecordReads, deadline_s: float) -> Sequence[str]:
        """What is looked through in place of an index that did not take part."""
        question, degraded = asked.question, asked.degraded
        if not degraded.any_of("vector_index", "text_index", "embedder"):
            return ()
        listing = ListQuery((State.ACTIVE,), question.filter, question.most_candidates)
        recent = partial(reads.list_memories, question.scope, listing, deadline_s)
        if not (degraded.any_of("text_index") and degraded.any_of("vector_index", "embedder")):
            return [memory.memory_id for memory in await recent()]
        degraded.reword(BY_USE, "vector_index", "text_index", "embedder")
        of = (question.scope, question.filter, question.access_since_us, question.most_candidates)
        found, used = await asyncio.gather(recent(), reads.most_used(*of, deadline_s))
        return [*(memory.memory_id for memory in found), *used]

    async def _timed(self, stage: str, work: Callable[[], Awaitable[T]]) -> T:
        return await timed(self._parts.observe_stage, stage, work)


def _names(question: Question) -> tuple[str, ...]:
    """The lists of the words of each wording; the first bears the name by which the policy weighs it."""
    return tuple("text" if place == 0 else f"text {place + 1}" for place in range(len(question.wordings)))


def _mean(vectors: Sequence[Vector]) -> Vector:
    """The mean, of length 1; of vectors that cancel each other out, the first."""
    total = np.sum(vectors, axis=0, dtype=np.float32)
    length = float(np.linalg.norm(total))
    return np.asarray(total / length, dtype=np.float32) if len(vectors) > 1 and length > 0 else vectors[0]


def _each_at_best(lists: Sequence[Sequence[Candidate]]) -> list[Candidate]:
    """Each memory once, at its highest score, best first."""
    if len(lists) == 1:
        return list(lists[0])
    best: dict[str, Candidate] = {}
    for candidate in sorted((each for found in lists for each in found), key=lambda each: -each.score):
        best.setdefault(candidate.memory_id, candidate)
    return list(best.values())


async def _nothing(value: T) -> T:
    return value


async def _or_degraded(call: Callable[[], Awaitable[T]], instead: T, degraded: DegradedNotes, fallback: str) -> T:
    try:
        return await call()
    except BackendUnavailable as error:
        degraded.add(error.backend, BACKEND_UNAVAILABLE, fallback)
        return instead
