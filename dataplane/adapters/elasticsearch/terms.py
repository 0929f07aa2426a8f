"""Tokens as Elasticsearch indexes and scores them: BM25 as a sum of constants, so that no other tenant counts.

Elasticsearch's BM25 takes document frequencies and lengths from the shard, that is, from every namespace in it, and
without scripts nothing else can be computed. So a token's weight in a memory (`logic.bm25.term_weights`) is indexed as
terms: the token itself stands for one STEP, `token|bit` for STEP × 2^bit more. A query asks for each with what it
stands for times the token's inverse frequency *in the scope* as a constant score; the sum is BM25, its weights rounded
to STEP (0.034; a token that occurs once in a memory of 30 weighs 1). Scores depend on nothing outside the scope.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from dataplane.logic.bm25 import K1, term_weights

FIELD = "tokens"
BITS = 6
STEP = (K1 + 1) / 2**BITS
MAX_SCORED = 100
"""Tokens of a query that give a score, the rarest. Each takes BITS + 1 clauses; a server may allow as few as 1,024."""
MAX_COUNTED = 1000
"""Tokens of a query whose frequency is asked for; later ones only match."""
_PLAIN = re.compile(r"[\w\-/.@]{1,100}")
"""White space would split a token, `|` is ours, and the analyser cuts at 255 UTF-16 units."""

Query = dict[str, Any]


def term_of(token: str) -> str:
    """The term of a token: itself, or a hash of what a term cannot be."""
    if _PLAIN.fullmatch(token):
        return token
    return "#" + blake2b(token.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def indexed(tokens: Sequence[str]) -> str:
    """The terms of a memory, separated by spaces."""
    return " ".join(term for token, weight in term_weights(Counter(tokens)).items() for term in _terms(token, weight))


def holding(token: str) -> Query:
    """A query for the memories that hold a token."""
    return {"term": {FIELD: term_of(token)}}


def best_matches(inverse_frequencies: Mapping[str, float], tokens: Sequence[str], filters: Sequence[Query]) -> Query:
    """A query for the memories that hold one of the distinct tokens, by BM25.

    The rarest of `inverse_frequencies` give the score. Each match names the tokens that it holds, by their number.
    """
    numbers = {token: number for number, token in enumerate(tokens)}
    rarest = sorted(inverse_frequencies, key=lambda token: -inverse_frequencies[token])[:MAX_SCORED]
    clauses = [
        clause for token in rarest for clause in _clauses(token, numbers[token], STEP * inverse_frequencies[token])
    ]
    if len(rarest) == len(tokens):
        return {"bool": {"should": clauses, "minimum_should_match": 1, "filter": list(filters)}}
    any_of_all = {"terms": {FIELD: [term_of(token) for token in tokens[:MAX_MATCHED]]}}
    return {"bool": {"should": clauses, "minimum_should_match": 0, "filter": [any_of_all, *filters]}}


MAX_MATCHED = 65_536
"""Terms that one `terms` query may hold (`index.max_terms_count`)."""


def _terms(token: str, weight: float) -> Iterator[str]:
    term = term_of(token)
    more = min(max(round(weight / STEP), 1), 2**BITS) - 1
    yield term
    for bit in range(BITS):
        if more >> bit & 1:
            yield f"{term}|{bit}"


def _clauses(token: str, number: int, step: float) -> Iterator[Query]:
    term = term_of(token)
    yield {"term": {FIELD: {"value": term, "boost": step, "_name": str(number)}}}
    for bit in range(BITS):
        yield {"term": {FIELD: {"value": f"{term}|{bit}", "boost": step * 2**bit}}}
