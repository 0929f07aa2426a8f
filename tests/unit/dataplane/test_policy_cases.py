import io
import json

import pytest

from dataplane import policy_cases

ORDER = {"name": "a", "given": {"hits": {"a": {"vector": 0.5}}}, "expect": ["a"]}
LINE = json.dumps({"policy": {}, "cases": [["order", ORDER], ["order", ORDER]]}) + "\n"


async def answers(text: str) -> list[dict[str, object]]:
    out = io.StringIO()
    await policy_cases.try_sets(io.StringIO(text), out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


async def test_each_set_gets_a_line_of_what_came() -> None:
    assert await answers(LINE * 2) == [{"came": [["a"], ["a"]]}] * 2


async def test_without_processor_time_left_the_rest_is_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(policy_cases, "MAX_SECONDS", -1.0)
    assert await answers(LINE) == [{"came": []}]
