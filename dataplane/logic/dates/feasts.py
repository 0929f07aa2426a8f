"""Feasts of both languages, and the day on which each falls in a year.

Lunar feasts stand in a table from 2015 to 2035: the first day of the first month, from which the others cannot be
counted without the lengths of the months, so each has its own. Easter follows the anonymous Gregorian computus
(Meeus, Astronomical Algorithms, 1991, ch. 8).
"""

from collections.abc import Callable, Mapping
from datetime import date, timedelta

FIRST_LUNAR_YEAR = 2015
_SPRING = "0219 0208 0128 0216 0205 0125 0212 0201 0122 0210 0129 0217 0206 0126 0213 0203 0123 0211 0131 0219 0208"
_DRAGON = "0620 0609 0530 0618 0607 0625 0614 0603 0622 0610 0531 0619 0609 0528 0616 0605 0624 0612 0601 0620 0610"
_AUTUMN = "0927 0915 1004 0924 0913 1001 0921 0910 0929 0917 1006 0925 0915 1003 0922 0912 1001 0919 0908 0927 0916"

_QIXI = "0820 0809 0828 0817 0807 0825 0814 0804 0822 0810 0829 0819 0808 0826 0816 0805 0824 0812 0801 0820 0810"
_NINTH = "1021 1009 1028 1017 1007 1025 1014 1004 1023 1011 1029 1018 1008 1026 1016 1005 1024 1012 1001 1020 1009"

Rule = Callable[[int], date | None]


def _fixed(month: int, day: int) -> Rule:
    return lambda year: date(year, month, day)


def _nth(month: int, weekday: int, nth: int) -> Rule:
    def found(year: int) -> date:
        first = date(year, month, 1)
        return first + timedelta(days=(weekday - first.weekday()) % 7 + 7 * (nth - 1))

    return found


def _lunar(table: str, later_days: int = 0) -> Rule:
    def found(year: int) -> date | None:
        index = year - FIRST_LUNAR_YEAR
        if not 0 <= index < len(table.split()):
            return None
        entry = table.split()[index]
        return date(year, int(entry[:2]), int(entry[2:])) + timedelta(days=later_days)

    return found


def _easter(year: int) -> date:
    a, (b, c) = year % 19, divmod(year, 100)
    d, e = divmod(b, 4)
    g = (8 * b + 13) // 25
    h = (19 * a + b - d - g + 15) % 30
    i, k = divmod(c, 4)
    lunar = (32 + 2 * e + 2 * i - h - k) % 7
    m = (a + 11 * h + 22 * lunar) // 451
    month, day = divmod(h + lunar - 7 * m + 114, 31)
    return date(year, month, day + 1)


def _qingming(year: int) -> date | None:
    """By the rule for the 21st century: ⌊0.2422 y + 4.81⌋ − ⌊y / 4⌋ April, y the last two figures of the year."""
    if not 2000 <= year < 2100:
        return None
    short = year % 100
    return date(year, 4, int(0.2422 * short + 4.81) - short // 4)


CHINESE: Mapping[str, Rule] = {
    "元旦": _fixed(1, 1),
    "情人节": _fixed(2, 14),
    "妇女节": _fixed(3, 8),
    "愚人节": _fixed(4, 1),
    "清明": _qingming,
    "劳动节": _fixed(5, 1),
    "五一": _fixed(5, 1),
    "青年节": _fixed(5, 4),
    "母亲节": _nth(5, 6, 2),
    "儿童节": _fixed(6, 1),
    "六一": _fixed(6, 1),
    "父亲节": _nth(6, 6, 3),
    "建军节": _fixed(8, 1),
    "教师节": _fixed(9, 10),
    "国庆": _fixed(10, 1),
    "十一": _fixed(10, 1),
    "万圣节": _fixed(10, 31),
    "双十一": _fixed(11, 11),
    "感恩节": _nth(11, 3, 4),
    "平安夜": _fixed(12, 24),
    "圣诞": _fixed(12, 25),
    "除夕": _lunar(_SPRING, -1),
    "春节": _lunar(_SPRING),
    "元宵": _lunar(_SPRING, 14),
    "端午": _lunar(_DRAGON),
    "七夕": _lunar(_QIXI),
    "中秋": _lunar(_AUTUMN),
    "重阳": _lunar(_NINTH),
}
ENGLISH: Mapping[str, Rule] = {
    "new years day": _fixed(1, 1),
    "new years eve": _fixed(12, 31),
    "valentines day": _fixed(2, 14),
    "april fools day": _fixed(4, 1),
    "easter": _easter,
    "mothers day": _nth(5, 6, 2),
    "fathers day": _nth(6, 6, 3),
    "fourth of july": _fixed(7, 4),
    "independence day": _fixed(7, 4),
    "labor day": _nth(9, 0, 1),
    "halloween": _fixed(10, 31),
    "thanksgiving": _nth(11, 3, 4),
    "christmas eve": _fixed(12, 24),
    "christmas": _fixed(12, 25),
    "chinese new year": _lunar(_SPRING),
}
"""Names without apostrophes."""
