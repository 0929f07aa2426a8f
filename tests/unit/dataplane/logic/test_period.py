from datetime import UTC, datetime
from math import exp

import pytest

from dataplane.logic.intent import Intent, read_intent
from dataplane.logic.period import Period, asked_period, closeness
from dataplane.logic.rank import Ranking, RankInput, rank
from dataplane.model import DAY_US
from memplane.policy.model import Credibility, DecayPolicy
from memplane.policy.retrieve import AskedTime, RetrievePolicy
from tests.unit.dataplane.logic.examples import a_candidate

NOW_US = int(datetime(2026, 11, 30, 9, tzinfo=UTC).timestamp()) * 1_000_000
WEEK = Period(NOW_US - 20 * DAY_US, NOW_US - 14 * DAY_US)
FADE = 7.0


def test_a_question_has_the_period_it_names() -> None:
    found = asked_period("what did I do last week?", NOW_US, wants_recent=False)
    assert found is not None
    assert (found.start_us, found.end_us + 1) == (_us(2026, 11, 23), _us(2026, 11, 30))


def _us(year: int, month: int, day: int) -> int:
    return int(datetime(year, month, day, tzinfo=UTC).timestamp()) * 1_000_000


@pytest.mark.parametrize(
    "query", ["what comes next week?", "明天做什么", "whose birthday is in May?", "谁的生日在五月"]
)
def test_a_time_that_is_not_that_of_telling_is_none(query: str) -> None:
    assert asked_period(query, NOW_US, wants_recent=False) is None


def test_now_asks_for_the_newest_and_not_for_today() -> None:
    assert read_intent("what do I drink now?", ("now",), NOW_US).period is None
    assert read_intent("what did I drink today?", ("now",), NOW_US).period is not None


def test_without_a_reference_time_expressions_are_not_read() -> None:
    assert read_intent("last week", ()).period is None


@pytest.mark.parametrize("reference_us", [0, -(2**62), 2**62])
def test_any_reference_time_will_do(reference_us: int) -> None:
    asked_period("yesterday", reference_us, wants_recent=False)


def test_closeness_is_one_within_and_for_a_week_after_and_fades_beyond() -> None:
    assert closeness(WEEK, WEEK.start_us, FADE) == 1.0
    assert closeness(WEEK, WEEK.end_us + 7 * DAY_US, FADE) == 1.0
    assert closeness(WEEK, WEEK.start_us - DAY_US // 2 - 7 * DAY_US, FADE) == pytest.approx(exp(-1))
    assert closeness(WEEK, WEEK.end_us + DAY_US // 2 + 14 * DAY_US, FADE) == pytest.approx(exp(-1))


def test_what_an_expression_leaves_open_is_as_close() -> None:
    blurred = Period(WEEK.start_us, WEEK.end_us, 15 * DAY_US)
    assert closeness(blurred, WEEK.start_us - 15 * DAY_US, FADE) == 1.0


def ranked(asked_time: AskedTime, period: Period | None) -> list[tuple[str, float]]:
    policy = RetrievePolicy(asked_time=asked_time)
    ranking = Ranking(policy, DecayPolicy(), Credibility(), NOW_US, Intent(period=period))
    then, today = WEEK.end_us, NOW_US + DAY_US
    items = [
        RankInput(a_candidate(0, memory_id="mem_then", event_time_us=then, create_time_us=NOW_US), 0.5, None),
        RankInput(a_candidate(0, memory_id="mem_today", event_time_us=None, create_time_us=today), 0.5, None),
    ]
    return [(each.candidate.memory.memory_id, each.score) for each in rank(items, ranking)]


def test_as_a_signal_it_moves_scores_towards_closeness() -> None:
    plain = dict(ranked(AskedTime(use="off"), WEEK))
    moved = ranked(AskedTime(weight=1.0, fade_days=1.0), WEEK)
    assert moved[0][0] == "mem_then"
    assert moved[0][1] == pytest.approx((plain["mem_then"] + 1.0) / 2)
    assert moved[1][1] == pytest.approx((plain["mem_today"] + exp(-7.5)) / 2, abs=1e-3)


def test_as_a_filter_it_leaves_out_what_was_told_at_another_time() -> None:
    assert [name for name, _ in ranked(AskedTime(use="filter"), WEEK)] == ["mem_then"]


def test_without_a_period_nothing_changes() -> None:
    assert ranked(AskedTime(), None) == ranked(AskedTime(use="off"), None) == ranked(AskedTime(use="filter"), None)
