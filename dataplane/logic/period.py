"""The period that a question asks about, and how near to it a memory was told.

    closeness = 1 within the period, else exp(−(d − slack) / fade), d = days to its nearer end         0 to 1

Before the period slack is half a day (the asker's time zone is unknown) and what the expression leaves open ("two
months ago"); after it a week more: of what happens people tell on the day or in the days after. The week is unmeasured.

A question has no period where its time is not that of telling: in the future, a birthday, "now" (that is the newest).
"""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import exp

from dataplane.logic.dates import TimeRange, resolve
from dataplane.model import DAY_US

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
ZONE_SLACK_US = DAY_US // 2
TOLD_LATER_US = 7 * DAY_US
_BIRTH = re.compile(r"生日|出生|诞辰|\bbirthday|\bborn\b|\bdate of birth\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Period:
    """From `start_us` to `end_us`, both inclusive; `blur_us` beyond either end is as good."""

    start_us: int
    end_us: int
    blur_us: int = 0


def asked_period(query: str, reference_us: int, *, wants_recent: bool) -> Period | None:
    """The period that a question asks about, its words taken as said at the reference time in UTC."""
    if _BIRTH.search(query):
        return None
    now = _moment(reference_us)
    found = resolve(query, now) if now is not None else None
    if found is None or now is None or found.start > now or (wants_recent and found == _today(now)):
        return None
    return Period(_us(found.start), _us(found.end), found.blur // MICROSECOND)


def closeness(period: Period, time_us: int, fade_days: float) -> float:
    """How near to the period that instant is, 0 to 1, by the formula above."""
    outside_us = max(period.start_us - ZONE_SLACK_US - time_us, time_us - period.end_us - ZONE_SLACK_US - TOLD_LATER_US)
    away_us = outside_us - period.blur_us
    return 1.0 if away_us <= 0 else exp(-away_us / (DAY_US * fade_days))


def _moment(time_us: int) -> datetime | None:
    try:
        return EPOCH + timedelta(microseconds=time_us)
    except OverflowError:
        return None


def _today(now: datetime) -> TimeRange | None:
    return resolve("today", now)


def _us(moment: datetime) -> int:
    return (moment - EPOCH) // MICROSECOND
