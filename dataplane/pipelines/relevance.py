"""How relevant each row is to the question, by meaning and by words, from what the retrievers told."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dataplane.codec import parse_body
from dataplane.logic.overlap import identifiers_held, word_overlap
from dataplane.logic.profiles.relevance import own_relevance
from dataplane.logic.rank import Ranking, RankInput
from dataplane.logic.speech import asks, named_speakers
from dataplane.logic.tokens import query_tokens
from dataplane.model import StoredCandidate, Vector
from dataplane.pipelines.retrieve import Gathered, Question

MOST_RAISED = 3.0
"""So that what answers nothing is not made an answer. Unmeasured."""


@dataclass(frozen=True, slots=True)
class _Told:
    """What one wording says of each row, index-aligned: relevance by meaning and by words."""

    meaning: list[float | None]
    words: list[float | None]


def rank_inputs(
    rows: Sequence[StoredCandidate], question: Question, gathered: Gathered, ranking: Ranking
) -> list[RankInput]:
    """What rank needs to know of each row, index-aligned."""
    messages = [parse_body(row.memory) for row in rows]
    told = _best_of(_told(rows, question, gathered, ranking), ranking)
    speakers = named_speakers(question.query, {message.speaker for message in messages})
    named = frozenset(ranking.intent.identifiers)
    return [
        RankInput(
            candidate=row,
            similarity=meaning,
            text=words,
            identifiers_held=identifiers_held(named, message.content) if named else 0,
            says_query=message.content == question.text,
            words=_held_by(row, gathered),
            said_by=message.speaker if message.speaker in speakers else "",
            asks=asks(message.content),
        )
        for row, meaning, words, message in zip(rows, told.meaning, told.words, messages, strict=True)
    ]


def _told(rows: Sequence[StoredCandidate], question: Question, gathered: Gathered, ranking: Ranking) -> list[_Told]:
    """What each wording says."""
    found = []
    for place, wording in enumerate(question.wordings):
        meaning = _by_meaning(rows, question, gathered, place)
        words_count = (
            ranking.policy.weights.text > 0 or bool(ranking.intent.identifiers) or all(x is None for x in meaning)
        )
        by_words = WordRelevance(gathered, place, wording.words, estimate=words_count)
        found.append(_Told(meaning, [by_words.of(row) for row in rows]))
    return found


def _best_of(told: Sequence[_Told], ranking: Ranking) -> _Told:
    """Each row as the wording sees it that it answers best.

    Wordings are put on the level of the one with the best answer, raised by at most MOST_RAISED.
    """
    if len(told) == 1:
        return told[0]
    own = [_own(each, ranking) for each in told]
    tops = [max(values, default=0.0) for values in own]
    raised = [min(MOST_RAISED, max(tops) / top) if top > 0 else 1.0 for top in tops]
    levelled = zip(
        *([value * factor for value in values] for values, factor in zip(own, raised, strict=True)), strict=True
    )
    best = [values.index(max(values)) for values in levelled]
    return _Told(
        [_times(told[n].meaning[row], raised[n]) for row, n in enumerate(best)],
        [_times(told[n].words[row], raised[n]) for row, n in enumerate(best)],
    )


def _own(told: _Told, ranking: Ranking) -> list[float]:
    weights = ranking.policy.weights
    pairs = zip(told.meaning, told.words, strict=True)
    return [own_relevance(meaning or 0.0, words or 0.0, weights) for meaning, words in pairs]


def _times(value: float | None, factor: float) -> float | None:
    return None if value is None else min(1.0, value * factor)


def _held_by(row: StoredCandidate, gathered: Gathered) -> tuple[str, ...]:
    """Tokens of the query that this version of a row holds, where the index told them."""
    listed = (scores.get(row.memory.memory_id) for scores in gathered.text_scores)
    terms = (item.terms for item in listed if item is not None and item.version == row.memory.version)
    return tuple(dict.fromkeys(term for each in terms for term in each))


def _by_meaning(
    rows: Sequence[StoredCandidate], question: Question, gathered: Gathered, place: int
) -> list[float | None]:
    if not gathered.vectors:
        return [None] * len(rows)
    cosines = _cosines(rows, gathered, gathered.vectors[place])
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

    def __init__(self, gathered: Gathered, place: int, words: str, *, estimate: bool):
        self._gathered = gathered
        self._listed = gathered.text_scores[place]
        self._asked = frozenset(query_tokens(words))
        self._estimate = estimate
        scores = [item.score for item in self._listed.values()]
        self._best = max(scores, default=0.0)
        self._cut = min(scores, default=0.0) / self._best if self._best > 0 else 1.0

    def of(self, row: StoredCandidate) -> float | None:
        """The relevance of a row; None when it is unknown."""
        memory = row.memory
        listed = self._listed.get(memory.memory_id)
        if listed is not None and listed.version == memory.version and self._best > 0:
            return listed.score / self._best
        if not self._estimate or not self._asked:
            return None
        overlap = word_overlap(self._asked, parse_body(memory).content)
        indexed = listed is None and memory.memory_id not in self._gathered.unindexed_ids
        return overlap * self._cut if indexed else overlap
