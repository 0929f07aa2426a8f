"""Scope and filter as queries; what they mean is told in `dataplane.adapters.payload_filters`.

`terms` holds a payload's terms, long ones hashed: Lucene takes no term above 32,766 bytes. Numbers of the contract's
fields are doubles of their own (`numbers`), so that a range costs little. Numbers of `metadata` have no such field,
for each new name would grow the mapping, without end: `ranges` holds them as texts that sort as the numbers do.
"""

import struct
from collections.abc import Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from dataplane.adapters.payload_filters import Translation, Translator
from dataplane.logic.filters import FIELDS, FieldType
from dataplane.model import Filter, Scope

Query = dict[str, Any]

NUMBER_FIELDS = tuple(name for name, field_type in FIELDS.items() if field_type in {FieldType.NUMBER, FieldType.TIME})
LONGEST_TERM = 1024
"""Characters of a term that is indexed as it is; also keeps the term dictionary small."""
_PATHS = frozenset(f"numbers.{name}" for name in NUMBER_FIELDS)


MEMORY: Query = {"exists": {"field": "namespace"}}
"""Tells memories from the other document of the index, that of the beacons."""


class QueryDialect:
    """Builds Elasticsearch's queries."""

    def one_of(self, key: str, values: Sequence[str]) -> Query:
        """See `Dialect`."""
        return {"terms": {key: [short(value) for value in values]}}

    def within(self, key: str, bound_name: str, bound: float) -> Query:
        """See `Dialect`."""
        if key in _PATHS:
            return {"range": {key: {bound_name: bound}}}
        family = _family(key)
        widest = {"gte": family + "0", "lte": family + "g"}  # hex digits lie between
        opposite = "lte" if bound_name.startswith("g") else "gte"
        return {"range": {"ranges": {bound_name: family + _sortable(bound), opposite: widest[opposite]}}}

    def all_of(self, conditions: Sequence[Query]) -> Query:
        """See `Dialect`."""
        return {"bool": {"filter": list(conditions)}}

    def any_of(self, conditions: Sequence[Query]) -> Query:
        """See `Dialect`."""
        return {"bool": {"should": list(conditions), "minimum_should_match": 1}}

    def none_of(self, conditions: Sequence[Query]) -> Query:
        """See `Dialect`."""
        return {"bool": {"must_not": list(conditions)}}


def translate_scope(scope: Scope) -> list[Query]:
    """Queries for the memories of a scope alone."""
    return Translator(QueryDialect()).scope(scope) or [MEMORY]


def translate(filter: Filter) -> Translation[Query]:
    """The queries of a filter."""
    return Translator(QueryDialect()).filter(filter)


def short(term: str) -> str:
    """A term that can be indexed: itself, or its hash. Terms of payloads begin with `[`, namespaces with a letter."""
    if len(term) <= LONGEST_TERM:
        return term
    return "#" + blake2b(term.encode("utf-8", "surrogatepass"), digest_size=32).hexdigest()


def filterable(terms: Iterable[str], numbers: Mapping[str, float]) -> dict[str, object]:
    """A payload's terms and numbers as they are indexed."""
    return {
        "terms": [short(term) for term in terms],
        "numbers": {name: value for name, value in numbers.items() if name in NUMBER_FIELDS},
        "ranges": [
            _family(f"numbers.{name}") + _sortable(value)
            for name, value in numbers.items()
            if name not in NUMBER_FIELDS
        ],
    }


def _family(path: str) -> str:
    return blake2b(path.encode("utf-8"), digest_size=12).hexdigest() + ":"


def _sortable(value: float) -> str:
    """16 hex digits that sort as doubles do: negative ones have all bits turned, the others the sign bit."""
    (bits,) = struct.unpack(">Q", struct.pack(">d", value + 0.0))  # −0.0 becomes 0.0
    return f"{bits ^ (2**64 - 1 if bits >> 63 else 2**63):016x}"
