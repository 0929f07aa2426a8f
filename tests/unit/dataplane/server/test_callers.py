import asyncio
from typing import Any

import pytest

from dataplane.server.callers import ANSWER_MOST_S, LONGEST_CALL_S, deadline_of


class Context:
    def __init__(self, remaining_s: float | None):
        self._remaining_s = remaining_s

    def time_remaining(self) -> float | None:
        return self._remaining_s


@pytest.mark.parametrize(
    ("remaining_s", "allowed_s"),
    [
        (2.0, 1.8),
        (60.0, 60.0 - ANSWER_MOST_S),
        (None, LONGEST_CALL_S - ANSWER_MOST_S),
        (1e9, LONGEST_CALL_S - ANSWER_MOST_S),
        (0.0, 0.0),
        (-1.0, -1.0),
    ],
)
async def test_the_work_of_a_call_ends_early_enough_for_its_answer(remaining_s: float | None, allowed_s: float) -> None:
    context: Any = Context(remaining_s)
    now_s = asyncio.get_running_loop().time()
    assert now_s + allowed_s <= deadline_of(context) < now_s + allowed_s + 0.1
