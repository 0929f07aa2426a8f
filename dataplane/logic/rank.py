"""Scores candidates by the policy's weights and puts them in order.

    score = Σ weight × signal / Σ weight                                    each signal 0 to 1 (DESIGN §4, §6)

- vector: the embedder's relevance; text: full-text relevance relative to the best. What is unknown counts as 0.
- freshness: exp(−age / time constant), the constant by category, else by kind, else the policy's; age from the event
  time, else the creation time. 0.5 when neither is known; 1 for a time in the future.
- frequency: log(1 + n) / log(1 + n of the most used candidate), n = recent accesses; 0 when none was used.
- credibility: the policy's trust in the source type. task_alignment: 1 when the category is the task type.

When the query names identifiers that a candidate holds, or no candidate has a similarity (the embedder is down), the
vector's weight moves to the text signal, if any candidate has one. Order: a candidate that says just what the query
says first, then those that hold more of its identifiers, so that neither use nor age outvotes an exact match; then
score descending, ties by memory id.

A query that names a time ("last week") moves every score towards the closeness c of the memory's time to it (see
`logic.period`): (score + weight × c) / (1 + weight), the weight that of the policy's `asked_time` (its default, 0.4, is
the best of five on LoCoMo, 2026-11); a memory of unknown time has c = 0. As a filter it drops what has c < 1 instead.

A query that asks for the latest ("now", 最新) is ordered by time among equals in relevance: candidates whose relevance
is at least 0.9 of the best one's come first, newest first; the others follow by score. Identifiers held come before
that too. So the newest memory wins only if it answers the question. Relevance is the weighted mean of vector and text;
0.9 is unmeasured.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, log1p

from dataplane.logic.intent import Intent
from dataplane.logic.period import closeness
from dataplane.logic.strength import strength_at
from dataplane.model import DAY_US, Kind, Memory, SourceType, StoredCandidate
from memplane.policy.model import Credibility, DecayPolicy
from memplane.policy.retrieve import RetrievePolicy, Weights

NEAR_THE_BEST = 0.9
UNKNOWN_TIME = 0.5


@dataclass(frozen=True, slots=True)
class RankInput:
    """A candidate with the embedder's relevance and the relative text score, each 0 to 1, None when unknown.

    `identifiers_held`: how many of the query's identifiers its content holds. `says_query`: its content is the query.
    `words`: tokens of the query that it holds, where the text index tells them.
    """

    candidate: StoredCandidate
    similarity: float | None
    text: float | None
    identifiers_held: int = 0
    says_query: bool = False
    words: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Ranking:
    """What one request ranks by. `now_us` is the reference time; `task_type` "" is none."""

    policy: RetrievePolicy
    decay: DecayPolicy
    credibility: Credibility
    now_us: int
    intent: Intent
    task_type: str = ""


@dataclass(frozen=True, slots=True)
class Signals:
    """What a score is made of, each 0 to 1; `strength` is 0 to `max_strength` and has no weight.

    `asked_time` is the closeness to the time that the query names, 0 where it names none.
    """

    vector: float
    text: float
    freshness: float
    frequency: float
    credibility: float
    task_alignment: float
    strength: float
    asked_time: float = 0.0


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its score and confidence, 0 to 1, and its age at the reference time (None: unknown).

    `words` are those of `RankInput`.
    """

    candidate: StoredCandidate
    score: float
    confidence: float
    signals: Signals
    age_us: int | None
    words: tuple[str, ...] = ()


def rank(items: Sequence[RankInput], ranking: Ranking) -> list[Ranked]:
    """The candidates, best first."""
    weights = effective_weights(items, ranking)
    tables = _tables(items, ranking)
    ranked = []
    for item in items:
        age_us = _age_us(item.candidate.memory, ranking.now_us)
        signals = _signals(item, age_us, ranking, tables)
        if _is_of_another_time(signals, ranking):
            continue
        score = _with_asked_time(_score(signals, weights), signals, ranking)
        ranked.append(Ranked(item.candidate, score, min(1.0, max(0.0, score)), signals, age_us, item.words))
    exact = {item.candidate.memory.memory_id: (item.says_query, item.identifiers_held) for item in items}
    ordered = _ordered(ranked, weights, ranking.intent)
    return sorted(ordered, key=lambda item: exact[item.candidate.memory.memory_id], reverse=True)


def _is_of_another_time(signals: Signals, ranking: Ranking) -> bool:
    filtered = ranking.intent.period is not None and ranking.policy.asked_time.use == "filter"
    return filtered and signals.asked_time < 1.0


def _with_asked_time(score: float, signals: Signals, ranking: Ranking) -> float:
    if ranking.intent.period is None or ranking.policy.asked_time.use != "signal":
        return score
    weight = ranking.policy.asked_time.weight
    return (score + weight * signals.asked_time) / (1.0 + weight)


def effective_weights(items: Sequence[RankInput], ranking: Ranking) -> Weights:
    """The policy's weights with a sum of 1, the vector's moved to text where the rules above say so."""
    given = ranking.policy.weights
    vector, text = given.vector, given.text
    by_text = any(item.identifiers_held for item in items) or all(item.similarity is None for item in items)
    if by_text and any(item.text for item in items):
        vector, text = 0.0, vector + text
    total = given.total()
    return Weights.model_construct(
        vector=vector / total,
        text=text / total,
        freshness=given.freshness / total,
        frequency=given.frequency / total,
        credibility=given.credibility / total,
        task_alignment=given.task_alignment / total,
    )


@dataclass(frozen=True, slots=True)
class _Tables:
    """What every candidate looks up: trust by source type, days by kind and by category, log(1 + most accesses)."""

    trust: tuple[float, ...]
    days_by_kind: tuple[float, ...]
    days_by_category: Mapping[str, float]
    most_used: float
    task_type: str


def _tables(items: Sequence[RankInput], ranking: Ranking) -> _Tables:
    trust = ranking.credibility.model_dump()
    freshness = ranking.policy.freshness
    by_kind = {str(kind): days for kind, days in freshness.by_kind.items()}
    return _Tables(
        trust=(0.0, *(trust[source_type.name] for source_type in SourceType)),
        days_by_kind=(0.0, *(by_kind.get(kind.name, freshness.time_constant_days) for kind in Kind)),
        days_by_category=freshness.by_category,
        most_used=log1p(max((item.candidate.recent_access_count for item in items), default=0)),
        task_type=ranking.task_type.casefold(),
    )


def _signals(item: RankInput, age_us: int | None, ranking: Ranking, tables: _Tables) -> Signals:
    memory, uses = item.candidate.memory, item.candidate.recent_access_count
    aligned = tables.task_type and memory.category.casefold() == tables.task_type
    return Signals(
        item.similarity or 0.0,
        item.text or 0.0,
        _freshness(memory, age_us, tables),
        log1p(uses) / tables.most_used if uses else 0.0,
        tables.trust[memory.source_type],
        1.0 if aligned else 0.0,
        strength_at(memory.strength, memory.strength_time_us, ranking.now_us, ranking.decay),
        _asked_time(age_us, ranking),
    )


def _age_us(memory: Memory, now_us: int) -> int | None:
    if memory.event_time_us is not None:
        return now_us - memory.event_time_us
    return now_us - memory.create_time_us if memory.create_time_us > 0 else None


def _asked_time(age_us: int | None, ranking: Ranking) -> float:
    period = ranking.intent.period
    if period is None or age_us is None:
        return 0.0
    return closeness(period, ranking.now_us - age_us, ranking.policy.asked_time.fade_days)


def _freshness(memory: Memory, age_us: int | None, tables: _Tables) -> float:
    if age_us is None:
        return UNKNOWN_TIME
    if age_us <= 0:
        return 1.0
    days = tables.days_by_category.get(memory.category)
    return exp(-age_us / (DAY_US * (tables.days_by_kind[memory.kind] if days is None else days)))


def _score(signals: Signals, weights: Weights) -> float:
    return (
        weights.vector * signals.vector
        + weights.text * signals.text
        + weights.freshness * signals.freshness
        + weights.frequency * signals.frequency
        + weights.credibility * signals.credibility
        + weights.task_alignment * signals.task_alignment
    )


def _ordered(ranked: list[Ranked], weights: Weights, intent: Intent) -> list[Ranked]:
    ranked.sort(key=lambda item: (-item.score, item.candidate.memory.memory_id))
    if not intent.wants_recent or not ranked:
        return ranked
    floor = NEAR_THE_BEST * max(_relevance(item.signals, weights) for item in ranked)
    near = [item for item in ranked if _relevance(item.signals, weights) >= floor]
    far = [item for item in ranked if _relevance(item.signals, weights) < floor]
    near.sort(key=lambda item: item.age_us if item.age_us is not None else float("inf"))
    return near + far


def _relevance(signals: Signals, weights: Weights) -> float:
    weight = weights.vector + weights.text
    if weight <= 0:
        return max(signals.vector, signals.text)
    return (weights.vector * signals.vector + weights.text * signals.text) / weight
