from datetime import UTC, datetime

import pytest

from dataplane.logic.passing import is_passing

NOW_US = int(datetime(2026, 11, 30, 12, tzinfo=UTC).timestamp()) * 1_000_000


@pytest.mark.parametrize(
    "text",
    [
        "There is a meeting tomorrow at 3",
        "I have a dentist appointment on Thursday at 10.",
        "明天下午三点开会",
        "周四上午十点我要去看牙医。",
        "Yesterday I bought a new pair of shoes.",
        "The review is on 2026-12-02 at 3 pm",
    ],
)
def test_one_coming_or_just_past_day_passes(text: str) -> None:
    assert is_passing(text, NOW_US)


@pytest.mark.parametrize(
    "text",
    [
        "I'm allergic to peanuts",
        "The stand-up is every Monday at 9",
        "生产环境只在每周二发布",
        "We got married yesterday",
        "From tomorrow on I work from home",
        "My birthday is tomorrow",
        "The contract ends on 2028-12-02",
        "I went to Rome last year",
        "昨天我搬到了深圳",
    ],
)
def test_what_recurs_begins_or_changes_a_life_lasts(text: str) -> None:
    assert not is_passing(text, NOW_US)


def test_any_time_can_be_the_time_of_a_statement() -> None:
    for now_us in (-(10**18), 0, 10**18):
        is_passing("a meeting tomorrow", now_us)
