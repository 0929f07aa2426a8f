import pytest

from dataplane.logic.dates import numerals


@pytest.mark.parametrize(
    ("text", "value"), [("7", 7), ("a", 1), ("twelve", 12), ("twenty", 20), ("twenty-one", 21), ("ninety nine", 99)]
)
def test_english_counts(text: str, value: int) -> None:
    assert numerals.english(text) == value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7", 7),
        ("十", 10),
        ("十二", 12),
        ("二十", 20),
        ("两百零五", 205),
        ("三千", 3000),
        ("一万二千", 12_000),
        ("二〇二三", 2023),
    ],
)
def test_chinese_counts(text: str, value: int) -> None:
    assert numerals.han(text) == value
