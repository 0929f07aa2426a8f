"""A hit's score in words."""

from dataplane.logic.rank import Ranked, Signals
from dataplane.model import DAY_US
from memplane.policy.retrieve import Weights

HOUR_US = DAY_US // 24
MAX_WORDS = 10
"""Words of the query that are named."""
SHOWN_NEARNESS = 0.005


def explain(ranked: Ranked, weights: Weights, window_days: int = 30) -> str:
    """Why a hit ranks where it does, e.g. "relevance 0.87, said 3 days ago, recalled 3 times in 30 days, source USER".

    What has no weight and nothing to say is left out. `window_days` is the window in which recalls were counted.
    """
    memory = ranked.candidate.memory
    parts = [
        *_relevance(ranked.signals, weights),
        *_words(ranked.words),
        f"said {_ago(ranked.age_us)}",
        *_asked_time(ranked.signals.asked_time),
        _recalled(ranked.candidate.recent_access_count, window_days),
        f"source {memory.source_type.name}",
    ]
    if ranked.signals.task_alignment > 0 and weights.task_alignment > 0:
        parts.append(f"category {memory.category} fits the task")
    return ", ".join(parts)


def _relevance(signals: Signals, weights: Weights) -> list[str]:
    named = (("relevance", signals.vector, weights.vector), ("text match", signals.text, weights.text))
    return [f"{name} {value:.2f}" for name, value, weight in named if value > 0 or weight > 0]


def _words(words: tuple[str, ...]) -> list[str]:
    named = " ".join(words[:MAX_WORDS])
    more = f" and {len(words) - MAX_WORDS} more" if len(words) > MAX_WORDS else ""
    return [f"holds the words {named}{more}"] if words else []


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
