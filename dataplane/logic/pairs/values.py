"""How two values of one attribute stand to each other: dates, numbers with units, places, words."""

import re
from enum import IntEnum

from Stemmer import Stemmer

from dataplane.logic.pairs.chinese import without_province
from dataplane.logic.slots import CANONICAL, numbers_of, signs
from dataplane.logic.word_order import in_same_order

_PLACES = frozenset({"lives", "hometown", "workplace", "address", "headquarters"})
_DIGITS = frozenset({"phone"})
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
LAST_MONTH, LAST_DAY = 12, 31
_MONTH = {name: number for number, name in enumerate(_MONTHS, 1)}
_ENGLISH_DATE = re.compile(
    r"(?:(?P<d>\d{1,2})(?:st|nd|rd|th)?(?: of)? )?\b"
    r"(?P<m>(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|aug(?:ust)?|sept?(?:ember)?"
    r"|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?))\b\.?"
    r"(?:,? (?:the )?(?P<e>\d{1,2})(?:st|nd|rd|th)?\b)?(?:,? (?:of )?(?P<y>\d{4}))?"
)
_CHINESE_DATE = re.compile(r"(?:(?P<y>\d+)年)?(?P<m>\d+)月(?:(?P<d>\d+)日)?")
_WRITTEN_DATE = re.compile(r"^(?:(?P<y>\d{4})[-/.])?(?P<m>\d{1,2})[-/.](?P<d>\d{1,2})$")
_METRES = re.compile(r"(?P<m>\d)(?:米|m\b|\.)(?P<cm>\d{1,2})?(?:米|m\b)?")
_WORD = re.compile(r"[a-z0-9@+][\w@.'+-]*|[\u3400-\u9fff]+")
_HAN = re.compile(r"[\u3400-\u9fff]+")
_EMPTY = {
    "a", "an", "the", "my", "his", "her", "their", "its", "s", "of", "in", "on", "at", "to", "and", "some", "very",
    "is", "are", "really", "one", "with",
}  # fmt: skip
_ALIKE = {"大专": "专科", "研究生": "硕士", "硕士研究生": "硕士", "离异": "离婚", "素食主义": "素食", "吃素": "素食"}


class Likeness(IntEnum):
    """SAME, WITHIN (the one tells more than the other), PARTLY (they share something), OTHER."""

    OTHER = 0
    PARTLY = 1
    WITHIN = 2
    SAME = 3


def compare_values(attribute: str, a: str, b: str) -> Likeness:
    """How the values stand to each other. Symmetric."""
    a, b = _ALIKE.get(a, a), _ALIKE.get(b, b)
    if a == b:
        return Likeness.SAME
    measured = _compare_measures(attribute, a, b)
    if measured is not None:
        return measured
    return _compare_places(a, b) if attribute in _PLACES else _compare_words(a, b)


def _compare_measures(attribute: str, a: str, b: str) -> Likeness | None:
    """By dates, digits, lengths, signs and numbers; None when these do not decide."""
    dates = date_of(a), date_of(b)
    if dates[0] and dates[1]:
        return _compare_dates(dates[0], dates[1])
    if attribute in _DIGITS:
        return Likeness.SAME if _same_digits(a, b) else Likeness.OTHER
    if attribute == "height" and _centimetres(a) and _centimetres(b):
        return Likeness.SAME if _centimetres(a) == _centimetres(b) else Likeness.OTHER
    numbers = _plain_numbers(a), _plain_numbers(b)
    if sorted(signs(a)) != sorted(signs(b)) or (numbers[0] and numbers[1] and numbers[0] != numbers[1]):
        return Likeness.OTHER
    return Likeness.SAME if numbers[0] and numbers[0] == numbers[1] and _letters(a) == _letters(b) else None


def date_of(value: str) -> tuple[int, int, int] | None:
    """Year, month and day of a date, 0 for what it does not tell; None when the value is no date."""
    found = _WRITTEN_DATE.search(value) or _CHINESE_DATE.search(_counted(value)) or _ENGLISH_DATE.search(value)
    if found is None or 2 * len(found[0]) < len(value):
        return None
    parts = found.groupdict()
    month = parts["m"]
    day, year = int(parts["d"] or parts.get("e") or 0), int(parts["y"] or 0)
    number = int(month) if month.isdigit() else _MONTH[month[:3]]
    is_date = 1 <= number <= LAST_MONTH and day <= LAST_DAY and (day or year or found[0] == value)
    return (year, number, day) if is_date else None


def _compare_dates(a: tuple[int, int, int], b: tuple[int, int, int]) -> Likeness:
    pairs = list(zip(a, b, strict=True))
    if any(one != other and one and other for one, other in pairs):
        return Likeness.OTHER
    return Likeness.SAME if a == b else Likeness.WITHIN


def _counted(value: str) -> str:
    """A Chinese date in digits, with 日 for 号."""
    if "月" not in value:
        return value
    return "".join(sorted(numbers_of(value), key=lambda number: "年月日".find(number[-1])))


def _centimetres(value: str) -> int:
    found = _METRES.search(
        re.sub(r"[一二三四五六七八九]", lambda digit: str("零一二三四五六七八九".index(digit[0])), value)
    )
    if found is not None:
        return int(found["m"]) * 100 + int((found["cm"] or "0").ljust(2, "0"))
    plain = re.search(r"\d{2,3}", value)
    return int(plain[0]) if plain else 0


def _same_digits(a: str, b: str) -> bool:
    one, other = re.sub(r"\D", "", a), re.sub(r"\D", "", b)
    return one == other or (min(len(one), len(other)) >= 7 and (one.endswith(other) or other.endswith(one)))


def _plain_numbers(value: str) -> frozenset[str]:
    return frozenset(re.sub(r"\D*$", "", number) for number in numbers_of(value))


def _letters(value: str) -> set[str]:
    return set(re.sub(r"[\d\s.,:/-]|年|月|日|号|岁|years?|old", "", value))


def _compare_places(a: str, b: str) -> Likeness:
    if a.isascii() and b.isascii():
        whole = "," in a, "," in b
        return _compare_words(*(place.split(",")[0] if whole != (True, True) else place for place in (a, b)))
    a, b = without_province(a), without_province(b)
    return Likeness.SAME if set(a) == set(b) else _compare_words(a, b)


def _compare_words(a: str, b: str) -> Likeness:
    one, other = words_of(a), words_of(b)
    if one == other:
        return Likeness.SAME if in_same_order(a, b) else Likeness.PARTLY
    if not one or not other or one <= other or other <= one:
        return Likeness.WITHIN
    if (a in b and _HAN.fullmatch(a)) or (b in a and _HAN.fullmatch(b)):
        return Likeness.WITHIN
    return Likeness.PARTLY if 2 * len(one & other) >= min(len(one), len(other)) else Likeness.OTHER


def words_of(value: str) -> frozenset[str]:
    """The words of a value, stemmed, without those that say nothing; pairs of characters for Chinese."""
    found: set[str] = set()
    stemmer = Stemmer("english", 0)
    for word in _WORD.findall(value):
        if word[0] >= "\u3400":
            found.update(word[at : at + 2] for at in range(max(1, len(word) - 1)))
        elif word not in _EMPTY:
            found.add(str(stemmer.stemWord(CANONICAL.get(word, word))))
    return frozenset(found)
