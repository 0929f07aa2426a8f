"""Whether two texts say what they share in the same order: "Ann reports to Ben" is not "Ben reports to Ann".

What must stand in the same relative order in both texts, as far as both hold it:

- words, numbers, signs, negations and words of direction (from, to, before, 从, 比, 先); not words without content
  (the, is, 的),
- pairs of neighbouring Chinese characters with the words of other scripts, for names that the segmenter does not know;
  all Chinese characters, where both texts hold the same ones (狗追猫, 猫追狗),
- pronouns (I, you, 我, 他) among themselves; among other words they move freely ("now I", 我现在).

A passive ("hired by", 被) and an active are told apart,
since they turn the order around. So word order that only shifts the stress ("today the gate opens") counts as a
difference: that keeps a repeat beside its twin, which costs less than swallowing a contradiction.
"""

import re
from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise

import rjieba

from dataplane.logic.slots import CANONICAL, plain, signs

_HAN = "\u3400-\u9fff"
_TERM = re.compile(rf"(?P<han>[{_HAN}]+)|\d+(?:[.,:/-]\d+)*|[^\W_{_HAN}]+|(?P<signs>[^\w\s]+)")
_NOT = re.compile(r"n['’]t\b|(?<=can)not\b")
_PRONOUNS = {
    "i": "i", "me": "i", "my": "i", "we": "we", "us": "we", "our": "we", "you": "you", "your": "you", "he": "he",
    "him": "he", "his": "he", "she": "she", "her": "she", "they": "they", "them": "they", "their": "they",
    "我": "i", "你": "you", "您": "you", "他": "he", "她": "she", "我们": "we", "咱们": "we", "你们": "you",
    "他们": "they", "她们": "they",
}  # fmt: skip
_PRONOUN_CHARACTERS = re.compile(r"[我你您他她咱]们?")
_MOVABLE = re.compile(
    r"a|an|the|is|are|was|were|am|be|been|being|do|does|did|has|have|had|will|would|it|this|that|these|those|of|and|very"
    r"|really|quite|so|just|also|too|now|there|as|s|m|re|ve|ll|d|t|ca|wo|[的了呢吧啊是在很挺特就也都还有个这那可真和]|特别"
    r"|非常|现在|目前|今年|平时|一个|一名|有点|可是"
)
_MOVABLE_CHARACTERS = re.compile(r"[的了呢吧啊是在很挺特就也都还有个这那可真]|[我你您他她咱]们?")
_PASSIVE = re.compile(
    r"\b\w+ed by\b|\b(?:is|are|was|were|be|been|being|gets?|got)(?: (?!an?\b|the\b)\w+)? \w+[dent] by\b|被|遭"
)
"""A participle before "by", so that "a welder by profession" is none."""


@dataclass(frozen=True, slots=True)
class Order:
    """What stands in which order: words, words with Han as pairs, pronouns, Han characters; passive or active."""

    words: list[str]
    pairs: list[str]
    pronouns: list[str]
    han: list[str]
    passive: bool


def in_same_order(a: str, b: str) -> bool:
    """True when what both texts hold stands in the same order in both. Symmetric."""
    return are_aligned(order_of(plain(a).lower()), order_of(plain(b).lower()))


def are_aligned(one: Order, other: Order) -> bool:
    """True when what both texts hold stands in the same order in both. Symmetric."""
    if one.passive != other.passive:
        return False
    if one.han != other.han and sorted(one.han) == sorted(other.han):
        return False
    return (
        _aligned(one.words, other.words) and _aligned(one.pairs, other.pairs) and _aligned(one.pronouns, other.pronouns)
    )


def _aligned(a: Sequence[str], b: Sequence[str]) -> bool:
    """True when the items that both hold come in the same order.

    All occurrences, of items that both hold equally often; for the others the first ones or the last ones will do.
    """
    counts_a, counts_b = Counter(a), Counter(b)
    equally = {item for item, count in counts_a.items() if counts_b[item] == count}
    if _only(equally, a) != _only(equally, b):
        return False
    if len(equally) == len(counts_a):
        return True
    shared = counts_a.keys() & counts_b.keys()
    one, other = _only(shared, a), _only(shared, b)
    return _firsts(one) == _firsts(other) or _firsts(one[::-1]) == _firsts(other[::-1])


def _only(wanted: AbstractSet[str], items: Sequence[str]) -> list[str]:
    return [item for item in items if item in wanted]


def _firsts(items: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(items))


def order_of(lowered: str) -> Order:
    """The order in a text in lower case."""
    found = Order([], [], [], [], _PASSIVE.search(lowered) is not None)
    for term in _TERM.finditer(_NOT.sub(" not", lowered)):
        text = term[0]
        if term.lastgroup == "han":
            found.pronouns.extend(_PRONOUNS[word] for word in _PRONOUN_CHARACTERS.findall(text))
            found.words.extend(_telling(rjieba.cut(text)))
            kept = _MOVABLE_CHARACTERS.sub("", text)
            found.han.extend(kept)
            found.pairs.extend(one + other for one, other in pairwise(kept))
        elif text in _PRONOUNS:
            found.pronouns.append(_PRONOUNS[text])
        else:
            others = signs(text) if term.lastgroup == "signs" else _telling([text])
            found.words.extend(others)
            found.pairs.extend(others)
    return found


def _telling(words: Sequence[str]) -> list[str]:
    return [CANONICAL.get(word, word) for word in words if not _MOVABLE.fullmatch(word) and word not in _PRONOUNS]
