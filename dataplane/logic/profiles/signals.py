"""What scores are made of, whichever profile is in force."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Signals:
    """What a score is made of, each 0 to 1, but for `strength`, 0 to `max_strength`, which has no weight.

    `freshness` is as the profile counts it: by the memory's age, or by the time since it was last used. `asked_time` is
    the closeness to the time that the query names, 0 where it names none. `boost` is what uses multiply the score by,
    at least 1; 1 in profiles that add them up as `frequency`. `beside` is what the turns beside it say for it, `odds`
    what multiplies the odds of its relevance; see `relevance`.
    """

    vector: float
    text: float
    freshness: float
    frequency: float
    credibility: float
    task_alignment: float
    strength: float
    asked_time: float = 0.0
    boost: float = 1.0
    beside: float = 0.0
    odds: float = 1.0
