"""Scope and filter as Qdrant Edge understands them, with exactly the meaning of `logic.filters.matches`.

A field is stored twice. `terms` holds a text for each (field, value) and one for the field's presence, so that equality
works for any field name and any value; `numbers` holds its value as a double for ranges. Doubles are exact below 2⁵³:
a comparison with more than that is translated into a wider one and reported as inexact, and the caller must check
what comes back with `decode` and `matches`.
"""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from qdrant_edge import FieldCondition, MatchAny, MatchValue, RangeFloat
from qdrant_edge import Filter as EdgeFilter

from dataplane.logic.filters import matches
from dataplane.model import AllOf, Condition, FieldValue, Filter, Not, Operator, Pool, Scalar, Scope

EXACT_BELOW = 2.0**53
_PLAIN_NAME = re.compile(r"[a-z_]+")
_COMPARISONS = {
    Operator.LESS_THAN: "lt",
    Operator.LESS_OR_EQUAL: "lte",
    Operator.GREATER_THAN: "gt",
    Operator.GREATER_OR_EQUAL: "gte",
}
EdgeCondition = FieldCondition | EdgeFilter


@dataclass(frozen=True, slots=True)
class Translation:
    """Edge conditions that all hold wherever the filter does; `exact`: nowhere else.

    They are kept flat: a nested filter makes Edge's search twice as slow, an empty one three times (2026-11).
    """

    conditions: tuple[EdgeCondition, ...]
    exact: bool

    def single(self) -> EdgeCondition:
        """The conditions as one."""
        return self.conditions[0] if len(self.conditions) == 1 else EdgeFilter(must=list(self.conditions))


def encode(fields: Mapping[str, FieldValue]) -> dict[str, object]:
    """The payload that makes these fields filterable: `terms` and `numbers`."""
    terms: list[str] = []
    numbers: dict[str, float] = {}
    for field, value in fields.items():
        if value is None or value in ("", ()):
            continue
        terms.append(json.dumps([field]))
        terms.extend(_term(field, each) for each in (value if isinstance(value, tuple) else (value,)))
        if isinstance(value, int | float) and not isinstance(value, bool) and not _is_nan(value):
            numbers[_number_key(field)] = _double(value)
    return {"terms": terms, "numbers": numbers}


def decode(terms: Iterable[str]) -> dict[str, FieldValue]:
    """The fields behind `terms`; texts come back as tuples, which filters cannot tell from texts."""
    fields: dict[str, FieldValue] = {}
    for term in terms:
        field, *values = json.loads(term)
        if not values:
            fields.setdefault(field, ())
        elif isinstance(values[0], str):
            before = fields.get(field)
            fields[field] = (*(before if isinstance(before, tuple) else ()), values[0])
        else:
            fields[field] = values[0]
    return fields


def translate_scope(scope: Scope) -> list[EdgeCondition]:
    """Conditions that hold for the memories of a scope alone; none for the system scope."""
    if scope.system:
        return []
    own = _one_of("namespace", scope.namespaces)
    return [EdgeFilter(should=[own, _one_of("shared", scope.shared)]) if scope.shared else own]


def shared_namespace(namespace: str, pool: Pool) -> dict[str, object]:
    """The payload by which `translate_scope` finds SHARED memories."""
    return {"shared": namespace} if pool is Pool.SHARED else {}


def translate(filter: Filter) -> Translation:
    """The Edge conditions for a filter."""
    if isinstance(filter, Condition):
        return _translate_condition(filter)
    if isinstance(filter, Not):
        inner = translate(filter.filter)
        # The negation of a wider condition would be narrower: let everything through instead and check afterwards.
        return Translation((EdgeFilter(must_not=[inner.single()]),) if inner.exact else (), inner.exact)
    parts = [translate(part) for part in filter.filters]
    exact = all(part.exact for part in parts)
    if isinstance(filter, AllOf):
        return Translation(tuple(condition for part in parts for condition in part.conditions), exact)
    return Translation((_any([part.single() for part in parts]),), exact)


def passes(filter: Filter, terms: Iterable[str]) -> bool:
    """True when a memory with these `terms` truly passes the filter."""
    return matches(filter, decode(terms))


def _any(conditions: list[EdgeCondition]) -> EdgeCondition:
    # Edge takes an empty `should` for true.
    return EdgeFilter(should=list(conditions)) if conditions else _nothing()


def _one_of(key: str, values: Sequence[str]) -> EdgeCondition:
    return FieldCondition(key, match=MatchValue(values[0]) if len(values) == 1 else MatchAny(list(values)))


def _nothing() -> EdgeCondition:
    return FieldCondition("terms", match=MatchAny(list[str]()))


def _translate_condition(condition: Condition) -> Translation:
    operator = condition.operator
    if operator is Operator.EXISTS:
        return Translation((FieldCondition("terms", match=MatchValue(json.dumps([condition.field]))),), exact=True)
    if operator in _COMPARISONS:
        return _translate_comparison(condition)
    found = _one_of("terms", [_term(condition.field, value) for value in condition.values if not _is_nan(value)])
    if operator is Operator.NOT_EQUALS:
        return Translation((EdgeFilter(must_not=[found]),), exact=True)
    return Translation((found,), exact=True)


def _translate_comparison(condition: Condition) -> Translation:
    value = condition.values[0]
    if isinstance(value, str | bool) or _is_nan(value):
        return Translation((_nothing(),), exact=True)
    bound = _double(value)
    name = _COMPARISONS[condition.operator]
    exact = abs(bound) < EXACT_BELOW
    if not exact:
        name = name[0] + "te"
    key = f"numbers.{_number_key(condition.field)}"
    return Translation((FieldCondition(key, range=RangeFloat(**{name: bound})),), exact)


def _term(field: str, value: Scalar) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps([field, value])


def _number_key(field: str) -> str:
    # Edge's payload paths cannot hold every character of a metadata key.
    return field if _PLAIN_NAME.fullmatch(field) else "x" + field.encode("utf-8", "surrogatepass").hex()


def _double(value: float) -> float:
    largest = 1.7976931348623157e308
    try:
        return max(-largest, min(largest, float(value)))
    except OverflowError:
        return largest if value > 0 else -largest


def _is_nan(value: Scalar) -> bool:
    return isinstance(value, float) and math.isnan(value)
