"""A hit's score in words, with the numbers of the profile that made it.

The profile `weighted` tells what is to be told of a memory; the others add what each part counts in their formula, 0 to
1, or what it multiplies by.
"""

from dataplane.logic.profiles.signals import Signals
from dataplane.logic.rank import Ranked
from dataplane.model import DAY_US
from memplane.policy.retrieve import RetrievePolicy, Weights

HOUR_US = DAY_US // 24
MAX_WORDS = 10
"""Words of the query that are named."""
SHOWN_NEARNESS = 0.005
SHOWN_SUPPORT = 0.05


def explain(ranked: Ranked, weights: Weights, policy: RetrievePolicy) -> str:
    """Why a hit ranks where it does, e.g. "relevance 0.87, said 3 days ago, recalled 3 times in 30 days, source USER".

    What has no weight and nothing to say is left out. `weights` are those of the answer.
    """
    if policy.profile == "companion":
        return ", ".join(_product(ranked, weights, policy))
    return ", ".join(_sum(ranked, weights, policy))


def _sum(ranked: Ranked, weights: Weights, policy: RetrievePolicy) -> list[str]:
    memory, signals, counts = ranked.candidate.memory, ranked.signals, policy.profile != "weighted"
    recalled = _recalled(ranked.candidate.recent_access_count, policy.frequency_window_days)
    parts = [
        *_relevance("relevance", signals, weights),
        *_words(ranked.words),
        *_beyond_words(ranked),
        _counting(f"said {_ago(ranked.age_us)}", signals.freshness, counts and weights.freshness > 0),
        *_asked_time(signals.asked_time),
        _counting(recalled, signals.frequency, counts and weights.frequency > 0),
        _counting(f"source {memory.source_type.name}", signals.credibility, counts and weights.credibility > 0),
    ]
    if signals.task_alignment > 0 and weights.task_alignment > 0:
        parts.append(f"category {memory.category} fits the task")
    return parts


def _product(ranked: Ranked, weights: Weights, policy: RetrievePolicy) -> list[str]:
    memory, signals = ranked.candidate.memory, ranked.signals
    used = f"never used, said {_ago(ranked.age_us)}" if ranked.idle_us is None else f"last used {_ago(ranked.idle_us)}"
    recalled = _recalled(ranked.candidate.recent_access_count, policy.frequency_window_days)
    in_all = f"{recalled}, {_counted(memory.access_count, 'time')} in all"
    return [
        *_relevance("similarity", signals, weights),
        *_words(ranked.words),
        *_beyond_words(ranked),
        _counting(used, signals.freshness, counts=True),
        *_asked_time(signals.asked_time),
        _counting(in_all, signals.boost, counts=True) if memory.access_count else recalled,
        _counting(f"source {memory.source_type.name}", signals.credibility, counts=True),
    ]


def _counting(words: str, number: float, counts: bool) -> str:
    return f"{words} counts {number:.2f}" if counts else words


def _relevance(name: str, signals: Signals, weights: Weights) -> list[str]:
    named = ((name, signals.vector, weights.vector), ("text match", signals.text, weights.text))
    return [f"{name} {value:.2f}" for name, value, weight in named if value > 0 or weight > 0]


def _words(words: tuple[str, ...]) -> list[str]:
    named = " ".join(words[:MAX_WORDS])
    more = f" and {len(words) - MAX_WORDS} more" if len(words) > MAX_WORDS else ""
    return [f"holds the words {named}{more}"] if words else []


def _beyond_words(ranked: Ranked) -> list[str]:
    """What else moved its relevance."""
    beside, odds = ranked.signals.beside, ranked.signals.odds
    parts = [f"beside turns that answer {beside:.2f}"] if beside >= SHOWN_SUPPORT else []
    if odds == 1.0:
        return parts
    why = f"said by {ranked.said_by}, who is asked about" if ranked.said_by else "itself a question"
    return [*parts, f"{why} (odds × {odds:.2g})"]


def _asked_time(closeness: float) -> list[str]:
    """What is near to the time that was asked about says so."""
    if closeness >= 1.0:
        return ["in the time asked about"]
    return [f"nearness to the time asked about {closeness:.2f}"] if closeness >= SHOWN_NEARNESS else []


def _ago(age_us: int | None) -> str:
    if age_us is None:
        return "at an unknown time"
    if age_us < 0:
        return "for a time to come"
    if age_us < HOUR_US:
        return "within the last hour"
    if age_us < DAY_US:
        return f"{_counted(age_us // HOUR_US, 'hour')} ago"
    return f"{_counted(age_us // DAY_US, 'day')} ago"


def _recalled(times: int, window_days: int) -> str:
    window = _counted(window_days, "day")
    return f"recalled {_counted(times, 'time')} in {window}" if times else f"not recalled in {window}"


def _counted(number: int, unit: str) -> str:
    return f"{number} {unit}" if number == 1 else f"{number} {unit}s"
