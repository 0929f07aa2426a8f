"""Two tenants on one data plane: nothing of one is seen by the other. `python -m tests.leak` goes on for longer."""

from pathlib import Path

import pytest

from tests.leak.calls import GENERATORS
from tests.leak.planes import embedded, in_memory
from tests.leak.runner import Plan, run

PLAN = Plan(seed=11, seconds=120.0, rounds=150)


@pytest.mark.parametrize("stores", ["in memory", "embedded"])
async def test_nobody_sees_what_is_not_his(stores: str, tmp_path: Path) -> None:
    verdicts = await run(PLAN, in_memory if stores == "in memory" else embedded(tmp_path))
    assert verdicts.told == []
    assert set(verdicts.calls) == set(GENERATORS)
    assert verdicts.shown > 300
    assert min(verdicts.checks[each] for each in ("hits", "page tokens", "twins", "ports")) > 10
