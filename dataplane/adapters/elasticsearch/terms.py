"""Tokens as Elasticsearch indexes and scores them: BM25 out of constants, so that no other tenant counts.

Elasticsearch's own BM25 takes document frequencies and the mean length from the shard, that is, from every namespace in
it, and a bare distribution has no scripts to compute another. So a memory's part of BM25 (`logic.bm25.term_weights`) is
indexed: the weight of a token that occurs once, which is the same for all of them (`single_weight`, a column), and, for
a token that occurs more often, terms `token|bit` that stand for how many times more it weighs, 2^bit × STEP each. A
query gives each token its inverse frequency *in the scope* as a constant score; the column multiplies the sum. Scores
are BM25 to the last digit but for repeats, whose weight is rounded to STEP and counts for up to 2.9 single ones, and
depend on nothing outside the scope.

(Whole weights in binary, six bits for each token and no column, cost more than twice as much: Lucene goes through
the postings of every bit. 50,000 memories, 2026-11.)
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from dataplane.logic.bm25 import single_weight, term_weights

FIELD = "tokens"
WEIGHT_FIELD = "single_weight"
BITS = 4
STEP = 0.125
MAX_SCORED = 150
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


def indexed(tokens: Sequence[str]) -> dict[str, object]:
    """The fields of a memory that a query scores by."""
    counts = Counter(tokens)
    single = single_weight(len(tokens))
    terms = [term_of(token) for token in counts]
    if len(counts) < len(tokens):
        weights = term_weights(counts)
        terms += [
            term for token, count in counts.items() if count > 1 for term in _repeats(token, weights[token] / single)
        ]
    return {FIELD: " ".join(terms), WEIGHT_FIELD: single}


def holding(token: str) -> Query:
    """A query for the memories that hold a token."""
    return {"term": {FIELD: term_of(token)}}


def best_matches(inverse_frequencies: Mapping[str, float], tokens: Sequence[str], filters: Sequence[Query]) -> Query:
    """A query for the memories that hold one of the distinct tokens, by BM25.

    The rarest of `inverse_frequencies` give the score. Each match names the tokens that it holds, by their number.
    """
    numbers = {token: number for number, token in enumerate(tokens)}
    rarest = sorted(inverse_frequencies, key=lambda token: -inverse_frequencies[token])[:MAX_SCORED]
    clauses = [clause for token in rarest for clause in _clauses(token, numbers[token], inverse_frequencies[token])]
    if len(rarest) == len(tokens):
        matching = {"should": clauses, "minimum_should_match": 1, "filter": list(filters)}
    else:
        any_of_all = {"terms": {FIELD: [term_of(token) for token in tokens[:MAX_MATCHED]]}}
        matching = {"should": clauses, "minimum_should_match": 0, "filter": [any_of_all, *filters]}
    return {"function_score": {"query": {"bool": matching}, "field_value_factor": {"field": WEIGHT_FIELD}}}


MAX_MATCHED = 65_536
"""Terms that one `terms` query may hold (`index.max_terms_count`)."""


def _repeats(token: str, times_single: float) -> Iterator[str]:
    term = term_of(token)
    more = min(round((times_single - 1) / STEP), 2**BITS - 1)
    return (f"{term}|{bit}" for bit in range(BITS) if more >> bit & 1)


def _clauses(token: str, number: int, weight: float) -> Iterator[Query]:
    term = term_of(token)
    yield {"term": {FIELD: {"value": term, "boost": weight, "_name": str(number)}}}
    for bit in range(BITS):
        yield {"term": {FIELD: {"value": f"{term}|{bit}", "boost": weight * STEP * 2**bit}}}
