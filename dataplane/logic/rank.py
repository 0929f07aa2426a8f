"""Scores candidates by the policy's profile and puts them in order.

Each profile is a formula over the same signals (`logic.profiles`: see `table`). Signals are 0 to 1 (DESIGN §4, §6):

- vector: the embedder's relevance; text: full-text relevance relative to the best. What is unknown counts as 0.
- freshness: as the profile counts it, by age or by the time since the last use; the age is from the event time, else
  the creation time.
- frequency: log(1 + n) / log(1 + n of the most used candidate), n = recent accesses; 0 when none was used.
- credibility: the policy's trust in the source type. task_alignment: 1 when the category is the task type.

What follows holds in every profile.

When the query names identifiers that a candidate holds, or no candidate has a similarity (the embedder is down), the
vector's weight moves to the text signal, if any candidate has one. Order: a candidate that says just what the query
says first, then those that hold more of its identifiers, so that neither use nor age outvotes an exact match; then
score descending, ties by memory id.

A query that names a time ("last week") moves every score towards the closeness c of the memory's time to it (see
`logic.period`): (score + weight × c) / (1 + weight), the weight that of the policy's `asked_time` (its default, 0.4, is
the best of five on LoCoMo, 2026-11); a memory of unknown time has c = 0. As a filter it drops what has c < 1 instead.

A query that asks for the latest ("now", 最新) is ordered by time among equals in relevance: candidates whose relevance
is at least 0.9 of the best one's come first, newest first; the others follow by score. Identifiers held come before
that too. So the newest memory wins only if it answers the question. For relevance see `logic.profiles.relevance`; 0.9
is unmeasured.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log1p

from dataplane.logic.intent import Intent
from dataplane.logic.neighbours import supports
from dataplane.logic.period import closeness
from dataplane.logic.profiles.formula import Formula, Times
from dataplane.logic.profiles.relevance import by_meaning, by_text, own_relevance, relevance
from dataplane.logic.profiles.signals import Signals
from dataplane.logic.profiles.table import formula_of
from dataplane.logic.strength import strength_at
from dataplane.model import Memory, SourceType, StoredCandidate
from memplane.policy.model import Credibility, DecayPolicy
from memplane.policy.retrieve import RetrievePolicy, Weights

NEAR_THE_BEST = 0.9
TURNS_TEXT = 0.5
"""How much of the text's weight is left where the query leans on the turns before it: their words say less of what is
meant. Of 0.6, recall@10 on MADial zh is .655, of 0.3 .690; en .670 and .709 (2026-11)."""


@dataclass(frozen=True, slots=True)
class RankInput:
    """A candidate with the embedder's relevance and the relative text score, each 0 to 1, None when unknown.

    `identifiers_held`: how many of the query's identifiers its content holds. `says_query`: its content is the query.
    `words`: tokens of the query that it holds, where the text index tells them. `said_by`: who said it, where the query
    names that one. `asks`: it is a question itself.
    """

    candidate: StoredCandidate
    similarity: float | None
    text: float | None
    identifiers_held: int = 0
    says_query: bool = False
    words: tuple[str, ...] = ()
    said_by: str = ""
    asks: bool = False


@dataclass(frozen=True, slots=True)
class Ranking:
    """What one request ranks by. `now_us` is the reference time; `task_type` "" is none.

    `leans_on_turns`: the query was read together with the turns before it.
    """

    policy: RetrievePolicy
    decay: DecayPolicy
    credibility: Credibility
    now_us: int
    intent: Intent
    task_type: str = ""
    leans_on_turns: bool = False


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its score, 0 or more, and confidence, 0 to 1.

    `age_us` and `idle_us` are those of `Times`, `words` and `said_by` those of `RankInput`.
    """

    candidate: StoredCandidate
    score: float
    confidence: float
    signals: Signals
    age_us: int | None
    words: tuple[str, ...] = ()
    idle_us: int | None = None
    said_by: str = ""


def rank(items: Sequence[RankInput], ranking: Ranking) -> list[Ranked]:
    """The candidates, best first."""
    weights = effective_weights(items, ranking)
    tables = _tables(items, ranking)
    ranked = []
    for item, beside in zip(items, _beside(items, weights, ranking), strict=True):
        times = _times(item.candidate.memory, ranking.now_us)
        signals = _signals(item, times, ranking, tables, beside)
        if _is_of_another_time(signals, ranking):
            continue
        score = _with_asked_time(tables.formula.score(signals, weights), signals, ranking)
        confidence = min(1.0, max(0.0, score))
        told = (times.age_us, item.words, times.idle_us, item.said_by)
        ranked.append(Ranked(item.candidate, score, confidence, signals, *told))
    exact = {item.candidate.memory.memory_id: (item.says_query, item.identifiers_held) for item in items}
    ordered = _ordered(ranked, weights, ranking.intent)
    return sorted(ordered, key=lambda item: exact[item.candidate.memory.memory_id], reverse=True)


def _beside(items: Sequence[RankInput], weights: Weights, ranking: Ranking) -> list[float]:
    """What the turns beside each candidate say for it."""
    own = [own_relevance(item.similarity or 0.0, item.text or 0.0, weights) for item in items]
    return supports([item.candidate.memory for item in items], own, ranking.policy.neighbours)


def _odds(item: RankInput, ranking: Ranking) -> float:
    odds = ranking.policy.odds
    return (odds.named_speaker if item.said_by else 1.0) * (odds.asking if item.asks else 1.0)


def _is_of_another_time(signals: Signals, ranking: Ranking) -> bool:
    filtered = ranking.intent.period is not None and ranking.policy.asked_time.use == "filter"
    return filtered and signals.asked_time < 1.0


def _with_asked_time(score: float, signals: Signals, ranking: Ranking) -> float:
    if ranking.intent.period is None or ranking.policy.asked_time.use != "signal":
        return score
    weight = ranking.policy.asked_time.weight
    return (score + weight * signals.asked_time) / (1.0 + weight)


def effective_weights(items: Sequence[RankInput], ranking: Ranking) -> Weights:
    """What counts in the profile's formula, sum 1, the vector's weight moved to text where the rules above say so."""
    weights = formula_of(ranking.policy).weights
    asks_text = any(item.identifiers_held for item in items) or all(item.similarity is None for item in items)
    if asks_text:
        return by_text(weights) if any(item.text for item in items) else weights
    return by_meaning(weights, TURNS_TEXT) if ranking.leans_on_turns else weights


@dataclass(frozen=True, slots=True)
class _Tables:
    """What every candidate looks up: the formula, trust by source type, log(1 + most accesses)."""

    formula: Formula
    trust: tuple[float, ...]
    most_used: float
    task_type: str


def _tables(items: Sequence[RankInput], ranking: Ranking) -> _Tables:
    trust = ranking.credibility.model_dump()
    return _Tables(
        formula=formula_of(ranking.policy),
        trust=(0.0, *(trust[source_type.name] for source_type in SourceType)),
        most_used=log1p(max((item.candidate.recent_access_count for item in items), default=0)),
        task_type=ranking.task_type.casefold(),
    )


def _signals(item: RankInput, times: Times, ranking: Ranking, tables: _Tables, beside: float) -> Signals:
    memory, uses = item.candidate.memory, item.candidate.recent_access_count
    aligned = tables.task_type and memory.category.casefold() == tables.task_type
    return Signals(
        item.similarity or 0.0,
        item.text or 0.0,
        tables.formula.freshness(memory, times),
        log1p(uses) / tables.most_used if uses else 0.0,
        tables.trust[memory.source_type],
        1.0 if aligned else 0.0,
        strength_at(memory.strength, memory.strength_time_us, ranking.now_us, ranking.decay),
        _asked_time(times.age_us, ranking),
        tables.formula.boost(memory),
        beside,
        _odds(item, ranking),
    )


def _times(memory: Memory, now_us: int) -> Times:
    told_us = memory.event_time_us if memory.event_time_us is not None else memory.create_time_us or None
    used_us = memory.last_access_time_us
    return Times(None if told_us is None else now_us - told_us, None if used_us is None else now_us - used_us)


def _asked_time(age_us: int | None, ranking: Ranking) -> float:
    period = ranking.intent.period
    if period is None or age_us is None:
        return 0.0
    return closeness(period, ranking.now_us - age_us, ranking.policy.asked_time.fade_days)


def _ordered(ranked: list[Ranked], weights: Weights, intent: Intent) -> list[Ranked]:
    ranked.sort(key=lambda item: (-item.score, item.candidate.memory.memory_id))
    if not intent.wants_recent or not ranked:
        return ranked
    floor = NEAR_THE_BEST * max(relevance(item.signals, weights) for item in ranked)
    near = [item for item in ranked if relevance(item.signals, weights) >= floor]
    far = [item for item in ranked if relevance(item.signals, weights) < floor]
    near.sort(key=lambda item: item.age_us if item.age_us is not None else float("inf"))
    return near + far
