"""Dates written in figures, in any language: 2024-01-15, 15.01.2024, 2024-03, 2024-Q1, Q1 2024, 2024-W07, H1 2024.

A figure that is part of something longer (an address, a version, a telephone number, a path) is none.
"""

from datetime import date, datetime

from dataplane.logic.dates.grammar import LETTERS, Group, Match, group, rule
from dataplane.logic.dates.spans import TimeRange, days, month_of, on, relative, shift, whole

_YEAR = r"(?P<y>(?:1[89]|20|21)\d\d)"
_APART = rf"(?<![{LETTERS}./\\@-])"
_ENDS = rf"(?![./-]?[{LETTERS}/\\@])"
_CLOCK = r"(?:[t ]\d\d?:\d\d(?::\d\d(?:\.\d+)?)?(?:z|[+-]\d\d:?\d\d)?)?"


def _ymd(match: Match, now: datetime) -> TimeRange:
    return whole("day", on(now, int(match["y"]), int(match["m"]), int(match["d"])))


def _dotted(match: Match, now: datetime) -> TimeRange:
    """Day first; month first where only that can be, or where strokes part them and both can be (as in the US)."""
    first, second = int(match["a"]), int(match["b"])
    month_first = second > 12 or (match["s"] == "/" and first <= 12)
    month, day = (first, second) if month_first else (second, first)
    return whole("day", on(now, int(match["y"]), month, day))


def _month(match: Match, now: datetime) -> TimeRange:
    return month_of(int(match["y"]), int(match["m"]), now)


def quarter(year: int, number: int, now: datetime) -> TimeRange:
    """The quarter, 1 to 4, of a year."""
    return whole("quarter", on(now, year, 3 * number - 2))


def half(year: int, number: int, now: datetime) -> TimeRange:
    """The half, 1 or 2, of a year."""
    return whole("half", on(now, year, 6 * number - 5))


def _part_of_year(match: Match, now: datetime) -> TimeRange:
    groups = match.groupdict()
    year = int(groups.get("y") or now.year)
    number = int(match["n"])
    return quarter(year, number, now) if match["k"] == "q" else half(year, number, now)


def _last_part(match: Match, now: datetime) -> TimeRange:
    """The quarter or half as it began last before the present one."""
    unit = "quarter" if match["k"] == "q" else "half"
    present = _part_of_year(match, now)
    return present if present.end < now else relative(unit, 0, shift(present.start, "year", -1))


def _week(match: Match, now: datetime) -> TimeRange:
    first = date.fromisocalendar(int(match["y"]), int(match["w"]), 1)
    last = date.fromisocalendar(int(match["y"]), int(match["w"]), 7)
    return days(on(now, first.year, first.month, first.day), on(now, last.year, last.month, last.day))


GROUPS: tuple[Group, ...] = (
    group(
        ("####",),
        rule(rf"{_APART}{_YEAR}(?P<s>[-/.])(?P<m>\d\d?)(?P=s)(?P<d>\d\d?){_CLOCK}{_ENDS}", _ymd),
        rule(rf"(?<!version ){_APART}(?P<a>\d\d?)(?P<s>[/.-])(?P<b>\d\d?)(?P=s){_YEAR}{_ENDS}", _dotted),
        rule(rf"{_APART}{_YEAR}[-/](?P<m>0[1-9]|1[0-2]){_ENDS}", _month),
        rule(
            rf"{_YEAR}[- /]?(?:(?P<k>q)(?P<n>[1-4])|w(?P<w>[0-5]\d))",
            lambda m, n: (_part_of_year if m["k"] else _week)(m, n),
        ),
        rule(rf"{_YEAR}[- /]?(?P<k>h)(?P<n>[12])", _part_of_year),
        rule(rf"(?P<k>q)(?P<n>[1-4])[- /,]{{0,2}}(?:of )?(?:fy)?{_YEAR}", _part_of_year),
        rule(rf"(?P<k>h)(?P<n>[12])[- /,]{{0,2}}(?:of )?(?:fy)?{_YEAR}", _part_of_year),
    ),
    group(
        ("q",),
        rule(r"last (?:(?P<k>q)(?P<n>[1-4]))", _last_part),
        rule(r"(?:in|during|of|for|since|this) (?:(?P<k>q)(?P<n>[1-4]))", _part_of_year),
    ),
)
