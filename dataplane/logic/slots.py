"""The parts of a sentence that decide what it says and that embeddings blur.

- numbers: dates, times, amounts with their Chinese unit; 三月, 周五, "twelve", months and weekdays by name,
- identifiers: host names, paths, ticket numbers,
- negation: not, no longer, never, 不, 没, 别, 不再; there or not,
- signs: <, ≥, =, →, +, %, −5, currencies, ✅ and ❌, with the words that say the same (大于, percent, euros),
- whether it asks: "?", 吗; a question word (how, 怎么) in both texts makes up for a missing mark,
- people: I, my boss, 我妈妈 … with their synonyms, where a sentence names one,
- degrees: 本科, 博士, "bachelor" …; all of them near neighbours,
- names: capitalised words within a sentence; persons, places and organisations by segmentation,
- opposites: one text has the one word (to, after, bought, 买, 升), the other its opposite (from, before, sold, 卖, 降),
- case, where it changes the meaning: US and us, 5 MB and 5 Mb, Polish and polish,
- one word in the place of another in an otherwise equal sentence ("in the blue room", "in the green room"), synonyms
  and words without content apart.

The word lists are our own and cover what people say of themselves, their families and their work in both languages.
"""

import re
import unicodedata
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
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
_SIGNS = (
    ("≤", r"<=|≤|小于等于|不大于"), ("≥", r">=|≥|大于等于|不小于"), ("≠", r"!=|≠|不等于"), ("→", r"[-=]>|[→⇒➔]"),
    ("←", r"<-|[←⇐]"), ("<", r"<|小于"), (">", r">|大于"), ("=", r"==?|等于"), ("#", r"(?<=[a-z])#"),
    ("+", r"(?<=\w)\+|\+(?=\s)"),
    ("−", r"(?<![^\s(=:])[-−](?=\d)"), ("%", r"%|\bper ?cent\b|百分之"), ("$", r"\$|\bdollars?\b|\busd\b|美元"),
    ("€", r"€|\beuros?\b|\beur\b|欧元"), ("£", r"£|\bgbp\b|英镑"), ("¥", r"¥|\byen\b|日元"),
    ("✓", r"[✓✔✅👍]"), ("✗", r"[✗✘❌👎]"),
)  # fmt: skip
_SIGN = re.compile(r"(?=[^\w\s]|[degpuy百不大等美欧日小英])(?:" + "|".join(f"({form})" for _, form in _SIGNS) + ")")
"""What a sign can begin with stands ahead of the alternatives: five times faster on text without signs."""
_ASKS = re.compile(r"\?|吗")
_QUESTION_WORD = re.compile(
    r"\b(?:who|what|when|where|why|how|which)\b|什么|怎么|怎样|如何|哪|谁|几|多少|为何|是否|是不是|有没有|能不能|会不会"
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
_PERSON_IN_HAN = re.compile("|".join(sorted((word for word in _PERSON if not word.isascii()), key=len, reverse=True)))
_LATIN = re.compile(r"[a-z]+")
_DEGREE = re.compile(r"小学|初中|高中|中专|专科|大专|本科|硕士|博士|\bbachelor|\bmaster['’]s|\bphd\b|\bdoctorate\b")
_CASED = re.compile(r"(?<![^\W_])(?:[A-Z]{2,}|(?=[^\W_]*\d)(?=[^\W_]*[A-Za-z])(?!\d+[A-Za-z]{2}\b)[^\W_]+)(?![^\W_])")
"""Acronyms, and codes of letters and digits; "5pm" is none."""
_CAPITONYMS = re.compile(
    r"\b(?:polish|turkey|china|march|may|august|apple|windows|bill|mark|rose|jack|will|grace|hope|joy|frank|reading|nice"
    r"|mobile|bath|cork|job|pole|swift|rust|go|word|excel|teams|slack|meta|shell|target|gap|oracle|python|java|chrome)\b",
    re.IGNORECASE,
)
_CAPITALISED = re.compile(r"(?<=[\w,;:'’)] )(?!I\b)[A-Z][\w'’-]*")
_WORD = re.compile(r"[^\W_]+")
_NAME_TAGS = frozenset({"nr", "nrt", "nrfg", "ns", "nt", "nz"})
_SYNONYMS = (
    ("喜欢", "爱", "爱好", "喜爱", "爱玩"), ("家乡", "老家"),
    ("电话", "手机", "电话号码", "手机号", "手机号码", "联系电话", "号码"), ("邮箱", "邮箱地址", "邮件地址"),
    ("工作", "上班", "任职"), ("今年", "现在", "目前"), ("个子", "个儿", "身高"), ("住", "住在"), ("公司", "单位"),
    ("专科", "专科毕业", "大专"), ("职位", "职务"), ("叫", "叫做", "名叫"), ("日", "号", "日期"), ("生日", "出生"),
    ("like", "likes", "love", "loves", "enjoy", "enjoys"), ("work", "works", "job"), ("live", "lives", "home"),
    ("large", "big"), ("phone", "telephone"), ("starts", "begins"), ("buy", "purchase"),
)  # fmt: skip
_OPPOSITES = (
    ("to", "from"), ("before", "after"), ("over", "under"), ("up", "down"), ("on", "off"), ("in", "out"),
    ("left", "right"), ("above", "below"), ("with", "without"), ("buy", "sell"), ("bought", "sold"),
    ("lend", "borrow"), ("lent", "borrowed"), ("won", "lost"), ("more", "less"), ("open", "closed"),
    ("opens", "closes"), ("start", "stop"), ("starts", "ends"), ("yesterday", "tomorrow"), ("today", "tomorrow"),
    ("today", "yesterday"), ("morning", "evening"), ("for", "against"), ("买", "卖"), ("前", "后"), ("左", "右"),
    ("升", "降"), ("增", "减"), ("涨", "跌"), ("高于", "低于"), ("上班", "下班"), ("开", "关"), ("赢", "输"),
    ("昨天", "明天"), ("今天", "明天"), ("今天", "昨天"), ("早上", "晚上"), ("上午", "下午"), ("进", "出"),
    ("把", "被"),
)  # fmt: skip
_INSTEAD = frozenset({(True, False, False, True), (False, True, True, False)})
_LATIN_POLES = frozenset(word for pair in _OPPOSITES for word in pair if word.isascii())
_HAN_POLES = tuple(dict.fromkeys(word for pair in _OPPOSITES for word in pair if not word.isascii()))
CANONICAL = _PERSON | _NUMBER_WORDS | {word: group[0] for group in _SYNONYMS for word in group}
"""One word for all that say the same: people, numbers, synonyms."""
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
    signs: tuple[str, ...]


def slots_of(text: str) -> Slots:
    """The slots of a text."""
    lowered = plain(text).lower()
    return Slots(
        numbers=numbers_of(lowered),
        identifiers=frozenset(identifiers(text)),
        negated=_NOT.search(_NO_NEGATION.sub("", lowered)) is not None,
        people=frozenset(_PERSON[word] for word in _people(lowered)),
        degrees=frozenset(_DEGREE.findall(lowered)),
        signs=tuple(sorted(signs(lowered))),
    )


def numbers_of(lowered: str) -> frozenset[str]:
    """The numbers, with their Chinese unit, and calendar names in a text in lower case."""
    return frozenset(_numbers(lowered))


def signs(lowered: str) -> list[str]:
    """The signs in a text in lower case, in order, one name for each of those that say the same."""
    return [_SIGNS[(found.lastindex or 1) - 1][0] for found in _SIGN.finditer(lowered)]


def asks(lowered: str) -> bool:
    """True when a text in lower case bears the mark of a question."""
    return _ASKS.search(lowered) is not None


def both_ask(a: str, b: str) -> bool:
    """True when both texts ask or neither does."""
    a, b = plain(a).lower(), plain(b).lower()
    if (_ASKS.search(a) is None) == (_ASKS.search(b) is None):
        return True
    return _QUESTION_WORD.search(a) is not None and _QUESTION_WORD.search(b) is not None


def are_opposed(a: str, b: str) -> bool:
    """True when one text has a word and the other its opposite instead."""
    return poles_differ(poles_of(plain(a).lower()), poles_of(plain(b).lower()))


def poles_of(lowered: str) -> frozenset[str]:
    """The words in a text in lower case that have an opposite."""
    found = _LATIN_POLES.intersection(_LATIN.findall(lowered))
    return found if lowered.isascii() else found.union(pole for pole in _HAN_POLES if pole in lowered)


def poles_differ(a: AbstractSet[str], b: AbstractSet[str]) -> bool:
    """True when one has a word and the other its opposite instead."""
    if a == b:
        return False
    return any((one in a, other in a, one in b, other in b) in _INSTEAD for one, other in _OPPOSITES)


def cases_within(a: str, b: str) -> bool:
    """True when no word that means something by its case in `a` stands in `b` in another case only."""
    a, b = plain(a), plain(b)
    telling = _CASED.findall(a) + [name for name in _CAPITALISED.findall(a) if _CAPITONYMS.fullmatch(name)]
    if not telling:
        return True
    written = set(_WORD.findall(b))
    folded = {word.casefold() for word in written}
    return all(word in written or word.casefold() not in folded for word in telling)


def names_within(a: str, b: str) -> bool:
    """True when every name in `a` stands somewhere in `b`."""
    folded = plain(b).casefold()
    return all(name in folded for name in names_of(plain(a)))


def is_substitution(a: str, b: str) -> bool:
    """True when the texts are equal word by word but for one place, where each has one word of its own."""
    return one_differs(content_words(plain(a)), content_words(plain(b)))


def one_differs(a: Sequence[str], b: Sequence[str]) -> bool:
    """True when the words are equal but for one place, where each has one word of its own."""
    if len(a) != len(b):
        return False
    start = _common(a, b)
    return start < len(a) and a[start + 1 :] == b[start + 1 :]


def plain(text: str) -> str:
    """The text with full-width and other variants of characters folded (NFKC), case kept."""
    return unicodedata.normalize("NFKC", text)


def _common(a: Sequence[str], b: Sequence[str]) -> int:
    """How many words both begin with."""
    for number, (one, other) in enumerate(zip(a, b, strict=False)):
        if one != other:
            return number
    return min(len(a), len(b))


def content_words(text: str) -> list[str]:
    """The words of a text in NFKC that say something, one for all that say the same, in order."""
    words = (word.strip().casefold() for word in rjieba.cut(text))
    kept = (word for word in words if word and word[0].isalnum() and not _WITHOUT_CONTENT.fullmatch(word))
    return [CANONICAL.get(word, word) for word in kept]


def _people(lowered: str) -> list[str]:
    in_han = [] if lowered.isascii() else _PERSON_IN_HAN.findall(lowered)
    return in_han + [word for word in _LATIN.findall(lowered) if word in _PERSON]


def _numbers(lowered: str) -> list[str]:
    found = [_with_unit(number[0].replace(",", ""), number.end(), lowered) for number in _NUMBER.finditer(lowered)]
    found += [
        _with_unit(_chinese_value(number[0]), number.end(), lowered) for number in _CHINESE_NUMBER.finditer(lowered)
    ]
    found += [_NUMBER_WORDS[word] for word in _LATIN.findall(lowered) if word in _NUMBER_WORDS]
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


def names_of(text: str) -> list[str]:
    """The names in a text in NFKC, in lower case."""
    names = _CAPITALISED.findall(text)
    if not text.isascii():
        names += [word for word, tag in rjieba.tag(text) if tag in _NAME_TAGS and not word.isascii()]
    return [name.casefold() for name in names]
