"""Time expressions of French, German, Spanish, Italian, Portuguese, Dutch and Russian: one grammar, many words.

Months count with a year or a day beside them only, weekdays with a word like "last". "hier" is yesterday in French and
"here" in German and Dutch: it counts where no common word of these stands in the text.
"""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

from dataplane.logic.dates import european_words as words
from dataplane.logic.dates.european_words import Language
from dataplane.logic.dates.grammar import Group, Match, Meaning, Rule, any_of, group, latest_day, rule
from dataplane.logic.dates.spans import TimeRange, about, ago, latest_weekday, month_of, on, relative, weekday_of, whole

_FEW = ((5, 2), (3, 1))
_GERMANIC = re.compile(
    r"\b(?:ist|und|der|die|das|ich|nicht|was|wer|wo|wie|haben?|sind|bin|war|wir|sie|mit|von|wat|het|een|van|waar)\b"
)
_YEAR = r"(?P<y>(?:1[89]|20|21)\d\d)"
_MONTH = rf"(?P<m>{any_of(words.MONTHS)})"
_DAY = r"(?P<d>0?[1-9]|[12]\d|3[01])"
_ONE_AGO = {"неделю": "week", "месяц": "month", "год": "year"}
_OF = r"(?:,? (?:del? |di |do )?|\. )"


def _day_of_month(match: Match, now: datetime) -> TimeRange:
    month, day, year = words.MONTHS[match["m"]], int(match["d"]), match["y"]
    return whole("day", on(now, int(year), month, day)) if year else latest_day(month, day, now)


def _tomorrow(_: Match, now: datetime) -> TimeRange:
    return ago("day", -1, now)


def _french_yesterday(match: Match, now: datetime) -> TimeRange | None:
    return None if _GERMANIC.search(match.string) else ago("day", 1, now)


def _choice(patterns: dict[str, str]) -> str:
    """A pattern of all, each in a group of its name."""
    return "|".join(f"(?P<{name}>{pattern})" for name, pattern in patterns.items())


def _chosen(match: Match, prefix: str) -> str:
    """What follows the prefix in the name of the group that matched; "" where none did."""
    groups = match.groupdict()
    return next((name.removeprefix(prefix) for name, text in groups.items() if text and name.startswith(prefix)), "")


def _turned(match: Match, now: datetime) -> TimeRange:
    return relative(_chosen(match, "u_"), int(_chosen(match, "t_")) - 1, now)


def _turned_weekday(match: Match, now: datetime) -> TimeRange:
    turn, weekday = int(_chosen(match, "t_")) - 1, int(_chosen(match, "w_"))
    return latest_weekday(weekday, now - timedelta(days=1)) if turn < 0 else weekday_of(turn, weekday, now)


def _moved(match: Match, now: datetime) -> TimeRange:
    number = _chosen(match, "n_")
    count = int(match["figures"]) if match["figures"] else int(number or 0) + 1
    return ago(_chosen(match, "u_"), count, now)


def _few_ago(match: Match, now: datetime) -> TimeRange | None:
    return about(_FEW[int(_chosen(match, "f_"))], _chosen(match, "u_"), now)


def _around(turn: str, named: str, meaning: Meaning) -> Iterator[Rule]:
    """The turn before what is turned, and behind it."""
    yield rule(rf"(?:{turn}) (?:{named})", meaning)
    yield rule(rf"(?:{named}) (?:{turn})", meaning)


def _rules_of(language: Language) -> Iterator[Rule]:
    units = _choice({f"u_{name}": pattern for name, pattern in language.units.items()})
    weekdays = _choice({f"w_{number}": pattern for number, pattern in enumerate(language.weekdays)})
    turns = _choice({f"t_{number}": pattern for number, pattern in enumerate(language.turns)})
    numbers = _choice({f"n_{number}": pattern for number, pattern in enumerate(language.numbers)})
    few = _choice({f"f_{number}": pattern for number, pattern in enumerate(language.few)})
    yield from _around(turns, units, _turned)
    yield from _around(turns, weekdays, _turned_weekday)
    for before, behind in language.ago:
        yield rule(rf"{before}(?:(?:(?P<figures>\d{{1,4}})|{numbers}) ?)(?:{units}){behind}", _moved)
        yield rule(rf"{before}(?:{few}) (?:{units}){behind}", _few_ago)


def _group_of(language: Language) -> Group:
    return group((*language.units.values(), *language.weekdays), *_rules_of(language))


GROUPS: tuple[Group, ...] = (
    group(
        words.MONTHS,
        rule(rf"{_DAY}(?:er|\.|o)? (?:de |di |d')?{_MONTH}(?:{_OF}{_YEAR})?", _day_of_month),
        rule(rf"{_MONTH}{_OF}{_YEAR}", lambda match, now: month_of(int(match["y"]), words.MONTHS[match["m"]], now)),
    ),
    group(
        (*words.DAY_WORDS, "hier", "morgen", "manana"),
        rule(any_of(words.DAY_WORDS), lambda match, now: ago("day", -words.DAY_WORDS[match[0]], now)),
        rule(r"hier", _french_yesterday),
        rule(r"(?<!guten )(?<!heute )(?<!gestern )(?<!am )(?<!jeden )(?<!goede )morgen", _tomorrow),
        rule(r"(?<!la )(?<!esta )manana", _tomorrow),
    ),
    *(_group_of(language) for language in words.LANGUAGES),
    group(
        _ONE_AGO,
        rule(rf"(?:{any_of(_ONE_AGO)}) назад", lambda match, now: ago(_ONE_AGO[match[0].split()[0]], 1, now)),
    ),
)
