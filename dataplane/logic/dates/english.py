"""Time expressions of English.

A month or weekday that is also another word ("may", "march", "sat", "april" the name) counts only where its
surroundings make it a time: a day or a year beside it, or a preposition before it. "last Tuesday" is the latest one
before today, "next Tuesday" that of next week; a bare weekday, month or feast is as it came last.
"""

from datetime import datetime, timedelta

from dataplane.logic.dates import english_words as words
from dataplane.logic.dates import numerals
from dataplane.logic.dates.feasts import ENGLISH as FEASTS
from dataplane.logic.dates.grammar import (
    Group,
    Match,
    after,
    any_of,
    feast_in,
    group,
    latest_day,
    latest_feast,
    latest_month,
    rule,
    year_of,
)
from dataplane.logic.dates.numeric import half, quarter
from dataplane.logic.dates.spans import (
    DAY,
    SATURDAY,
    TimeRange,
    about,
    ago,
    days,
    hours,
    latest_weekday,
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

_SHORT_TIMES = {"second": 1, "minute": 60, "hour": 3600}


def _year(match: Match, now: datetime) -> int | None:
    """The year a match names or points to."""
    return year_of(match, now, words.TURNS)


def _in_days(match: Match, now: datetime) -> TimeRange:
    return ago("day", -words.DAY_WORDS[match[0]], now)


def _moved(match: Match, now: datetime, sign: int) -> TimeRange:
    return moved(sign * numerals.english(match["n"]), words.UNITS[match["u"]], now)


def moved(count: int, unit: str, now: datetime) -> TimeRange:
    """The day so many units (a value of `words.UNITS`) later; negative: earlier."""
    if unit in _SHORT_TIMES:
        return whole("day", now + timedelta(seconds=count * _SHORT_TIMES[unit]))
    return ago("week", -2 * count, now) if unit == "fortnight" else ago(unit, -count, now)


def _few_ago(match: Match, now: datetime) -> TimeRange | None:
    return about(words.FEW[match["f"]], words.UNITS[match["u"]], now)


def _rolling(match: Match, now: datetime) -> TimeRange | None:
    groups = match.groupdict()
    unit = {"fortnight": "week", "weekend": "week"}.get(words.UNITS[match["u"]], words.UNITS[match["u"]])
    count = words.FEW[match["f"]][0] if groups.get("f") else numerals.english(groups.get("n") or "a")
    back = 1 if match["t"] in ("last", "past", "previous") else -1
    if unit in _SHORT_TIMES:
        return since(back * count * _SHORT_TIMES[unit], now)
    return rolling(unit, back * count, now)


def _turned(match: Match, now: datetime) -> TimeRange:
    return relative(match["u"], words.TURNS[match["t"]], now)


def _weekday(match: Match, now: datetime) -> TimeRange:
    return latest_weekday(words.WEEKDAYS[match["w"]], now)


def _turned_weekday(match: Match, now: datetime) -> TimeRange:
    turn, weekday = words.TURNS[match["t"]], words.WEEKDAYS[match["w"]]
    if turn < 0:
        return latest_weekday(weekday, now - timedelta(days=1))
    return weekday_of(turn, weekday, now)


def _weekday_of_week(match: Match, now: datetime) -> TimeRange:
    return weekday_of(words.TURNS[match["t"]], words.WEEKDAYS[match["w"]], now)


def _weekdays_ago(match: Match, now: datetime) -> TimeRange:
    weeks = numerals.english(match["n"]) - 1
    return latest_weekday(words.WEEKDAYS[match["w"]], now - timedelta(days=1 + 7 * weeks))


def _date(match: Match, now: datetime) -> TimeRange:
    month, day, year = words.MONTHS[match["m"]], int(match["d"]), _year(match, now)
    return latest_day(month, day, now) if year is None else whole("day", on(now, year, month, day))


def _week_of(match: Match, now: datetime) -> TimeRange:
    return whole("week", _date(match, now).start)


def _days_of_month(match: Match, now: datetime) -> TimeRange:
    first = _date(match, now).start
    return days(first, first.replace(day=int(match["e"])))


def _month(match: Match, now: datetime) -> TimeRange:
    month, year = words.MONTHS[match["m"]], _year(match, now)
    return latest_month(month, now) if year is None else month_of(year, month, now)


def _turned_month(match: Match, now: datetime) -> TimeRange:
    month, turn = words.MONTHS[match["m"]], words.TURNS[match["t"]]
    if turn < 0:
        return latest_month(month, shift(now.replace(day=1), "month", -1))
    return month_of(now.year + (turn if month <= now.month else 0), month, now)


def _day_of_month(match: Match, now: datetime) -> TimeRange:
    month = now if match.groupdict().get("t") is None else shift(now.replace(day=1), "month", words.TURNS[match["t"]])
    day = int(match["d"])
    if match.groupdict().get("t") is None and day > now.day:
        month = shift(now.replace(day=1), "month", -1)
    return whole("day", month.replace(day=day))


def _whole_year(match: Match, now: datetime) -> TimeRange:
    year = _year(match, now)
    return whole("year", on(now, now.year if year is None else year, 1))


def _decade(match: Match, now: datetime) -> TimeRange:
    groups = match.groupdict()
    year = words.DECADES[match["dw"]] if groups["dw"] else int(groups["dd"] or groups["d2"])
    if year < 100:
        year += 2000 if year <= now.year % 100 else 1900
    return whole("decade", on(now, year, 1))


def _part_of_year(match: Match, now: datetime) -> TimeRange:
    year = _year(match, now)
    number = words.NTH[match["nth"]]
    return (quarter if match["p"] == "quarter" else half)(now.year if year is None else year, number, now)


def _numbered_part(match: Match, now: datetime) -> TimeRange:
    year = _year(match, now)
    of_year = quarter if match["p"] == "q" else half
    return of_year(now.year if year is None else year, int(match["n"]), now)


def _season(match: Match, now: datetime) -> TimeRange:
    groups = match.groupdict()
    month, year = words.SEASONS[match["s"]], _year(match, now)
    if year is not None:
        return season(year, month, now)
    turn = words.TURNS[groups.get("t") or "this"]
    found = season(now.year, month, now)
    if turn < 0:
        return found if found.end < now else season(now.year - 1, month, now)
    return season(now.year + 1, month, now) if turn > 0 and found.start <= now else found


def _feast(match: Match, now: datetime) -> TimeRange | None:
    feast, year = FEASTS[match["f"].replace("'", "")], _year(match, now)
    if year is None and match.groupdict().get("t") in ("this", "next"):
        year = now.year
        this = feast_in(feast, year, now)
        year += match["t"] == "next" and this is not None and this.end < now
    return latest_feast(feast, now) if year is None else feast_in(feast, year, now)


def _week_of_month(match: Match, now: datetime) -> TimeRange:
    """The nth seven days of a month, or its nth Saturday and Sunday; the last ones may be its fourth or fifth."""
    month, nth = _month(match, now), words.NTH.get(match["nth"])
    if match["u"] == "week":
        first = month.start + 7 * (nth - 1) * DAY if nth else month.end - 6 * DAY
        return days(first, min(first + 6 * DAY, month.end))
    saturday = month.start + (SATURDAY - month.start.weekday()) % 7 * DAY
    weeks = nth - 1 if nth else (month.end - saturday).days // 7
    return days(saturday + 7 * weeks * DAY, saturday + (7 * weeks + 1) * DAY)


def _edge(match: Match, now: datetime) -> TimeRange:
    groups = match.groupdict()
    if groups.get("m"):
        found = _month(match, now)
    elif groups.get("u"):
        found = relative(match["u"], words.TURNS.get(groups.get("t") or "", 0), now)
    else:
        found = _whole_year(match, now)
    return part(found, words.EDGES[match["e"]])


def _part_of_day(match: Match, now: datetime) -> TimeRange:
    return hours(ago("day", match["t"] == "last", now), *words.PARTS[match["p"]])


_NAMED_PART = rf"(?P<p>{any_of(words.PARTS)})"
_FULL_WEEKDAY = rf"(?P<w>{any_of(words.FULL_WEEKDAYS)})"
_WEEKDAY_BEFORE = rf"(?:(?:{any_of(words.WEEKDAYS)}),? (?:the )?)?"
_FEW = rf"(?:a )?(?P<f>{any_of(words.FEW)})"
_AROUND = r"last|past|previous|next|coming|following"
_FULL_MONTH = rf"(?P<m>{any_of(name for name in words.MONTHS if len(name) > 3 or name == 'may')})"
_CLEAR_MONTH = rf"(?P<m>{any_of(words.CLEAR_MONTHS)})(?!,? ?\d)"
_IN_MONTH = after("in", "since", "during", "until", "till", "throughout", "between", "before", "after")
_TO = r" ?(?:-|–|to|through|until|till|and) ?(?:the )?(?P<e>[12]?\d|3[01])(?:st|nd|rd|th)?"
_IN_A_YEAR = after(
    "in", "during", "since", "until", "till", "before", "after", "from", "to", "throughout", "year", "and"
)
_NTH_OR_LAST = rf"(?P<nth>{any_of((*words.NTH, 'last'))})"
_WITHIN = after("in", "over", "during", "for", "within", "throughout")
_EDGE = rf"(?P<e>{any_of(words.EDGES)})[ -](?:the )?"
_SEASON = rf"(?P<s>{any_of(words.SEASONS)})"
_FEAST = "(?P<f>" + any_of(FEASTS).replace("s\\ ", "'?s\\ ") + ")"
_AT_FEAST = after("on", "at", "over", "during", "since", "around", "before", "after", "until", "till")

_UNIT_WORDS = (*words.UNITS, *(f"{name}s" for name in words.UNITS))

GROUPS: tuple[Group, ...] = (
    group(words.DAY_WORDS, rule(any_of(words.DAY_WORDS), _in_days)),
    group(words.PARTS, rule(rf"(?P<t>this|last) {_NAMED_PART}", _part_of_day)),
    group(
        _UNIT_WORDS,
        rule(rf"{words.COUNT} ?{words.UNIT}s?\.? (?:ago|back)", lambda match, now: _moved(match, now, -1)),
        rule(r"half a year ago", lambda _, now: ago("month", 6, now)),
        rule(rf"{words.COUNT} {words.UNIT}s? from now", lambda match, now: _moved(match, now, 1)),
        rule(rf"in {words.COUNT} {words.UNIT}s?'? time", lambda match, now: _moved(match, now, 1)),
        rule(rf"(?<!.)in {words.COUNT} {words.UNIT}s?(?!.)", lambda match, now: _moved(match, now, 1)),
        rule(rf"{_FEW} {words.UNIT}s? (?:ago|back)", _few_ago),
        rule(rf"(?P<t>{_AROUND}) (?:{words.COUNT}|{_FEW}) {words.UNIT}s?", _rolling),
        rule(r"(?P<t>past) (?P<u>day|week|month|quarter|year|decade)", _rolling),
        rule(rf"{_WITHIN}the (?P<t>last) (?P<u>day|week|month|quarter|year|decade)(?! of| in)", _rolling),
        rule(r"this time last year", lambda _, now: ago("year", 1, now)),
        rule(rf"{words.SHIFT} {words.SPAN}", _turned),
        rule(rf"{words.SPAN} before last", lambda match, now: relative(match["u"], -2, now)),
        rule(rf"{words.SPAN} after next", lambda match, now: relative(match["u"], 2, now)),
        rule(rf"{_EDGE}(?:{words.SHIFT} )?{words.SPAN}", _edge),
    ),
    group(
        (*words.WEEKDAYS, *(f"{name}s" for name in words.WEEKDAYS)),
        rule(_FULL_WEEKDAY, _weekday),
        rule(rf"{after('on')}{words.WEEKDAY}", _weekday),
        rule(rf"{words.SHIFT} {words.WEEKDAY}", _turned_weekday),
        rule(rf"{words.WEEKDAY},? (?:of )?{words.SHIFT} week", _weekday_of_week),
        rule(rf"{words.SHIFT} week(?:'s|,? on)? {words.WEEKDAY}", _weekday_of_week),
        rule(rf"{words.COUNT} {words.WEEKDAY}s ago", _weekdays_ago),
    ),
    group(
        words.MONTHS,
        rule(rf"{_WEEKDAY_BEFORE}{words.MONTH} (?:the )?{words.DAY}{words.IN_YEAR}?", _date),
        rule(rf"{_WEEKDAY_BEFORE}(?:the )?{words.DAY} (?:of )?{words.MONTH}{words.IN_YEAR}?", _date),
        rule(rf"{words.MONTH} {words.DAY}{_TO}{words.IN_YEAR}?", _days_of_month),
        rule(rf"{words.DAY}{_TO} (?:of )?{words.MONTH}{words.IN_YEAR}?", _days_of_month),
        rule(rf"{words.MONTH}{words.IN_YEAR}", _month),
        rule(rf"{_IN_MONTH}{_FULL_MONTH}", _month),
        rule(_CLEAR_MONTH, _month),
        rule(rf"{words.SHIFT} {_FULL_MONTH}", _turned_month),
        rule(rf"{_EDGE}{words.MONTH}{words.IN_YEAR}?", _edge),
        rule(rf"(?:the )?week of {words.MONTH} {words.DAY}{words.IN_YEAR}?", _week_of),
        rule(rf"(?:the )?week of {words.DAY} {words.MONTH}{words.IN_YEAR}?", _week_of),
        rule(rf"{_NTH_OR_LAST} (?P<u>week|weekend) (?:of|in) {words.MONTH}{words.IN_YEAR}?", _week_of_month),
    ),
    group(
        ("st", "nd", "rd", "th"),
        rule(rf"(?:the )?{words.DAY} of {words.SHIFT} month", _day_of_month),
        rule(rf"{after('on')}the {words.DAY}(?<=st|nd|rd|th)(?! (?!of|at|in|from)[a-z])", _day_of_month),
    ),
    group(
        ("####",),
        rule(rf"{_IN_A_YEAR}{words.YEAR}(?![-/.]\d){words.NOT_COUNTED}", _whole_year),
        rule(rf"(?<!.){words.YEAR}(?!.)", _whole_year),
        rule(rf"{_EDGE}{words.YEAR}", _edge),
    ),
    group(
        ("s", *words.DECADES),
        rule(rf"(?P<dd>(?:1[89]|20)\d0)'?s|the '?(?:(?P<d2>[0-9]0)'?s|(?P<dw>{any_of(words.DECADES)}))", _decade),
    ),
    group(("q",), rule(rf"(?P<p>q)(?P<n>[1-4]){words.IN_YEAR}", _numbered_part)),
    group(("h",), rule(rf"(?P<p>h)(?P<n>[12]){words.IN_YEAR}", _numbered_part)),
    group(
        ("quarter", "half"),
        rule(rf"(?P<nth>{any_of(words.NTH)}) (?P<p>quarter|half)(?:{words.IN_YEAR}| of the year)", _part_of_year),
    ),
    group(
        words.SEASONS,
        rule(rf"{words.SHIFT} {_SEASON}", _season),
        rule(rf"{_SEASON}{words.IN_YEAR}", _season),
    ),
    group(
        {word for name in FEASTS for word in (name.split()[0], name.split()[0].removesuffix("s"))},
        rule(rf"(?P<t>last|this|next) {_FEAST}", _feast),
        rule(rf"{_FEAST}{words.IN_YEAR}", _feast),
        rule(rf"{_AT_FEAST}{_FEAST}", _feast),
        rule(rf"(?<!.){_FEAST}(?!.)", _feast),
    ),
)
