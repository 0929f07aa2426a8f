"""A time told by its distance from another one: "two weeks before 3 May", "the week after Christmas"."""

import re

from dataplane.logic.dates import english_words as words
from dataplane.logic.dates import numerals
from dataplane.logic.dates.english import moved
from dataplane.logic.dates.grammar import Match, any_of
from dataplane.logic.dates.spans import DAY, TimeRange, days, relative, shift

_ONE = ("day", "week", "weekend", "month", "year")
_BEFORE = re.compile(
    rf"\b(?:{words.COUNT} (?P<u>{any_of(words.UNITS)})s?|the (?P<one>{any_of(_ONE)})) (?P<side>before|after) (?:the )?$"
)


def distance(text: str, start: int) -> Match | None:
    """What stands before the expression at `start` and tells how far from it the time is; None where nothing does."""
    return _BEFORE.search(text, 0, start)


def apart(match: Match, found: TimeRange) -> TimeRange:
    """What such a distance and the expression behind it mean together. Raises ValueError or OverflowError."""
    sign = -1 if match["side"] == "before" else 1
    if match["u"]:
        return moved(sign * numerals.english(match["n"]), words.UNITS[match["u"]], found.start)
    if match["one"] == "weekend":
        return relative("weekend", sign, found.start)
    edge = shift(found.start if sign < 0 else found.end, match["one"], sign)
    return days(edge, found.start - DAY) if sign < 0 else days(found.end + DAY, edge)
