"""The range of time that a text speaks of, found by the grammars of several languages.

The earliest expression counts, at one place the longest. What joins it to the next one makes a range of both
("between A and B", 从A到B); a word before or behind it opens it to one side ("since A", A以来); a part of the day
behind a single day narrows it. What comes again ("every Monday", 每周一) is no time.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from dataplane.logic.dates import chinese, english, european, numeric
from dataplane.logic.dates.apart import apart, distance
from dataplane.logic.dates.grammar import Match, Rule, any_of, folded, words_of
from dataplane.logic.dates.spans import DAY, TICK, TimeRange, hours, midnight

_KANA = re.compile(r"[\u3040-\u30ff]")
"""Japanese: the Chinese grammar would read half of it."""
_GROUPS_WITHOUT_CHINESE = (*numeric.GROUPS, *english.GROUPS, *european.GROUPS)
_GROUPS = (*_GROUPS_WITHOUT_CHINESE, *chinese.GROUPS)
_REPEATED = re.compile(r"(?:\b(?:every|each|most)|每个?|逢) ?$")
_JOINED = re.compile(r" ?(?:to|until|till|and|through|thru|-|–|—|~|至|到|和|与) ?(?:the )?")
_AND = re.compile(r" ?(?:and|和|与) ?(?:the )?")
_TWO = re.compile(r"(?:\b(?:between|from) (?:the )?|从|自|在)$")
_OPENS = re.compile(r"\b(?P<word>since|until|till|before|after) (?:the )?$")
_OPENED = re.compile(r" ?(?:(?P<since>以来|至今|到现在|起)|(?P<before>之前|以前|前)|(?P<after>之后|以后|后))")
_PARTS_OF_DAY = {
    **{"morning": (5, 12), "afternoon": (12, 18), "evening": (17, 24), "night": (18, 24)},
    **{"凌晨": (0, 6), "清晨": (5, 9), "早上": (5, 12), "早晨": (5, 12), "上午": (6, 12), "中午": (11, 14)},
    **{"下午": (12, 18), "傍晚": (17, 20), "晚上": (18, 24), "夜里": (18, 24), "深夜": (21, 24)},
}
"""Hours from which and to which each goes."""
_PART_OF_DAY = re.compile(rf" ?(?:的|in the |at |,)? ?(?P<part>{any_of(_PARTS_OF_DAY)})")


@dataclass(frozen=True, slots=True)
class _Found:
    """An expression in the text, the rule it follows, and its range; None: it says a time that does not exist."""

    match: Match
    rule: Rule
    range: TimeRange | None

    @property
    def start(self) -> int:
        """Where it begins."""
        return self.match.start()

    @property
    def end(self) -> int:
        """Where it ends."""
        return self.match.end()


def resolve(text: str, now: datetime) -> TimeRange | None:
    """The range of the first time expression within the first thousand characters; None where there is none.

    Never raises. `now` is the time when the text was said; the range is in its time zone. An open side ends at the
    first or last instant of the calendar, and at the end of today for "since".
    """
    plain = folded(text)
    expressions = _expressions(plain, now)
    return _tried(lambda: _joined(plain, expressions, now)) if expressions else None


def _expressions(text: str, now: datetime) -> list[_Found]:
    """Those that do not overlap, from left to right."""
    kept: list[_Found] = []
    for each in sorted(_matches(text, now), key=lambda each: (each.start, -each.end)):
        if not kept or each.start >= kept[-1].end:
            kept.append(each)
    return [each for each in kept if each.range is not None and not _REPEATED.search(text, 0, each.start)]


def _matches(text: str, now: datetime) -> Iterator[_Found]:
    for rule in _rules(text):
        for match in rule.pattern.finditer(text):
            yield _Found(match, rule, _meaning(rule, match, now))


def _meaning(rule: Rule, match: Match, now: datetime) -> TimeRange | None:
    return _tried(lambda: rule.meaning(match, now))


def _tried(meaning: Callable[[], TimeRange | None]) -> TimeRange | None:
    try:
        return meaning()
    except (ValueError, OverflowError):  # a day or year that the calendar lacks
        return None


def _rules(text: str) -> Iterator[Rule]:
    """Those that may match, by the words of the text: a short question needs a tenth of all."""
    words = words_of(text)
    for group in _GROUPS if not _KANA.search(text) else _GROUPS_WITHOUT_CHINESE:
        if not words.isdisjoint(group.words):
            yield from group.rules


def _joined(text: str, expressions: Sequence[_Found], now: datetime) -> TimeRange | None:
    first = expressions[0]
    if len(expressions) > 1:
        joint = _JOINED.fullmatch(text, first.end, expressions[1].start)
        if text[first.end : expressions[1].start] == " before ":
            return _before(first, expressions[1])
        if joint and (_TWO.search(text, 0, first.start) or not _AND.fullmatch(joint[0])):
            return _from_to(first, expressions[1])
    assert first.range is not None
    return _opened(text, first, _narrowed(text, first, first.range), now)


def _from_to(first: _Found, second: _Found) -> TimeRange:
    """Both and what lies between; the first is the latest of its kind before the second."""
    assert first.range is not None
    assert second.range is not None
    begins, ends = first.range, second.range
    if begins.start > ends.start:
        begins = _meaning(first.rule, first.match, ends.start) or begins
    return TimeRange(min(begins.start, ends.start), max(begins.end, ends.end))


def _before(first: _Found, second: _Found) -> TimeRange | None:
    """The first as it was meant at the time of the second: "last weekend before 10 April"."""
    assert second.range is not None
    return _meaning(first.rule, first.match, second.range.start)


def _narrowed(text: str, first: _Found, found: TimeRange) -> TimeRange:
    part = _PART_OF_DAY.match(text, first.end)
    if part is None or found.end - found.start != DAY - TICK:
        return found
    return hours(found, *_PARTS_OF_DAY[part["part"]])


def _opened(text: str, first: _Found, found: TimeRange, now: datetime) -> TimeRange | None:
    if (away := distance(text, first.start)) is not None:
        return apart(away, found)
    before, behind = _OPENS.search(text, 0, first.start), _OPENED.match(text, first.end)
    word = before["word"] if before else (behind and behind.lastgroup) or ""
    if word == "since":
        return TimeRange(found.start, max(found.end, midnight(now) + (DAY - TICK)))
    if word == "after":
        return TimeRange(found.end, datetime.max.replace(tzinfo=now.tzinfo))
    if word == "before":
        return TimeRange(datetime.min.replace(tzinfo=now.tzinfo), found.start)
    if word in ("until", "till"):
        return TimeRange(datetime.min.replace(tzinfo=now.tzinfo), found.end)
    return found
