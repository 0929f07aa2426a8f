"""What the grammars of all languages are made of: a pattern, and what a match of it stands for."""

import re
import unicodedata
from calendar import isleap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime

from dataplane.logic.dates.feasts import Rule as Feast
from dataplane.logic.dates.spans import TimeRange, month_of, on, past_year, whole

LONGEST = 1000
"""Characters of a text that are read."""
_WORDS = re.compile(r"[a-z\u00df-\u024f\u0370-\u04ff]+|\d+")
_SPACES = re.compile(r"\s+")
LETTERS = r"0-9a-z_\u00df-\u024f\u0370-\u04ff"
"""Inside of brackets: what makes words of scripts that put spaces between them, after folding."""
LAST_SPACED = "\u2e7f"
"""The scripts behind it put no spaces between words."""
Match = re.Match[str]
Meaning = Callable[[Match, datetime], TimeRange | None]
"""May return None, or raise ValueError or OverflowError, where the match stands for no time of the calendar."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern over folded text (see `folded`) and its meaning."""

    pattern: re.Pattern[str]
    meaning: Meaning


@dataclass(frozen=True, slots=True)
class Group:
    """Rules that can match only where a text has one of these words (as `words_of` tells them)."""

    words: frozenset[str]
    rules: tuple[Rule, ...]


def group(words: Iterable[str], *rules: Rule) -> Group:
    """A group for these words, and for those within them."""
    named = tuple(words)
    return Group(words_of(" ".join(named)).union(named), rules)


def words_of(text: str) -> frozenset[str]:
    """Words, the single characters of scripts without spaces, and of each number as many # as it has figures."""
    words = _WORDS.findall(text)
    return frozenset(
        (*words, *(c for c in text if c > LAST_SPACED), *("#" * len(word) for word in words if word.isdecimal()))
    )


def folded(text: str) -> str:
    """The text as grammars read it: lower case, no accents, full-width figures plain, single spaces."""
    decomposed = unicodedata.normalize("NFKD", text[:LONGEST].replace("\u2019", "'"))[: 2 * LONGEST]
    plain = "".join(character for character in decomposed if not unicodedata.combining(character))
    return _SPACES.sub(" ", plain.lower()).strip()


def rule(pattern: str, meaning: Meaning) -> Rule:
    """A rule whose pattern stands between what is not part of a word or number."""
    return Rule(re.compile(rf"(?<![{LETTERS}])(?<!\d[.,:/-])(?:{pattern})(?![{LETTERS}])"), meaning)


def han_rule(pattern: str, meaning: Meaning) -> Rule:
    """A rule of a script that puts no spaces between words."""
    return Rule(re.compile(pattern), meaning)


def any_of(words: Iterable[str]) -> str:
    """A pattern of these words, the longest first, so that "juni" does not hide "junio"."""
    return "|".join(re.escape(word) for word in sorted(words, key=lambda word: (-len(word), word)))


def after(*words: str) -> str:
    """A pattern that asks for one of these words and a space before what follows, and takes neither."""
    return f"(?:{'|'.join(f'(?<=(?<![{LETTERS}]){word} )' for word in words)})"


def year_of(match: Match, now: datetime, turns: Mapping[str, int]) -> int | None:
    """The year in the group `y`, or the one to which the group `r` points from the present; None: neither matched."""
    groups = match.groupdict()
    if groups.get("y"):
        return int(groups["y"])
    return now.year + turns[groups["r"]] if groups.get("r") else None


def latest_month(month: int, now: datetime) -> TimeRange:
    """The month as it began last, the present one included."""
    return month_of(past_year(month, 1, now), month, now)


def latest_day(month: int, day: int, now: datetime) -> TimeRange:
    """The day of the year as it came last, today included; 29 February looks for a leap year."""
    year = past_year(month, day, now)
    if (month, day) == (2, 29):
        year = next(leap for leap in range(year, year - 9, -1) if isleap(leap))
    return whole("day", on(now, year, month, day))


def feast_in(feast: Feast, year: int, now: datetime) -> TimeRange | None:
    """The feast's day in a year; None where the table does not reach."""
    found = feast(year)
    return whole("day", on(now, found.year, found.month, found.day)) if found else None


def latest_feast(feast: Feast, now: datetime) -> TimeRange | None:
    """The feast as it came last, today included."""
    found = feast_in(feast, now.year, now)
    return found if found and found.start <= now else feast_in(feast, now.year - 1, now)
