"""The range of time that a text speaks of, found by the grammars of several languages.

The earliest expression counts, at one place the longest. What joins it to the next one makes a range of both
("between A and B", 从A到B); a word before or behind it opens it to one side ("since A", A以来).
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from dataplane.logic.dates import chinese, english, european, numeric
from dataplane.logic.dates.grammar import Rule, folded
from dataplane.logic.dates.spans import DAY, TICK, TimeRange, midnight

_KANA = re.compile(r"[\u3040-\u30ff]")
_CYRILLIC = re.compile(r"[\u0400-\u04ff]")
_HAN = re.compile(r"[\u3400-\u9fff]")
_REPEATED = re.compile(r"(?:\b(?:every|each|most)\s+|每个?|逢)$")
_JOINED = re.compile(r" ?(?:to|until|till|and|through|thru|-|–|—|~|至|到|和|与) ?(?:the )?")
_TWO = re.compile(r"(?:\b(?:between|from)\s+(?:the )?|从|自|在)$")
_BOTH = re.compile(r" ?(?:and|和|与) ?(?:the )?")
_OPENS = re.compile(r"\b(?P<word>since|until|till|before|after)\s+(?:the )?$")
_SINCE = re.compile(r" ?(?:以来|至今|到现在|起)")
_BEFORE = re.compile(r" ?(?:之前|以前|前)")
_AFTER = re.compile(r" ?(?:之后|以后|后)")


@dataclass(frozen=True, slots=True)
class _Found:
    """Where an expression stands in the text, and its range; None: it says a time that does not exist."""

    start: int
    end: int
    range: TimeRange | None


def resolve(text: str, now: datetime) -> TimeRange | None:
    """The range of the first time expression within the first LONGEST characters; None where there is none.

    Never raises. `now` is the time when the text was said; the range is in its time zone. An open side ends at the
    first or last day of the calendar, or at the end of today for "since".
    """
    plain = folded(text)
    expressions = _expressions(plain, now)
    return _joined(plain, expressions, now) if expressions else None


def _expressions(text: str, now: datetime) -> list[_Found]:
    """Those that do not overlap, from left to right."""
    found = sorted(_matches(text, now), key=lambda each: (each.start, -each.end))
    kept: list[_Found] = []
    for each in found:
        if not kept or each.start >= kept[-1].end:
            kept.append(each)
    return [each for each in kept if each.range is not None and not _REPEATED.search(text, 0, each.start)]


def _matches(text: str, now: datetime) -> Iterator[_Found]:
    for rule in _rules(text):
        for match in rule.pattern.finditer(text):
            try:
                meaning = rule.meaning(match, now)
            except (ValueError, OverflowError):
                meaning = None
            yield _Found(match.start(), match.end(), meaning)


def _rules(text: str) -> Iterator[Rule]:
    yield from numeric.RULES
    yield from english.RULES
    yield from european.SHARED_RULES
    yield from european.LATIN_RULES
    if _CYRILLIC.search(text):
        yield from european.CYRILLIC_RULES
    if _HAN.search(text) and not _KANA.search(text):
        yield from chinese.RULES


def _joined(text: str, expressions: Sequence[_Found], now: datetime) -> TimeRange | None:
    first = expressions[0]
    assert first.range is not None
    if len(expressions) > 1 and (second := expressions[1].range) is not None:
        joint = _JOINED.fullmatch(text, first.end, expressions[1].start)
        if joint and (_TWO.search(text, 0, first.start) or not _BOTH.fullmatch(joint[0])):
            return TimeRange(min(first.range.start, second.start), max(first.range.end, second.end))
    return _opened(text, first, first.range, now)


def _opened(text: str, first: _Found, found: TimeRange, now: datetime) -> TimeRange:
    before = _OPENS.search(text, 0, first.start)
    word = before["word"] if before else ""
    if word == "since" or _SINCE.match(text, first.end):
        return TimeRange(found.start, max(found.end, midnight(now) + DAY - TICK))
    if word == "after" or _AFTER.match(text, first.end):
        return TimeRange(found.end, datetime.max.replace(tzinfo=now.tzinfo))
    if word == "before" or _BEFORE.match(text, first.end):
        return TimeRange(datetime.min.replace(tzinfo=now.tzinfo), found.start)
    if word in ("until", "till"):
        return TimeRange(datetime.min.replace(tzinfo=now.tzinfo), found.end)
    return found
