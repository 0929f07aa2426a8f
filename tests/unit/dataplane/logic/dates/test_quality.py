"""The goals of docs/quality/dates.md hold on the evaluation data. Under a second."""

from datetime import datetime

import pytest

from dataplane.logic.dates import resolve
from memplane.cli.config import evaluation_data
from memplane.evaluation.dates import Days, Expression, measure, read_expressions

pytestmark = pytest.mark.data


def found(expression: Expression) -> Days | None:
    resolved = resolve(expression.text, datetime.fromisoformat(expression.now))
    return (resolved.start.isoformat()[:10], resolved.end.isoformat()[:10]) if resolved else None


def test_the_goals_hold() -> None:
    data = evaluation_data()
    if data is None:
        pytest.skip("MEMPLANE_EVAL_DATA names no folder")
    expressions = read_expressions([data / "dates" / "expressions.jsonl"])
    scores = {name: each for name, (_, each) in measure(expressions, [found(each) for each in expressions]).items()}
    assert scores["all"].exact >= 0.95
    assert scores["Chinese"].exact >= 0.99
    assert scores["all"].quiet >= 0.99
