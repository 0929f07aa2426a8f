"""Reads time expressions with the range each stands for, and measures what was made of them.

    {"now": "2026-11-30T09:00:00", "text": "上周", "start": "2026-11-23T00:00:00", "end": "2026-11-29T23:59:59"}

`start` and `end` are null where the text names no time. Only their days are compared.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from memplane.evaluation.dataset import BadDataset, json_rows
from memplane.evaluation.report.model import WORST, Case, Item, Report, plain, table_of
from memplane.language import is_chinese

Days = tuple[str, str]
"""First and last day, YYYY-MM-DD."""


@dataclass(frozen=True)
class Expression:
    """A line of the file; `days` None: the text names no time."""

    now: str
    text: str
    days: Days | None

    @property
    def script(self) -> str:
        """`Chinese`, `ASCII` (English and some others), or `other`."""
        return "Chinese" if is_chinese(self.text) else "ASCII" if self.text.isascii() else "other"


@dataclass(frozen=True)
class DateScores:
    """Shares, 0 to 1; 1 of nothing.

    Attributes:
        exact: Rows with the very days, or rightly none.
        precision: Of the ranges found, those with the very days.
        recall: Of the ranges to be found, those found with the very days.
        quiet: Of the texts without a time, those in which none was found.
    """

    exact: float
    precision: float
    recall: float
    quiet: float


def read_expressions(paths: Sequence[Path]) -> list[Expression]:
    """The rows of the files in order. Raises BadDataset, which names the line and what is wrong there."""
    return [_expression(place, row) for path in paths for place, row in json_rows(path)]


def days_of(answer: Mapping[str, Any]) -> Days | None:
    """First and last day of an answer's `start` and `end`, which are ISO 8601 or both None."""
    start, end = answer["start"], answer["end"]
    return None if start is None or end is None else (str(start)[:10], str(end)[:10])


def measure(expressions: Sequence[Expression], found: Sequence[Days | None]) -> dict[str, tuple[int, DateScores]]:
    """Count and scores by script, and over `all`."""
    pairs = list(zip(expressions, found, strict=True))
    scripts = sorted({expression.script for expression in expressions})
    groups = {name: [pair for pair in pairs if pair[0].script == name] for name in scripts}
    return {name: (len(group), _scores(group)) for name, group in (*groups.items(), ("all", pairs))}


def report(expressions: Sequence[Expression], found: Sequence[Days | None]) -> Report:
    """The figures by script, and expressions with wrong days."""
    scores = {name: {"n": n, **plain(each)} for name, (n, each) in measure(expressions, found).items()}
    pairs = zip(expressions, found, strict=True)
    wrong = [(expression, days) for expression, days in pairs if expression.days != days]
    return Report(
        title="Time expressions",
        about={"expressions": len(expressions)},
        tables=[table_of("By script", "script", scores, charted=("exact", "precision", "recall"))],
        worst=[_case(expression, days) for expression, days in wrong[:WORST]],
        data=scores,
    )


def _case(expression: Expression, found: Days | None) -> Case:
    return Case(
        expression.text,
        {"now": expression.now},
        expected=[Item(_told(expression.days), right=True)],
        got=[Item(_told(found), right=False)],
    )


def _told(days: Days | None) -> str:
    return "no time" if days is None else " to ".join(days)


def _scores(pairs: Sequence[tuple[Expression, Days | None]]) -> DateScores:
    right = [(expected.days, found) for expected, found in pairs if expected.days == found]
    hits = sum(found is not None for _, found in right)
    silent = sum(expected.days is None for expected, _ in pairs)
    return DateScores(
        exact=_share(len(right), len(pairs)),
        precision=_share(hits, sum(found is not None for _, found in pairs)),
        recall=_share(hits, len(pairs) - silent),
        quiet=_share(len(right) - hits, silent),
    )


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


def _expression(place: str, row: Mapping[str, Any]) -> Expression:
    now, text = row.get("now"), row.get("text")
    if not isinstance(text, str):
        raise BadDataset(f"{place}: text must be a text, got {text!r}")
    _require_time(place, "now", now)
    start, end = row.get("start"), row.get("end")
    if (start is None) != (end is None):
        raise BadDataset(f"{place}: start and end must both be times or both null")
    if start is not None:
        _require_time(place, "start", start)
        _require_time(place, "end", end)
    return Expression(str(now), text, days_of({"start": start, "end": end}))


def _require_time(place: str, name: str, value: object) -> None:
    try:
        datetime.fromisoformat(str(value))
    except ValueError:
        raise BadDataset(f"{place}: {name} {value!r} is not ISO 8601 such as 2026-11-30T09:00:00") from None
