"""Whether a memory of the same meaning is there already.

Similar is not the same: "born on 5 February" and "born on 5 March" are neighbours for every embedding. So a neighbour
above `dedup_similarity` is a duplicate only when both texts *say the same* in the slots that embeddings blur:

- numbers with their unit (dates, times, amounts; also 三月, 周五, "twelve", months and weekdays by name),
- identifiers (host names, paths, ticket numbers),
- negation (not, no longer, never, 不, 没, 别, 不再): in both or in neither,
- names (capitalised words within a sentence; persons, places and organisations by segmentation): none that the other
  text lacks.

One slot that differs, and the memory is new. That leaves a true paraphrase now and then beside its twin, which costs
less than swallowing a contradiction. Two different fact keys never merge.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import rjieba

from dataplane.logic.tokens import identifiers
from dataplane.model import Memory
from memplane.policy.model import WritePolicy

_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_UNIT = re.compile(r"\s?(%|[a-z]{1,3}\b|[年月日号点时分秒岁个元块米斤克层楼室万千百亿])")
_CHINESE_NUMBER = re.compile(
    r"[〇零一二两三四五六七八九十百千万]+(?=[年月日号点时分秒岁元块米斤克层楼室]|个[月小])|(?<=周|期|拜)[一二三四五六日天]"
)
_CHINESE_DIGITS = {digit: value for value, digit in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_NUMBER_WORDS = {
    word: str(value)
    for value, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
            "twenty",
        ]
    )
}
_CALENDAR = frozenset(
    [
        "january",
        "february",
        "march",
        "april",
        "may",
        "june",
        "july",
        "august",
        "september",
        "october",
        "november",
        "december",
        "monday",
        "tuesday",
        "wednesday",
        "thursday",
        "friday",
        "saturday",
        "sunday",
    ]
)
_NOT = re.compile(
    r"\b(?:not|no|never|none|nothing|neither|nor|without|cannot|stopped|quit)\b|n['’]t\b"
    r"|不(?!错|过|仅|但|好意思|同|管|论|久|只|得不|客气)|没(?!问题|关系|事)|未(?!来)|无(?!论|线|所谓)"
    r"|(?<![特个分区级性告类])别(?!人|墅|的|名|处)|戒(?!指)"
)
_NOT_A_NEGATION = re.compile(r"差不多|了不起|对不起|要不要|是不是|有没有|好不好|能不能|会不会|不断")
_CAPITALISED = re.compile(r"(?<=[\w,;:'’)] )[A-Z][\w'’-]*")
_NAMES = frozenset({"nr", "nrt", "nrfg", "ns", "nt", "nz"})


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A stored memory near to a draft, with its content and the calibrated similarity, 0 to 1."""

    memory: Memory
    content: str
    similarity: float


@dataclass(frozen=True, slots=True)
class _Slots:
    numbers: frozenset[str]
    identifiers: frozenset[str]
    negated: bool


def find_same(content: str, fact_key: str, neighbours: Sequence[Neighbour], policy: WritePolicy) -> Neighbour | None:
    """The most similar neighbour that says the same; ties by memory id. None when there is none or dedup is off."""
    if not policy.dedup:
        return None
    near = [neighbour for neighbour in neighbours if neighbour.similarity >= policy.dedup_similarity]
    for neighbour in sorted(near, key=lambda found: (-found.similarity, found.memory.memory_id)):
        other_key = neighbour.memory.fact_key
        keys_differ = bool(fact_key and other_key and fact_key != other_key)
        if not keys_differ and says_the_same(content, neighbour.content):
            return neighbour
    return None


def says_the_same(a: str, b: str) -> bool:
    """True when no slot tells the two texts apart. Symmetric; says nothing about the rest of their meaning."""
    plain_a, plain_b = unicodedata.normalize("NFKC", a), unicodedata.normalize("NFKC", b)
    return _slots(plain_a) == _slots(plain_b) and _names_within(plain_a, plain_b) and _names_within(plain_b, plain_a)


def _slots(text: str) -> _Slots:
    lowered = text.lower()
    return _Slots(
        numbers=frozenset(_numbers(lowered)),
        identifiers=frozenset(identifiers(text)),
        negated=_NOT.search(_NOT_A_NEGATION.sub("", lowered)) is not None,
    )


def _numbers(lowered: str) -> list[str]:
    found = [_with_unit(number, lowered) for number in _NUMBER.finditer(lowered)]
    found += [_chinese_with_unit(number, lowered) for number in _CHINESE_NUMBER.finditer(lowered)]
    for word in re.findall(r"[a-z]+", lowered):
        if word in _CALENDAR:
            found.append(word)
        elif word in _NUMBER_WORDS and word != "one":
            found.append(_NUMBER_WORDS[word])
    return found


def _with_unit(number: re.Match[str], lowered: str) -> str:
    unit = _UNIT.match(lowered, number.end())
    return number[0].replace(",", "") + (unit[1] if unit and not unit[1].isascii() else "")


def _chinese_with_unit(number: re.Match[str], lowered: str) -> str:
    return f"{_chinese_value(number[0])}{lowered[number.end() : number.end() + 1]}"


def _chinese_value(text: str) -> str:
    """A Chinese number below a hundred million in digits; anything irregular as it stands."""
    total, section, digit = 0, 0, 0
    for character in text:
        if character in _CHINESE_DIGITS:
            digit = digit * 10 + _CHINESE_DIGITS[character]
        elif character == "万":
            total, section, digit = (total + section + digit) * 10_000, 0, 0
        elif character in "十百千":
            section += (digit or 1) * {"十": 10, "百": 100, "千": 1000}[character]
            digit = 0
        else:
            return text
    return str(total + section + digit)


def _names_within(a: str, b: str) -> bool:
    folded = b.casefold()
    return all(name.casefold() in folded for name in _named(a))


def _named(text: str) -> list[str]:
    names = [word for word in _CAPITALISED.findall(text) if word not in {"I", "I'm", "I’m", "I've", "I'll", "I'd"}]
    if not text.isascii():
        names += [word for word, tag in rjieba.tag(text) if tag in _NAMES and not word.isascii()]
    return names
