"""Compares two dumps of one task over the same rows, by paired bootstrap (`memplane.evaluation.bootstrap`)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from memplane.evaluation.bootstrap import FEW_GROUPS, INTERVAL, Difference, Draw, compare
from memplane.evaluation.comparable import Answer, Comparable
from memplane.evaluation.dataset import BadDataset, json_rows
from memplane.evaluation.report.model import Report, Table, Value

COLUMNS = ("n", "a", "b", "difference", "low", "high", "p")


@dataclass(frozen=True)
class Answered:
    """Rows, what two systems answered to each, and the group of each."""

    rows: Sequence[Any]
    a: Sequence[Answer]
    b: Sequence[Answer]
    groups: Sequence[str]

    def only(self, places: Sequence[int]) -> "Answered":
        """The rows at these places."""
        return Answered(
            [self.rows[place] for place in places],
            [self.a[place] for place in places],
            [self.b[place] for place in places],
            [self.groups[place] for place in places],
        )


def read_dump(path: Path, task: Comparable[Any], rows: Sequence[Any]) -> list[Answer]:
    """The dump's answer to each row. Of rows with one key the first has the first line, and so on.

    Raises:
        BadDataset: A line is not of the format, or answers no row; or a row has no answer.
    """
    lines: dict[str, list[Answer]] = {}
    for place, line in json_rows(path):
        try:
            lines.setdefault(task.answer_key(line), []).append(line)
        except KeyError as error:
            raise BadDataset(f"{place}: {error.args[0]} is missing; is it a dump of this task?") from None
    found = []
    for row in rows:
        waiting = lines.get(task.key(row))
        if not waiting:
            raise BadDataset(f"{path}: no answer to {task.key(row)!r}; the dump and the data belong together")
        found.append(waiting.pop(0))
    extra = next((key for key, waiting in lines.items() if waiting), None)
    if extra is not None:
        raise BadDataset(f"{path}: {extra!r} answers nothing in the data; the dump and the data belong together")
    return found


def counted(task: Comparable[Any], answered: Answered) -> Answered:
    """The rows that the task has figures of. Raises BadDataset where there is none."""
    places = [place for place, row in enumerate(answered.rows) if task.counts(row)]
    if not places:
        raise BadDataset("no row can be scored: the data is empty, or no row says what is right")
    return answered.only(places)


def read_group_names(paths: Sequence[Path], field: str) -> dict[str, str]:
    """The value of a field by the id of each row. Raises BadDataset where a row has no id or no such field."""
    found = {}
    for path in paths:
        for place, row in json_rows(path):
            for name in ("id", field):
                if row.get(name) in (None, ""):
                    raise BadDataset(f"{place}: {name} is missing, which tells the groups apart")
            found[str(row["id"])] = str(row[field])
    return found


def compared(task: Comparable[Any], answered: Answered, draw: Draw) -> dict[str, Difference]:
    """The difference of each figure that can be told of these rows."""
    first, second = (task.statistics(answered.rows, answers) for answers in (answered.a, answered.b))
    return compare(first, second, answered.groups, draw)


def by_category(task: Comparable[Any], answered: Answered, draw: Draw) -> dict[str, dict[str, Difference]]:
    """The same for each category; none where the rows are of one."""
    places: dict[str, list[int]] = {}
    for place, row in enumerate(answered.rows):
        places.setdefault(task.category(row), []).append(place)
    if len(places) < 2:
        return {}
    return {name: compared(task, answered.only(places[name]), draw) for name in sorted(places)}


def comparison(task: Comparable[Any], answered: Answered, draw: Draw, names: tuple[str, str]) -> Report:
    """The differences over all rows, and of the first figure by category. `names` are what a and b are."""
    overall, categories = compared(task, answered, draw), by_category(task, answered, draw)
    tables = [_table("All", "measure", overall, _note(answered, draw))]
    told = next((measure for measure in overall if any(measure in each for each in categories.values())), "")
    if told:
        rows = {name: each[told] for name, each in categories.items() if told in each}
        tables.append(_table(f"By category: {told}", "category", rows))
    return Report(
        title="Comparison of two runs",
        about={"a": names[0], "b": names[1], "rows": len(answered.rows), "groups": len(set(answered.groups))},
        tables=tables,
        data={
            "overall": {name: vars(each) for name, each in overall.items()},
            "categories": {
                name: {measure: vars(one) for measure, one in each.items()} for name, each in categories.items()
            },
        },
    )


def _table(title: str, key: str, differences: Mapping[str, Difference], note: str = "") -> Table:
    rows: list[tuple[Value, ...]] = [(name, *vars(each).values()) for name, each in differences.items()]
    return Table(title, (key, *COLUMNS), rows, charted=("difference",), chart="intervals", note=note)


def _note(answered: Answered, draw: Draw) -> str:
    unit = "groups" if draw.by_group else "rows"
    told = (
        f"difference = b − a; low and high hold the middle {INTERVAL[1] - INTERVAL[0]:.0f} % of {draw.resamples} "
        f"resamples of {unit} (seed {draw.seed}). p is not corrected for the number of figures looked at."
    )
    if draw.by_group and len(set(answered.groups)) < FEW_GROUPS:
        told += f" Fewer than {FEW_GROUPS} groups: the intervals are too narrow."
    return told
