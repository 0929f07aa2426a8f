"""The parts of a sentence that decide what it says and that embeddings blur.

- numbers: dates, times, amounts with their Chinese unit; 三月, 周五, "twelve", months and weekdays by name,
- identifiers: host names, paths, ticket numbers,
- negation: not, no longer, never, 不, 没, 别, 不再; there or not,
- people: I, my boss, 我妈妈 … with their synonyms, where a sentence names one,
- degrees: 本科, 博士, "bachelor" …; all of them near neighbours,
- names: capitalised words within a sentence; persons, places and organisations by segmentation,
- one word in the place of another in an otherwise equal sentence ("in the blue room", "in the green room"), synonyms
  and words without content apart.

The word lists are our own and cover what people say of themselves, their families and their work in both languages.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import rjieba

from dataplane.logic.tokens import identifiers

_NUMBER = re.compile(r"\d+(?:[.,:/-]\d+)*")
_UNIT = re.compile(r"\s?([年月日号点时分秒岁个元块米斤克层楼室万千百亿])")
_CHINESE_NUMBER = re.compile(
    r"[〇零一二两三四五六七八九十百千万]+(?=[年月日号点时分秒岁元块米斤克层楼室]|个[月小])|(?<=周|期|拜)[一二三四五六日天]"
)
_CHINESE_DIGITS = {digit: value for value, digit in enumerate("零一二三四五六七八九")} | {"〇": 0, "两": 2}
_CHINESE_TENS = {"十": 10, "百": 100, "千": 1000}
_NUMBER_WORDS = {
    "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9",
    "ten": "10", "eleven": "11", "twelve": "12", "fifteen": "15", "twenty": "20", "thirty": "30", "hundred": "100",
}  # fmt: skip
_CALENDAR = re.compile(
    r"\b(?:january|february|march|april|may|june|july|august|september|october|november|december"
    r"|monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b"
)
_NOT = re.compile(
    r"\b(?:not|no|never|none|nothing|neither|nor|without|cannot|stopped|quit)\b|n['’]t\b"
    r"|不(?!错|过|仅|但|好意思|同|管|论|久|只|得不|客气|断)|没(?!问题|关系|事)|未(?!来)|无(?!论|线|所谓)"
    r"|(?<![特个分区级性告类])别(?!人|墅|的|名|处)|戒(?!指)"
)
_NO_NEGATION = re.compile(r"差不多|了不起|对不起|要不要|是不是|有没有|好不好|能不能|会不会")
_PEOPLE = (
    ("爸爸", "父亲", "老爸", "father", "dad"), ("妈妈", "母亲", "老妈", "mother", "mom", "mum"),
    ("老公", "丈夫", "husband"), ("老婆", "妻子", "太太", "爱人", "wife"), ("儿子", "son"), ("女儿", "daughter"),
    ("哥哥", "弟弟", "brother"), ("姐姐", "妹妹", "sister"), ("爷爷", "grandfather"), ("奶奶", "grandmother"),
    ("外公", "姥爷"), ("外婆", "姥姥"), ("叔叔", "uncle"), ("婶婶",), ("舅舅",), ("舅妈",), ("姑姑", "aunt"), ("姑父",),
    ("姨妈", "阿姨"), ("表哥",), ("表弟",), ("表姐",), ("表妹",), ("堂哥",), ("堂弟",), ("堂姐",), ("堂妹",),
    ("侄子", "nephew"), ("侄女", "niece"), ("上司", "老板", "领导", "boss", "manager"), ("下属",),
    ("同事", "colleague", "coworker"), ("同学", "classmate"), ("老师", "teacher"), ("邻居", "neighbour", "neighbor"),
    ("朋友", "friend"), ("客户", "customer", "client"), ("室友", "roommate"), ("他", "he", "his"), ("她", "she", "her"),
    ("男友", "boyfriend"), ("女友", "girlfriend"),
)  # fmt: skip
_PERSON = {word: group[0] for group in _PEOPLE for word in group}
_PERSON_WORD = re.compile(
    "|".join(rf"\b{word}\b" if word.isascii() else word for word in sorted(_PERSON, key=len, reverse=True))
)
_DEGREE = re.compile(r"小学|初中|高中|中专|专科|大专|本科|硕士|博士|\bbachelor|\bmaster['’]s|\bphd\b|\bdoctorate\b")
_CAPITALISED = re.compile(r"(?<=[\w,;:'’)] )(?!I\b)[A-Z][\w'’-]*")
_NAME_TAGS = frozenset({"nr", "nrt", "nrfg", "ns", "nt", "nz"})
_SYNONYMS = (
    ("喜欢", "爱", "爱好", "喜爱", "爱玩"), ("家乡", "老家"),
    ("电话", "手机", "电话号码", "手机号", "手机号码", "联系电话", "号码"), ("邮箱", "邮箱地址", "邮件地址"),
    ("工作", "上班", "任职"), ("今年", "现在", "目前"), ("个子", "个儿", "身高"), ("住", "住在"), ("公司", "单位"),
    ("专科", "专科毕业", "大专"), ("职位", "职务"), ("叫", "叫做", "名叫"), ("日", "号", "日期"), ("生日", "出生"),
    ("like", "likes", "love", "loves", "enjoy", "enjoys"), ("work", "works", "job"), ("live", "lives", "home"),
    ("large", "big"), ("phone", "telephone"), ("starts", "begins"), ("buy", "purchase"),
)  # fmt: skip
_CANONICAL = _PERSON | _NUMBER_WORDS | {word: group[0] for group in _SYNONYMS for word in group}
_WITHOUT_CONTENT = re.compile(
    r"a|an|the|my|our|is|are|was|were|am|be|to|in|on|at|of|and|it|that|this|very|really|quite|so|just|also|too|now|has|have"
    r"|[的了呢吧啊是在很挺特就也都还我有个这那可真上里名做干就只]|特别|非常|平时|一个|一名|有点|可是|他|她"
)


@dataclass(frozen=True, slots=True)
class Slots:
    """What a text says in the slots that must be equal."""

    numbers: frozenset[str]
    identifiers: frozenset[str]
    negated: bool
    people: frozenset[str]
    degrees: frozenset[str]


def slots_of(text: str) -> Slots:
    """The slots of a text."""
    lowered = _plain(text).lower()
    return Slots(
        numbers=frozenset(_numbers(lowered)),
        identifiers=frozenset(identifiers(text)),
        negated=_NOT.search(_NO_NEGATION.sub("", lowered)) is not None,
        people=frozenset(_PERSON[word] for word in _PERSON_WORD.findall(lowered)),
        degrees=frozenset(_DEGREE.findall(lowered)),
    )


def names_within(a: str, b: str) -> bool:
    """True when every name in `a` stands somewhere in `b`."""
    folded = _plain(b).casefold()
    return all(name.casefold() in folded for name in _names(_plain(a)))


def is_substitution(a: str, b: str) -> bool:
    """True when the texts are equal word by word but for one place, where each has one word of its own."""
    words_a, words_b = _words(a), _words(b)
    start = _common(words_a, words_b)
    end = _common(words_a[start:][::-1], words_b[start:][::-1])
    own_a, own_b = words_a[start : len(words_a) - end], words_b[start : len(words_b) - end]
    return len(own_a) == len(own_b) == 1


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    """How many words both begin with."""
    for number, (one, other) in enumerate(zip(a, b, strict=False)):
        if one != other:
            return number
    return min(len(a), len(b))


def _words(text: str) -> list[str]:
    words = (word.strip().casefold() for word in rjieba.cut(_plain(text)))
    kept = (word for word in words if word and word[0].isalnum() and not _WITHOUT_CONTENT.fullmatch(word))
    return [_CANONICAL.get(word, word) for word in kept]


def _numbers(lowered: str) -> list[str]:
    found = [_with_unit(number[0].replace(",", ""), number.end(), lowered) for number in _NUMBER.finditer(lowered)]
    found += [
        _with_unit(_chinese_value(number[0]), number.end(), lowered) for number in _CHINESE_NUMBER.finditer(lowered)
    ]
    found += [_NUMBER_WORDS[word] for word in re.findall(r"[a-z]+", lowered) if word in _NUMBER_WORDS]
    return found + _CALENDAR.findall(lowered)


def _with_unit(number: str, end: int, lowered: str) -> str:
    unit = _UNIT.match(lowered, end)
    return number + (unit[1].replace("号", "日") if unit else "")


def _chinese_value(text: str) -> str:
    """A Chinese number below a hundred million in digits."""
    total, section, digit = 0, 0, 0
    for character in text:
        if character == "万":
            total, section, digit = (total + section + digit) * 10_000, 0, 0
        elif character in _CHINESE_TENS:
            section, digit = section + (digit or 1) * _CHINESE_TENS[character], 0
        else:
            digit = digit * 10 + _CHINESE_DIGITS.get(character, 0)
    return str(total + section + digit)


def _names(text: str) -> list[str]:
    names = _CAPITALISED.findall(text)
    if not text.isascii():
        names += [word for word, tag in rjieba.tag(text) if tag in _NAME_TAGS and not word.isascii()]
    return names
