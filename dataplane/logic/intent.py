"""What a query asks for beyond its meaning: exact identifiers, the latest state of things, a period of time."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dataplane.logic.period import Period, asked_period
from dataplane.logic.tokens import identifiers

_WORDS_ONLY = re.compile(r"[\x00-\u024f]+")
"""Words of a script that puts spaces between words (Latin): they match whole. Others match anywhere in the text."""


@dataclass(frozen=True, slots=True)
class Intent:
    """Identifiers (as `logic.tokens` writes them) that the query names, whether it asks for the latest, and of when."""

    identifiers: tuple[str, ...] = ()
    wants_recent: bool = False
    period: Period | None = None


def read_intent(query: str, recency_words: Sequence[str], reference_us: int | None = None) -> Intent:
    """The intent of a query. Words of `recency_words` match in any case; "now" is not in "know".

    Time expressions are taken as said at `reference_us`; None: they are not read.
    """
    folded = query.casefold()
    wants_recent = any(_mentions(folded, word.casefold()) for word in recency_words)
    period = None if reference_us is None else asked_period(query, reference_us, wants_recent=wants_recent)
    return Intent(identifiers(query), wants_recent, period)


def _mentions(query: str, word: str) -> bool:
    if not _WORDS_ONLY.fullmatch(word):
        return word in query
    return re.search(rf"(?<![^\W_]){re.escape(word)}(?![^\W_])", _spaced(query)) is not None


def _spaced(query: str) -> str:
    """The query with spaces where Latin meets another script, as in 现在now呢."""
    return re.sub(r"(?<=[\x00-\u024f])(?=[^\x00-\u024f])|(?<=[^\x00-\u024f])(?=[\x00-\u024f])", " ", query)
