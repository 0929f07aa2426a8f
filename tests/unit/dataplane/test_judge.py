import io
import json
from typing import Any

import pytest

from dataplane.judge import judge
from memplane.settings import BadConfig


async def answers(settings: dict[str, Any], *rows: dict[str, Any]) -> list[dict[str, Any]]:
    out = io.StringIO()
    await judge([json.dumps(line) for line in (settings, *rows)], out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


async def test_each_row_is_answered_in_order() -> None:
    found = await answers(
        {"task": "dates"},
        {"now": "2026-11-30T09:00:00", "text": "today"},
        {"now": "2026-11-30T09:00:00", "text": "no time here"},
    )
    assert [(row["start"] or "none")[:10] for row in found] == ["2026-11-30", "none"]


async def test_an_unknown_task_is_told_with_the_known_ones() -> None:
    with pytest.raises(BadConfig, match=r"no task 'tea'; there are .*dates"):
        await answers({"task": "tea"})
