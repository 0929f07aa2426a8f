import pytest

from dataplane.logic.pairs.values import Likeness, compare_values, date_of


@pytest.mark.parametrize(
    ("attribute", "one", "other", "likeness"),
    [
        ("birthday", "三月五日", "3月5号", Likeness.SAME),
        ("birthday", "2月5号", "2月6号", Likeness.OTHER),
        ("birthday", "2月5号", "5月2号", Likeness.OTHER),
        ("birthday", "3 march", "march 3rd", Likeness.SAME),
        ("birthday", "3 march", "4 march", Likeness.OTHER),
        ("birthday", "1990年3月5日", "3月5日", Likeness.WITHIN),
        ("height", "一米七五", "175厘米", Likeness.SAME),
        ("height", "1.75米", "175cm", Likeness.SAME),
        ("height", "175厘米", "176厘米", Likeness.OTHER),
        ("phone", "138 0013 8000", "13800138000", Likeness.SAME),
        ("phone", "13800138000", "13800138001", Likeness.OTHER),
        ("hometown", "江苏南京", "南京", Likeness.SAME),
        ("hometown", "山东青岛", "山东济南", Likeness.OTHER),
        ("lives", "lisbon", "lisbon, portugal", Likeness.SAME),
        ("lives", "york", "leeds", Likeness.OTHER),
        ("job", "a nurse", "nurse", Likeness.SAME),
        ("job", "marketing director", "marathon runner", Likeness.OTHER),
        ("prefers", "tea over coffee", "coffee over tea", Likeness.PARTLY),
        ("budget", "$500", "€500", Likeness.OTHER),
        ("limit", "<= 5", ">= 5", Likeness.OTHER),
        ("血型", "b型", "ab型", Likeness.OTHER),
        ("education", "大专", "专科", Likeness.SAME),
    ],
)
def test_values_are_compared_by_what_they_are(attribute: str, one: str, other: str, likeness: Likeness) -> None:
    assert compare_values(attribute, one, other) is likeness
    assert compare_values(attribute, other, one) is likeness


@pytest.mark.parametrize("text", ["", "marketing", "may be", "月", "13.5", "maybe 5"])
def test_what_is_no_date_is_none(text: str) -> None:
    assert date_of(text) is None
