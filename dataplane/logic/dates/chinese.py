"""Time expressions of Chinese.

上周三 is Wednesday of last week; a bare weekday, month or feast (周三, 十二月, 国庆节) is as it came last, a bare
quarter or half (上半年) that of this year. 初, 中 and 底 are thirds of a month, and the first, middle and last months
of a year.
"""

import re
from datetime import datetime, timedelta

from dataplane.logic.dates import chinese_words as words
from dataplane.logic.dates.feasts import CHINESE as FEASTS
from dataplane.logic.dates.grammar import (
    Group,
    Match,
    any_of,
    feast_in,
    group,
    han_rule,
    latest_day,
    latest_feast,
    latest_month,
)
from dataplane.logic.dates.numerals import han
from dataplane.logic.dates.numeric import half, quarter
from dataplane.logic.dates.spans import (
    DAY,
    TimeRange,
    about,
    ago,
    days,
    hours,
    latest_weekday,
    latest_weekend,
    month_of,
    on,
    part,
    relative,
    rolling,
    season,
    shift,
    since,
    weekday_of,
    whole,
)

_SECONDS = {"second": 1, "minute": 60, "hour": 3600}
_FEW, _COUPLE = (5, 2), (3, 1)
_HALF_DAYS = {"week": 3, "month": 15}
_BETWEEN = re.compile("[一二两三四五六七八九]{2}")
"""两三天: two or three days."""


def _year(match: Match, now: datetime) -> int | None:
    """The year a match names or points to."""
    groups = match.groupdict()
    if groups.get("y"):
        return han(groups["y"])
    if groups.get("yy"):
        return 2000 + int(groups["yy"])
    return now.year + words.YEARS[groups["r"]] if groups.get("r") else None


def _or_present(match: Match, now: datetime) -> int:
    year = _year(match, now)
    return now.year if year is None else year


def _turn(match: Match) -> int:
    turn: str = match["t"]
    return words.TURNS[turn[0]] * len(turn)


def _date(match: Match, now: datetime) -> TimeRange:
    month, day, year = han(match["m"]), han(match["d"]), _year(match, now)
    return latest_day(month, day, now) if year is None else whole("day", on(now, year, month, day))


def _dates(match: Match, now: datetime) -> TimeRange:
    first = _date(match, now).start
    return days(first, first.replace(day=han(match["e"])))


def _month(match: Match, now: datetime) -> TimeRange:
    month, year = han(match["m"]), _year(match, now)
    return latest_month(month, now) if year is None else month_of(year, month, now)


def _turned_month(match: Match, now: datetime) -> datetime:
    return shift(now.replace(day=1), "month", _turn(match))


def _moved(match: Match, now: datetime, sign: int) -> TimeRange | None:
    unit = words.UNITS[match["u"]]
    if match["n"] in "几数":
        return about(_FEW, unit, now) if sign < 0 else None
    if match["n"] == "半":
        return _half_moved(unit, sign, now)
    if _BETWEEN.fullmatch(match["n"]):
        low, high = sorted(han(digit) for digit in match["n"])
        return about((high, low), unit, now) if sign < 0 else None
    count = sign * han(match["n"])
    if unit in _SECONDS:
        return whole("day", now + timedelta(seconds=count * _SECONDS[unit]))
    if match.groupdict().get("half"):
        return _half_moved(unit, sign, shift(now, unit, count))
    return ago(unit, -count, now)


def _half_moved(unit: str, sign: int, now: datetime) -> TimeRange:
    if unit == "year":
        return ago("month", -6 * sign, now)
    return whole("day", now + sign * _HALF_DAYS.get(unit, 0) * DAY)


def _rolling(match: Match, now: datetime) -> TimeRange:
    unit, back = words.UNITS[match["u"]], -1 if match["t"] in ("未来", "接下来", "今后") else 1
    if match["n"] == "半":
        return (
            rolling("month", back * 6, now) if unit == "year" else rolling("day", back * _HALF_DAYS.get(unit, 0), now)
        )
    count = _FEW[0] if match["n"] in "几数些" else han(match["n"])
    if unit in _SECONDS:
        return since(back * count * _SECONDS[unit], now)
    return rolling(unit, back * count, now)


def _feast(match: Match, now: datetime) -> TimeRange | None:
    feast, year = FEASTS[match["f"]], _year(match, now)
    found = latest_feast(feast, now) if year is None else feast_in(feast, year, now)
    if found is None or not match.groupdict().get("long"):
        return found
    first, last = words.HOLIDAYS.get(match["f"], (0, 2))
    return days(found.start + first * DAY, found.start + last * DAY)


def _decade(match: Match, now: datetime) -> TimeRange:
    short, century = han(match["d"]), match["c"]
    if short >= 1000:
        return whole("decade", on(now, short, 1))
    base = 1900 if century or short > now.year % 100 else 2000
    return whole("decade", on(now, base + short, 1))


def _quarter(match: Match, now: datetime) -> TimeRange:
    return quarter(_or_present(match, now), han(match["n"] or match["q"]), now)


def _half(match: Match, now: datetime) -> TimeRange:
    return half(_or_present(match, now), 1 if match["h"] == "上" else 2, now)


def _edge_of(found: TimeRange, match: Match) -> TimeRange:
    return part(found, words.EDGES[match["edge"]])


def _weekday(match: Match, now: datetime) -> TimeRange:
    return latest_weekday(words.WEEKDAYS[match["w"]], now)


def _turned_weekday(match: Match, now: datetime) -> TimeRange:
    return weekday_of(_turn(match), words.WEEKDAYS[match["w"]], now)


def _same_day(match: Match, now: datetime) -> TimeRange:
    return ago("year", now.year - _or_present(match, now), now)


def _evening(match: Match, now: datetime) -> TimeRange:
    day = ago("day", -words.SHORT_DAYS[match["s"]], now)
    return hours(day, 5, 12) if match["p"] in "早晨" else hours(day, 18, 24)


_AGO = r"(?:之前|以前|前)(?![面后台途端])"
_LATER = r"(?:之后|以后|后)(?![面台来])"
_HALF_MONTHS = r"(?P<n>\d{1,2}|[一二两三四五六七八九十])个半(?P<u>月)"
_APART_UNIT = r"(?<![\d零〇一二两三四五六七八九十百千万几多半整每个])"
_TO = r" ?(?:-|–|—|~|至|到|和) ?"

GROUPS: tuple[Group, ...] = (
    group(
        "天日在儿",
        han_rule(
            rf"(?<![目以之今先日说证声表聪])(?:{any_of(words.DAYS)})",
            lambda match, now: ago("day", -words.DAYS[match[0]], now),
        ),
    ),
    group(
        "早晚晨夜",
        han_rule(r"(?<![证说声发聪如])(?P<s>[前昨今明当])(?P<p>[早晚晨夜])(?![点些])", _evening),
    ),
    group(
        "前后",
        han_rule(rf"{words.COUNT}{words.UNIT}(?P<half>半)?{_AGO}", lambda match, now: _moved(match, now, -1)),
        han_rule(rf"{words.COUNT}{words.UNIT}(?P<half>半)?{_LATER}", lambda match, now: _moved(match, now, 1)),
        han_rule(
            rf"{_HALF_MONTHS}{_AGO}", lambda match, now: _half_moved("month", -1, shift(now, "month", -han(match["n"])))
        ),
        han_rule(rf"前(?:几|些){words.UNIT}", lambda match, now: about(_FEW, words.UNITS[match["u"]], now)),
        han_rule(rf"前两{words.UNIT}", lambda match, now: about(_COUPLE, words.UNITS[match["u"]], now)),
    ),
    group(
        "近去来后这",
        han_rule(rf"(?P<t>最近|过去|近|未来|接下来|今后)的?这?{words.COUNT}{words.UNIT}", _rolling),
        han_rule(rf"(?P<t>这)(?P<n>[几些两三]){words.UNIT}", _rolling),
    ),
    group(
        "周星礼",
        han_rule(rf"{words.TURN}{words.WEEK}", lambda match, now: relative("week", _turn(match), now)),
        han_rule(rf"{words.TURN}{words.WEEK}的?末", lambda match, now: relative("weekend", _turn(match), now)),
        han_rule(rf"{words.TURN}{words.WEEK}的?{words.WEEKDAY}", _turned_weekday),
        han_rule(rf"{_APART_UNIT}周末", lambda _, now: latest_weekend(now)),
        han_rule(rf"{_APART_UNIT}(?:周(?!天)|星期|礼拜){words.WEEKDAY}(?![年岁次])", _weekday),
    ),
    group(
        ("季", "q"),
        han_rule(rf"{words.TURN}季度?", lambda match, now: relative("quarter", _turn(match), now)),
        han_rule(
            rf"{words.TURN}季度?{words.EDGE}",
            lambda match, now: _edge_of(relative("quarter", _turn(match), now), match),
        ),
        han_rule(rf"{words.YEAR}{words.QUARTER}", _quarter),
        han_rule(r"(?<![前这近个])(?:第(?P<n>[一二三四1-4])|(?P<q>[一二三四1-4]))季度", _quarter),
    ),
    group(
        "月",
        han_rule(rf"{words.TURN}月(?![光亮球饼])份?", lambda match, now: relative("month", _turn(match), now)),
        han_rule(
            rf"{words.TURN}月份?{words.EDGE}",
            lambda match, now: _edge_of(whole("month", _turned_month(match, now)), match),
        ),
        han_rule(
            rf"{words.TURN}月份?的?{words.DAY}",
            lambda m, now: whole("day", _turned_month(m, now).replace(day=han(m["d"]))),
        ),
        han_rule(rf"{words.YEAR}?{words.MONTH}", _month),
        han_rule(rf"{words.YEAR}?{words.MONTH}{words.EDGE}", lambda match, now: _edge_of(_month(match, now), match)),
        han_rule(rf"{words.YEAR}?{words.MONTH} ?{words.DAY}", _date),
        han_rule(rf"{words.YEAR}?{words.MONTH} ?{words.FIRST_DAY}{_TO}{words.LAST_DAY}", _dates),
        han_rule(rf"{_APART_UNIT}月{words.EDGE}(?<![头尾])", lambda m, now: _edge_of(relative("month", 0, now), m)),
    ),
    group(
        "年",
        han_rule(rf"{words.YEAR}(?:今[天日]|同期|这个?时候)", _same_day),
        han_rule(words.YEAR, lambda match, now: whole("year", on(now, _or_present(match, now), 1))),
        han_rule(
            rf"{words.YEAR}年?{words.EDGE}", lambda m, now: _edge_of(whole("year", on(now, _or_present(m, now), 1)), m)
        ),
        han_rule(rf"{_APART_UNIT}年{words.EDGE}(?<![头尾])", lambda m, now: _edge_of(relative("year", 0, now), m)),
        han_rule(rf"{words.YEAR}?{words.HALF}", _half),
        han_rule(
            rf"{words.YEAR}(?P<s>[春夏秋冬])[天季]?",
            lambda m, now: season(_or_present(m, now), words.SEASONS[m["s"]], now),
        ),
        han_rule(
            r"(?P<c>上世纪|上个世纪|20世纪|二十世纪)?(?P<d>(?:1[89]|20)\d0|[1-9]0|[二三四五六七八九]十)年代", _decade
        ),
    ),
    group(
        FEASTS,
        han_rule(rf"{words.YEAR}{words.FEAST}{words.HOLIDAY}?", _feast),
        han_rule(rf"{words.FEAST}{words.HOLIDAY}", _feast),
        han_rule(rf"{words.NO_NAME}(?P<f>{any_of(FEASTS.keys() - words.UNCLEAR_FEASTS)})节?", _feast),
    ),
)
