"""A report of any evaluation as plain values, whatever the task.

A command builds one `Report` from its metrics; `memplane.cli.reporting.publish` prints it and writes it to files.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, is_dataclass
from typing import Any, Literal

Value = str | int | float | bool | None
"""What stands in a cell; None: there is nothing to tell."""

WORST = 20
"""Rows that a report tells in full at most."""

Chart = Literal["bars", "intervals"]
"""`bars`: one bar a row and charted column, from 0. `intervals`: the columns difference, low and high of each row."""


@dataclass(frozen=True)
class Table:
    """Figures in rows. The first column names the row.

    Attributes:
        title: What the rows have in common, such as "By category".
        columns: Their names.
        rows: As many cells each as there are columns.
        charted: Columns of numbers that a chart shows; none: no chart.
        chart: Which kind of chart.
        note: What a reader must know to read it; may be empty.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[Value]]
    charted: Sequence[str] = ()
    chart: Chart = "bars"
    note: str = ""

    def column(self, name: str) -> list[Value]:
        """The cells below a name. Raises ValueError where there is no such column."""
        index = list(self.columns).index(name)
        return [row[index] for row in self.rows]


@dataclass(frozen=True)
class Item:
    """A text of a list that a question got, or should have got. `note` may say its place or time."""

    text: str
    right: bool
    note: str = ""


@dataclass(frozen=True)
class Case:
    """A row that went badly: its text, what is known of it, what was expected and what came."""

    text: str
    facts: Mapping[str, Value] = field(default_factory=dict)
    expected: Sequence[Item] = ()
    got: Sequence[Item] = ()


@dataclass(frozen=True)
class Report:
    """What an evaluation came to.

    Attributes:
        title: Its one line.
        about: What was measured how: data, policy, seconds, and the like.
        tables: Its figures; the first is the one to read.
        worst: The rows that went worst, worst first.
        data: The same figures as plain JSON: what `--json` prints.
    """

    title: str
    about: Mapping[str, Value]
    tables: Sequence[Table]
    worst: Sequence[Case] = ()
    data: Mapping[str, Any] = field(default_factory=dict)


def table_of(title: str, key: str, scores: Mapping[str, object], charted: Sequence[str] = (), note: str = "") -> Table:
    """A table with a row for each of `scores`: dataclasses or mappings with the same fields, the first one's in front.

    `key` names the first column.
    """
    rows = {name: plain(each) for name, each in scores.items()}
    columns = list(next(iter(rows.values()), {}))
    cells = [(name, *(row.get(column) for column in columns)) for name, row in rows.items()]
    return Table(title, (key, *columns), cells, charted, note=note)


def plain(scores: object) -> dict[str, Any]:
    """A dataclass or mapping of figures as a dict."""
    if isinstance(scores, Mapping):
        return dict(scores)
    assert is_dataclass(scores), f"{scores!r} has no fields"
    assert not isinstance(scores, type), f"{scores!r} is a type"
    return asdict(scores)


def shown(value: Value) -> str:
    """A cell for people: three digits behind the point, yes or no, a dash for nothing."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4f}" if 0 < abs(value) < 0.001 else f"{value:.3f}"
    return str(value)
