"""How much of a query's words a text holds, where no full-text index can say.

    overlap = |query tokens ∩ text tokens| / |query tokens|

A stand-in for BM25 that needs no statistics of the collection; used for texts that are not indexed yet.
"""

from collections.abc import Set as AbstractSet

from dataplane.logic.tokens import tokens


def word_overlap(query_tokens: AbstractSet[str], text: str) -> float:
    """The share of the query's tokens that the text holds, 0 to 1; 0 for a query without tokens.

    Texts that hold none of the tokens even as part of a word are told apart without segmenting them; a stem may differ
    from its word in the last letter (happy, happi), which is left out there.
    """
    folded = text.casefold()
    if not any(token[: max(2, len(token) - 1)] in folded for token in query_tokens):
        return 0.0
    return len(query_tokens & set(tokens(text))) / len(query_tokens)
