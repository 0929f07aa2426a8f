"""A short chaos run on each kind of stores; `make chaos` has the long ones."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.chaos import final
from tests.chaos.leftovers import Places
from tests.chaos.runner import Outcome, Plan, run
from tests.chaos.sabotage import KINDS
from tests.chaos.stack import Options
from tools import fetch_elasticsearch

SEED = 1
EMBEDDED_SEED, COMPANY_SEED = 712, 2405
"""Each kind strikes within the first four rounds."""
EMBEDDED = ("kill", "kill_before_answer", "half_close", "index_deleted", "disk_full")
COMPANY = ("cut", "blackhole", "kill_before_answer", "flush", "index_deleted", "reset")


def short(seed: int, only: Sequence[str], operations: int) -> Plan:
    return Plan(seconds=5, operations=operations, seed=seed, clients=8, only=only, every_kind=True, pace=2.0)


async def nothing_left(_places: Places, _erased: Sequence[str]) -> tuple[str, ...]:
    """Instead of waiting for purges, where the raw files are not what a test is about."""
    return ()


def assert_clean(outcome: Outcome, kinds: Sequence[str]) -> None:
    assert outcome.is_clean, "\n".join(outcome.lines())
    assert outcome.fault_counts.keys() == set(kinds)


@pytest.mark.slow
async def test_nothing_is_lost_on_embedded_stores(tmp_path: Path) -> None:
    plan = short(EMBEDDED_SEED, EMBEDDED, operations=300)
    assert_clean(await run(Options("embedded", tmp_path / "run", "sqlite"), plan), EMBEDDED)


@pytest.mark.slow
async def test_what_is_broken_behind_the_back_of_memplane_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(final, "leftovers", nothing_left)
    plan = Plan(seconds=5, operations=400, seed=SEED, clients=8, only=["policy_reload"], sabotage=KINDS, pace=2.0)
    outcome = await run(Options("embedded", tmp_path / "run", "sqlite"), plan)
    counts = outcome.report.counts
    assert counts["lost"] == 1, "\n".join(outcome.lines())
    assert counts["resurrected"] >= 1, "once at the end, and in each search that finds it"
    assert not outcome.is_clean


@pytest.mark.slow
async def test_nothing_is_lost_on_the_stores_of_a_company(tmp_path: Path) -> None:
    try:
        fetch_elasticsearch.environment()
        fetch_elasticsearch.fetch(fetch_elasticsearch.CACHE)
    except fetch_elasticsearch.Unavailable as reason:
        pytest.skip(str(reason))
    plan = short(COMPANY_SEED, COMPANY, operations=400)
    assert_clean(await run(Options("company", tmp_path / "run", "redis"), plan), COMPANY)
