"""Ranges of the calendar: a week runs from Monday to Sunday, a day from 00:00:00 to 23:59:59.999999.

Every function keeps the time zone of the moment it is given. Dates outside of the years 1 to 9999 raise ValueError or
OverflowError, which `resolve` catches.
"""

from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

DAY = timedelta(days=1)
TICK = timedelta(microseconds=1)
SATURDAY = 5
UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "quarter": 91, "half": 182, "year": 365}
MONTHS_IN = {"month": 1, "quarter": 3, "half": 6, "year": 12, "decade": 120}
YEAR_EDGE_MONTHS = 2
"""Months that count as the beginning, and as the end, of a year."""
MOST_YEARS_AGO = 200


@dataclass(frozen=True, slots=True)
class TimeRange:
    """From `start` to `end`, both inclusive, start ≤ end; their time zone is that of the reference time.

    `blur` says how far beyond either end the speaker may be off: "two months ago" is one day, give or take weeks.
    """

    start: datetime
    end: datetime
    blur: timedelta = timedelta(0)


def days(first: datetime, last: datetime) -> TimeRange:
    """Both days and all between them; the earlier may come second."""
    first, last = min(first, last), max(first, last)
    return TimeRange(midnight(first), midnight(last) + (DAY - TICK))


def midnight(moment: datetime) -> datetime:
    """The first instant of its day."""
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def on(now: datetime, year: int, month: int, day: int = 1) -> datetime:
    """Midnight of a day, in the time zone of `now`."""
    return midnight(now).replace(year=year, month=month, day=day)


def shift(moment: datetime, unit: str, count: int) -> datetime:
    """`count` units later; the 31st becomes the last day of a shorter month."""
    if unit in MONTHS_IN:
        months = moment.year * 12 + moment.month - 1 + count * MONTHS_IN[unit]
        year, month = divmod(months, 12)
        if not 1 <= year <= 9999:
            raise ValueError(f"year {year} is not of the calendar")
        return moment.replace(year=year, month=month + 1, day=min(moment.day, monthrange(year, month + 1)[1]))
    return moment + timedelta(days=UNIT_DAYS[unit] * count)


def whole(unit: str, moment: datetime) -> TimeRange:
    """The unit of the calendar in which the moment lies."""
    return _WHOLE[unit](moment)


def relative(unit: str, count: int, now: datetime) -> TimeRange:
    """The unit of the calendar `count` units from the present one: −1 is the last one."""
    if unit == "weekend":
        return weekend(count, now)
    first = shift(midnight(now).replace(day=1), unit, count) if unit in MONTHS_IN else shift(now, unit, count)
    return whole(unit, first)


def weekend(count: int, now: datetime) -> TimeRange:
    """0: this week's; −1: the last that has begun before today, on a Sunday that of yesterday; 1: next week's."""
    if count >= 0:
        saturday = now + timedelta(days=SATURDAY - now.weekday() + 7 * count)
    else:
        saturday = now - timedelta(days=((now.weekday() - SATURDAY) % 7 or 7) - 7 * (count + 1))
    return days(saturday, saturday + DAY)


def ago(unit: str, count: int, now: datetime) -> TimeRange:
    """One day, `count` units before now; negative: after. The blur is half a unit, nothing for days."""
    if unit == "weekend":
        return weekend(-count, now)
    if unit in ("year", "decade") and count * MONTHS_IN[unit] > 12 * MOST_YEARS_AGO:
        raise ValueError(f"{count} {unit}s ago is not of anyone's memory")
    day = whole("day", shift(now, unit, -count))
    return day if unit == "day" else replace(day, blur=UNIT_DAYS.get(unit, 3650) * DAY / 2)


def about(few: tuple[int, int], unit: str, now: datetime) -> TimeRange | None:
    """From the one count of units ago to the other, a month counting 30 days. None for years: too vague to use."""
    if unit not in ("day", "week", "month"):
        return None
    size = UNIT_DAYS[unit]
    return days(now - timedelta(days=few[0] * size), now - timedelta(days=few[1] * size))


def rolling(unit: str, count: int, now: datetime) -> TimeRange:
    """From the day `count` units ago until today; negative: from today on."""
    return days(shift(now, unit, -count), now)


def latest_weekend(now: datetime) -> TimeRange:
    """The weekend that began last, today included."""
    return weekend(0 if now.weekday() >= SATURDAY else -1, now)


def since(seconds: int, now: datetime) -> TimeRange:
    """From the day on which it was so many seconds earlier until today; negative: from today on."""
    return days(now - timedelta(seconds=seconds), now)


def month_of(year: int, month: int, now: datetime) -> TimeRange:
    """That month."""
    return whole("month", on(now, year, month))


def past_year(month: int, day: int, now: datetime) -> int:
    """The year in which that day of the year came last, today included."""
    return now.year if (month, day) <= (now.month, now.day) else now.year - 1


def weekday_of(week: int, weekday: int, now: datetime) -> TimeRange:
    """The weekday (0: Monday) of the week that many weeks from the present one."""
    return whole("day", now + timedelta(days=weekday - now.weekday() + 7 * week))


def latest_weekday(weekday: int, now: datetime) -> TimeRange:
    """The weekday (0: Monday) as it came last, today included."""
    return whole("day", now - timedelta(days=(now.weekday() - weekday) % 7))


def hours(day: TimeRange, first: int, last: int) -> TimeRange:
    """Of a day the hours from the one, 0 to 23, to the other, 1 to 24."""
    return TimeRange(day.start + timedelta(hours=first), day.start + (timedelta(hours=last) - TICK))


def season(year: int, first_month: int, now: datetime) -> TimeRange:
    """Three months; winter is told by the year in which it begins."""
    first = on(now, year, first_month)
    return days(first, shift(first, "month", 3) - DAY)


def part(found: TimeRange, which: str) -> TimeRange:
    """A third of a range: `early`, `mid`, `late`; `start` and `end` are the same, but of a year two months."""
    months = 12 * (found.end.year - found.start.year) + found.end.month - found.start.month + 1
    if months == 12 and which in ("start", "end"):
        first, last = (0, YEAR_EDGE_MONTHS) if which == "start" else (12 - YEAR_EDGE_MONTHS, 12)
        return _between("month", first, last, found)
    unit, length = ("month", months) if months % 3 == 0 else ("day", (found.end - found.start).days + 1)
    third = max(1, length // 3)
    shares = {"mid": (third, 2 * third), "late": (2 * third, length), "end": (2 * third, length)}
    return _between(unit, *shares.get(which, (0, third)), found)


def _between(unit: str, first: int, last: int, found: TimeRange) -> TimeRange:
    """From so many units after the beginning of a range to before so many."""
    return days(shift(found.start, unit, first), shift(found.start, unit, last) - DAY)


def _week(moment: datetime) -> TimeRange:
    monday = moment - timedelta(days=moment.weekday())
    return days(monday, monday + 6 * DAY)


def _months(count: int) -> Callable[[datetime], TimeRange]:
    def found(moment: datetime) -> TimeRange:
        first = moment.replace(month=(moment.month - 1) // count * count + 1, day=1)
        final = first.month + count - 1
        return days(first, first.replace(month=final, day=monthrange(first.year, final)[1]))

    return found


def _decade(moment: datetime) -> TimeRange:
    first = moment.year // 10 * 10
    return days(moment.replace(year=max(first, 1), month=1, day=1), moment.replace(year=first + 9, month=12, day=31))


_WHOLE: dict[str, Callable[[datetime], TimeRange]] = {
    "day": lambda moment: days(moment, moment),
    "week": _week,
    "month": _months(1),
    "quarter": _months(3),
    "half": _months(6),
    "year": _months(12),
    "decade": _decade,
}
