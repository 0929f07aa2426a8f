"""A report as Markdown. Texts are escaped: nothing in them becomes markup, breaks a table or ends a line."""

import re
from collections.abc import Iterator, Sequence

from memplane.evaluation.report.model import Case, Item, Report, Table, Value, shown

_MARKUP = re.compile(r"([\\`*{}\[\]<>#|~!]|(?<![a-zA-Z0-9])_|_(?![a-zA-Z0-9]))")
"""An underscore within a word marks up nothing."""


def markdown(report: Report) -> str:
    """The whole report, ending in a newline."""
    return "\n".join(_lines(report)) + "\n"


def _lines(report: Report) -> Iterator[str]:
    yield from (f"# {_text(report.title)}", "")
    yield from (f"- {_text(name)}: {_text(shown(value))}" for name, value in report.about.items())
    for table in report.tables:
        yield from ("", f"## {_text(table.title)}", "")
        yield from _table(table)
    if report.worst:
        yield from ("", "## What went worst", "")
        for number, case in enumerate(report.worst, start=1):
            yield from _case(number, case)


def _table(table: Table) -> Iterator[str]:
    if table.note:
        yield from (_text(table.note), "")
    yield _row(table.columns)
    yield "|" + "---|" * len(table.columns)
    yield from (_row(row) for row in table.rows)


def _row(cells: Sequence[Value]) -> str:
    return "| " + " | ".join(_text(shown(cell)) for cell in cells) + " |"


def _case(number: int, case: Case) -> Iterator[str]:
    facts = ", ".join(f"{_text(name)} {_text(shown(value))}" for name, value in case.facts.items())
    yield f"{number}. {_text(case.text)}" + (f" ({facts})" if facts else "")
    for name, items in (("expected", case.expected), ("got", case.got)):
        if items:
            yield f"   - {name}:"
            yield from (f"     - {_item(item)}" for item in items)


def _item(item: Item) -> str:
    return f"{'✓' if item.right else '✗'} {_text(item.text)}" + (f" ({_text(item.note)})" if item.note else "")


def _text(text: str) -> str:
    return _MARKUP.sub(r"\\\1", " ".join(text.split()))
