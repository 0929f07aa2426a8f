"""How relevant each row is to the question, by meaning and by words, from what the retrievers told."""

from collections.abc import Sequence

import numpy as np

from dataplane.codec import parse_body
from dataplane.logic.overlap import identifiers_held, word_overlap
from dataplane.logic.rank import Ranking, RankInput
from dataplane.model import StoredCandidate, Vector
from dataplane.pipelines.retrieve import Gathered, Question


def rank_inputs(
    rows: Sequence[StoredCandidate], question: Question, gathered: Gathered, ranking: Ranking
) -> list[RankInput]:
    """What rank needs to know of each row, index-aligned."""
    by_meaning = _by_meaning(rows, question, gathered)
    words_count = (
        ranking.policy.weights.text > 0 or bool(ranking.intent.identifiers) or all(x is None for x in by_meaning)
    )
    by_words = WordRelevance(gathered, estimate=words_count)
    named = frozenset(ranking.intent.identifiers)
    contents = [parse_body(row.memory).content for row in rows]
    return [
        RankInput(
            candidate=row,
            similarity=meaning,
            text=by_words.of(row),
            identifiers_held=identifiers_held(named, content) if named else 0,
            says_query=content == question.text,
            words=by_words.held_by(row),
        )
        for row, meaning, content in zip(rows, by_meaning, contents, strict=True)
    ]


def _by_meaning(rows: Sequence[StoredCandidate], question: Question, gathered: Gathered) -> list[float | None]:
    if gathered.vector is None:
        return [None] * len(rows)
    cosines = _cosines(rows, gathered, gathered.vector)
    known = [cosine for cosine in cosines if cosine is not None]
    relevance = iter(question.space.embedder.relevance(question.text, known))
    return [None if cosine is None else next(relevance) for cosine in cosines]


def _cosines(rows: Sequence[StoredCandidate], gathered: Gathered, vector: Vector) -> list[float | None]:
    """By the rows' embeddings or, for rows without any that an index gave, as the vector index said.

    What that one did not list is at most as near as the last that it did.
    """
    if gathered.cosines is not None:
        last = min(gathered.cosines.values(), default=None)
        return [gathered.cosines.get(row.memory.memory_id, last) for row in rows]
    embedded = [row.embedding for row in rows if row.embedding is not None]
    found = iter((np.stack(embedded) @ vector).tolist() if embedded else ())
    return [None if row.embedding is None else next(found) for row in rows]


class WordRelevance:
    """Relevance by words, 0 to 1: the index's score over the best one's.

    A row that the index did not list is estimated by its word overlap (where words count at all): in full when the
    index does not know this version of it, else at most what the last listed one has.
    """

    def __init__(self, gathered: Gathered, *, estimate: bool):
        self._gathered = gathered
        self._asked = frozenset(gathered.query_tokens)
        self._estimate = estimate
        scores = [item.score for item in gathered.text_scores.values()]
        self._best = max(scores, default=0.0)
        self._cut = min(scores, default=0.0) / self._best if self._best > 0 else 1.0

    def held_by(self, row: StoredCandidate) -> tuple[str, ...]:
        """Tokens of the query that this version of a row holds, where the index told them."""
        listed = self._gathered.text_scores.get(row.memory.memory_id)
        return listed.terms if listed is not None and listed.version == row.memory.version else ()

    def of(self, row: StoredCandidate) -> float | None:
        """The relevance of a row; None when it is unknown."""
        memory = row.memory
        listed = self._gathered.text_scores.get(memory.memory_id)
        if listed is not None and listed.version == memory.version and self._best > 0:
            return listed.score / self._best
        if not self._estimate or not self._asked:
            return None
        overlap = word_overlap(self._asked, parse_body(memory).content)
        indexed = listed is None and memory.memory_id not in self._gathered.unindexed_ids
        return overlap * self._cut if indexed else overlap
