"""The words of English that the grammar speaks of, and patterns made of them."""

from dataplane.logic.dates import numerals
from dataplane.logic.dates.grammar import any_of

_MONTHS = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
]
MONTHS = {name: number for number, name in enumerate(_MONTHS, 1)}
CLEAR_MONTHS = frozenset(MONTHS) - {"march", "april", "may", "june", "august"}
"""Months that are nothing else: no verb, adjective or first name."""
MONTHS |= {name[:3]: number for name, number in MONTHS.items()} | {"sept": 9}

FULL_WEEKDAYS = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]
_SHORT_WEEKDAYS = ("mon", "tue tues", "wed", "thu thur thurs", "fri", "sat", "sun")
WEEKDAYS = {name: number for number, name in enumerate(FULL_WEEKDAYS)}
WEEKDAYS |= {short: number for number, shorts in enumerate(_SHORT_WEEKDAYS) for short in shorts.split()}

UNITS = {
    name: unit
    for unit, names in {
        "second": "second sec",
        "minute": "minute min",
        "hour": "hour hr h",
        "day": "day night d",
        "week": "week wk w",
        "fortnight": "fortnight",
        "weekend": "weekend",
        "month": "month mon mo mth",
        "quarter": "quarter",
        "year": "year yr y",
        "decade": "decade",
    }.items()
    for name in names.split()
}
TURNS = {"last": -1, "previous": -1, "past": -1, "this": 0, "current": 0, "next": 1, "coming": 1, "following": 1}
EDGES = {
    "early": "early",
    "the start of": "start",
    "the beginning of": "start",
    "start of": "start",
    "beginning of": "start",
    "mid": "mid",
    "the middle of": "mid",
    "late": "late",
    "the end of": "end",
    "end of": "end",
}
SEASONS = {"spring": 3, "summer": 6, "autumn": 9, "fall": 9, "winter": 12}
"""The month with which each begins, in the northern hemisphere."""
NTH = {"first": 1, "1st": 1, "second": 2, "2nd": 2, "third": 3, "3rd": 3, "fourth": 4, "4th": 4}
FEW = {"few": (5, 2), "several": (5, 2), "couple of": (3, 1), "couple": (3, 1)}
"""How many units ago the words begin and end."""
DAY_WORDS = {
    "today": 0,
    "now": 0,
    "yesterday": -1,
    "tomorrow": 1,
    "the day before yesterday": -2,
    "the day after tomorrow": 2,
}
PARTS = {"morning": (5, 12), "afternoon": (12, 18), "evening": (17, 24), "night": (18, 24)}
"""Hours of a day from which and to which each goes."""
_DECADES = ["twenties", "thirties", "forties", "fifties", "sixties", "seventies", "eighties", "nineties"]
DECADES = {name: (n + 2) * 10 for n, name in enumerate(_DECADES)}

MONTH = rf"(?P<m>{any_of(MONTHS)})\.?"
DAY = r"(?P<d>0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?"
YEAR = r"(?P<y>(?:1[89]|20|21)\d\d)"
COUNT = rf"(?P<n>{numerals.ENGLISH})"
WEEKDAY = rf"(?P<w>{any_of(WEEKDAYS)})"
UNIT = rf"(?P<u>{any_of(UNITS)})"
SPAN = r"(?P<u>week|weekend|month|quarter|year|decade)"
SHIFT = rf"(?P<t>{any_of(TURNS)})"
IN_YEAR = rf"(?:,? ?(?:of |in )?{YEAR}| (?:of )?(?P<r>last|this|next) year)"
NOT_COUNTED = (
    r"(?! ?(?:tokens?|words?|char|items?|steps?|rows?|lines?|bytes?|[kmg]b|ms|px|usd|dollars?|euros?|yuan|people|users?"
    r"|times|%|percent|met(?:er|re)s?|miles|feet|km|kg|calories|points|square))"
)
"""After four figures: what they count, so that they are no year."""
