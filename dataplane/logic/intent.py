"""What a query asks for beyond its meaning: exact identifiers, and the latest state of things."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dataplane.logic.tokens import identifiers

_WORDS_ONLY = re.compile(r"[\x00-\u024f]+")
"""Words of a script that puts spaces between words (Latin): they match whole. Others match anywhere in the text."""


@dataclass(frozen=True, slots=True)
class Intent:
    """Identifiers (as `logic.tokens` writes them) that the query names, and whether it asks for the latest."""

    identifiers: tuple[str, ...] = ()
    wants_recent: bool = False


def read_intent(query: str, recency_words: Sequence[str]) -> Intent:
    """The intent of a query. Words of `recency_words` match in any case; "now" is not in "know"."""
    folded = query.casefold()
    return Intent(identifiers(query), any(_mentions(folded, word.casefold()) for word in recency_words))


def _mentions(query: str, word: str) -> bool:
    if not _WORDS_ONLY.fullmatch(word):
        return word in query
    return re.search(rf"(?<![^\W_]){re.escape(word)}(?![^\W_])", _spaced(query)) is not None


def _spaced(query: str) -> str:
    """The query with spaces where Latin meets another script, as in 现在now呢."""
    return re.sub(r"(?<=[\x00-\u024f])(?=[^\x00-\u024f])|(?<=[^\x00-\u024f])(?=[\x00-\u024f])", " ", query)
