import re

import hypothesis.strategies as st
from hypothesis import given

from memplane.evaluation.report.markdown import markdown
from memplane.evaluation.report.model import Case, Item, Report, Table


def report(text: str) -> Report:
    return Report(
        title="T",
        about={"data": text},
        tables=[Table("All", ("name", "value"), [(text, 0.5), ("b", True)])],
        worst=[Case(text, {"score": 0.1}, [Item("right", True, "at place 3")], [Item("wrong", False)])],
    )


def test_a_report_reads_as_markdown() -> None:
    assert markdown(report("x")) == (
        "# T\n\n- data: x\n\n## All\n\n| name | value |\n|---|---|\n| x | 0.500 |\n| b | yes |\n\n"
        "## What went worst\n\n1. x (score 0.100)\n"
        "   - expected:\n     - ✓ right (at place 3)\n   - got:\n     - ✗ wrong\n"
    )


@given(st.text())
def test_no_text_breaks_a_line_or_a_table(text: str) -> None:
    told, plain = markdown(report(text)), markdown(report("x"))
    assert told.count("\n") == plain.count("\n")
    row = told.split("\n")[8]
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) == 3
