"""Scope and filter as Qdrant Edge's conditions; what they mean is told in `dataplane.adapters.payload_filters`."""

from collections.abc import Sequence

from qdrant_edge import FieldCondition, MatchAny, MatchValue, RangeFloat
from qdrant_edge import Filter as EdgeFilter

from dataplane.adapters.payload_filters import Translation as PayloadTranslation
from dataplane.adapters.payload_filters import Translator
from dataplane.model import Filter, Scope

EdgeCondition = FieldCondition | EdgeFilter
Translation = PayloadTranslation[EdgeCondition]


class EdgeDialect:
    """Builds Edge's conditions."""

    def one_of(self, key: str, values: Sequence[str]) -> EdgeCondition:
        """See `Dialect`."""
        return FieldCondition(key, match=MatchValue(values[0]) if len(values) == 1 else MatchAny(list(values)))

    def within(self, key: str, bound_name: str, bound: float) -> EdgeCondition:
        """See `Dialect`."""
        return FieldCondition(key, range=RangeFloat(**{bound_name: bound}))

    def all_of(self, conditions: Sequence[EdgeCondition]) -> EdgeCondition:
        """See `Dialect`."""
        return EdgeFilter(must=list(conditions))

    def any_of(self, conditions: Sequence[EdgeCondition]) -> EdgeCondition:
        """See `Dialect`."""
        return EdgeFilter(should=list(conditions))

    def none_of(self, conditions: Sequence[EdgeCondition]) -> EdgeCondition:
        """See `Dialect`."""
        return EdgeFilter(must_not=list(conditions))


def translate_scope(scope: Scope) -> list[EdgeCondition]:
    """Conditions that hold for the memories of a scope alone; none for the system scope."""
    return Translator(EdgeDialect()).scope(scope)


def translate(filter: Filter) -> Translation:
    """The Edge conditions for a filter."""
    return Translator(EdgeDialect()).filter(filter)
