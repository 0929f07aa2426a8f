"""A long text cut down to its weightiest sentences, word for word.

A sentence weighs the mean commonness of its terms in the whole text (centrality, after Luhn 1958 and SumBasic, Nenkova
and Vanderwende 2005), and more when it stands first (openings tell the subject) or holds numbers or identifiers (facts
that nothing else can replace). The heaviest are taken while they fit, each once, and kept in their order. The weights
0.5 and 0.3 are unmeasured. Cost: linear in the text but for one sort of its sentences.
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence

from dataplane.logic.tokens import tokens

FIRST_BONUS = 0.5
FACT_BONUS = 0.3
_SENTENCE_END = re.compile(r"(?<=[。！？；…])|(?<=[.!?;])(?=\s)|(?<=\n)")
_FACT = re.compile(r"\d|[A-Za-z0-9][-_/.@][A-Za-z0-9]")


def condense(text: str, max_tokens: int, count_tokens: Callable[[str], int]) -> str:
    """At most `max_tokens` tokens of the text; all of it when it fits, "" only when not one character does."""
    if count_tokens(text) <= max_tokens:
        return text
    sentences = [sentence for sentence in _SENTENCE_END.split(text) if sentence.strip()] or [text]
    weights = _weights(sentences)
    heaviest = sorted(range(len(sentences)), key=lambda number: (-weights[number], number))
    kept = _chosen(sentences, heaviest, max_tokens, count_tokens)
    condensed = _fitted(sentences, kept, max_tokens, count_tokens)
    return condensed or _cut(sentences[heaviest[0]].strip(), max_tokens, count_tokens)


def _chosen(
    sentences: Sequence[str], heaviest: Sequence[int], max_tokens: int, count_tokens: Callable[[str], int]
) -> list[int]:
    """The heaviest sentences that fit together, each wording once, heaviest first."""
    kept: dict[str, int] = {}
    room = max_tokens
    for number in heaviest:
        said = sentences[number].strip()
        if said in kept:
            continue
        cost = count_tokens(sentences[number])
        if cost <= room:
            kept[said] = number
            room -= cost
    return list(kept.values())


def _weights(sentences: Sequence[str]) -> list[float]:
    terms = [tokens(sentence) for sentence in sentences]
    spread = Counter(term for sentence in terms for term in set(sentence))
    weights = []
    for number, (sentence, words) in enumerate(zip(sentences, terms, strict=True)):
        centrality = sum(spread[word] for word in words) / (len(words) * len(sentences)) if words else 0.0
        first = FIRST_BONUS if number == 0 else 0.0
        weights.append(centrality + first + (FACT_BONUS if _FACT.search(sentence) else 0.0))
    return weights


def _fitted(sentences: Sequence[str], by_weight: list[int], max_tokens: int, count_tokens: Callable[[str], int]) -> str:
    """The sentences in their order, without the lightest ones as long as the whole counts more than its parts."""
    while by_weight:
        text = "".join(sentences[number] for number in sorted(by_weight)).strip()
        if count_tokens(text) <= max_tokens:
            return text
        by_weight = by_weight[:-1]
    return ""


def _cut(sentence: str, max_tokens: int, count_tokens: Callable[[str], int]) -> str:
    """The longest beginning that fits, by bisection."""
    fits, too_long = 0, len(sentence) + 1
    while too_long - fits > 1:
        middle = (fits + too_long) // 2
        if count_tokens(sentence[:middle]) <= max_tokens:
            fits = middle
        else:
            too_long = middle
    return sentence[:fits].strip()
