from datetime import date

import pytest

from dataplane.logic.dates.feasts import CHINESE, ENGLISH, FIRST_LUNAR_YEAR


@pytest.mark.parametrize(
    ("name", "day"),
    [
        ("除夕", date(2024, 2, 9)),
        ("春节", date(2024, 2, 10)),
        ("元宵", date(2024, 2, 24)),
        ("清明", date(2024, 4, 4)),
        ("端午", date(2024, 6, 10)),
        ("七夕", date(2024, 8, 10)),
        ("中秋", date(2024, 9, 17)),
        ("重阳", date(2024, 10, 11)),
        ("母亲节", date(2024, 5, 12)),
    ],
)
def test_chinese_feasts(name: str, day: date) -> None:
    assert CHINESE[name](day.year) == day


@pytest.mark.parametrize(
    ("name", "day"),
    [
        ("easter", date(2025, 4, 20)),
        ("thanksgiving", date(2024, 11, 28)),
        ("labor day", date(2026, 9, 7)),
        ("mothers day", date(2026, 5, 10)),
    ],
)
def test_english_feasts(name: str, day: date) -> None:
    assert ENGLISH[name](day.year) == day


def test_beyond_the_table_a_lunar_feast_is_unknown() -> None:
    assert CHINESE["春节"](FIRST_LUNAR_YEAR) is not None
    assert CHINESE["春节"](FIRST_LUNAR_YEAR - 1) is None
    assert CHINESE["春节"](2036) is None
    assert CHINESE["清明"](1999) is None
