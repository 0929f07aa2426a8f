"""How much of a query a text holds, where no full-text index can say.

    overlap = |query tokens ∩ text tokens| / |query tokens|

A stand-in for BM25 that needs no statistics of the collection; used for texts that are not indexed yet. Identifiers are
counted, since a text holds one or does not.
"""

from collections.abc import Set as AbstractSet

from dataplane.logic.tokens import folded, tokens


def word_overlap(query_tokens: AbstractSet[str], text: str) -> float:
    """The share of the query's tokens that the text holds, 0 to 1; 0 for a query without tokens.

    Texts that hold none of the tokens even as part of a word are told apart without segmenting them; a stem may differ
    from its word in the last letter (happy, happi), which is left out there.
    """
    return len(_held(query_tokens, text)) / len(query_tokens) if query_tokens else 0.0


def identifiers_held(identifiers: AbstractSet[str], text: str) -> int:
    """How many of the identifiers (as `logic.tokens` writes them) the text holds, each as a whole."""
    return len(_held(identifiers, text))


def _held(wanted: AbstractSet[str], text: str) -> AbstractSet[str]:
    plain = folded(text)
    if not any(token[: max(2, len(token) - 1)] in plain for token in wanted):
        return frozenset()
    return wanted & set(tokens(text))
