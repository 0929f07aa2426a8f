from dataclasses import dataclass

import pytest

from memplane.evaluation.report.model import Table, Value, shown, table_of


@dataclass(frozen=True)
class Figures:
    recall: float | None
    n: int


def test_a_table_is_made_of_figures_by_name() -> None:
    table = table_of("By set", "set", {"a": Figures(0.5, 2), "b": Figures(None, 0)}, charted=("recall",))
    assert table == Table("By set", ("set", "recall", "n"), [("a", 0.5, 2), ("b", None, 0)], ("recall",))
    assert table.column("recall") == [0.5, None]


def test_a_table_of_nothing_has_no_rows() -> None:
    assert table_of("By set", "set", {}).rows == []


@pytest.mark.parametrize(
    ("value", "text"), [(None, "–"), (True, "yes"), (0.12345, "0.123"), (0.00012, "0.0001"), (0.0, "0.000"), (7, "7")]
)
def test_cells_are_short(value: Value, text: str) -> None:
    assert shown(value) == text
