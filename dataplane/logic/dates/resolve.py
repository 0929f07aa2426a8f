"""The range of time that a text speaks of."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class TimeRange:
    """From `start` to `end`, both inclusive; of the same time zone as the reference, or of none like it."""

    start: datetime
    end: datetime


def resolve(text: str, now: datetime) -> TimeRange | None:
    """The range of the first time expression in the text, or None where there is none. Never raises."""
    if text.strip().casefold() == "today":
        return TimeRange(now.replace(hour=0, minute=0, second=0, microsecond=0), now)
    return None
