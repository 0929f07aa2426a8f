"""Scope and filter over the payload of a Qdrant point, with exactly the meaning of `logic.filters.matches`.

A field is stored twice. `terms` holds a text for each (field, value) and one for the field's presence, so that equality
works for any field name and any value; `numbers` holds its value as a double for ranges. Doubles are exact below 2⁵³:
a comparison with more than that is translated into a wider one and reported as inexact, and the caller must check
what comes back with `passes`.

Qdrant Edge and a Qdrant server have classes of their own for the same conditions: `Dialect` builds them.
"""

import base64
import json
import math
import re
from binascii import Error as NotBase64
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from dataplane.logic.filters import matches
from dataplane.logic.fingerprint import fingerprint
from dataplane.model import AllOf, Condition, FieldValue, Filter, IndexEntry, Not, Operator, Pool, Scalar, Scope

EXACT_BELOW = 2.0**53
RANGE_FIELDS = ("numbers.create_time", "numbers.event_time")
"""Payload paths of the numeric fields that get an index of their own.

Ranges over others are checked point by point, about 20 µs for each memory of the namespace (Edge, 2 busy cores,
2026-11); every index more makes each write and flush dearer.
"""

_PLAIN_NAME = re.compile(r"[a-z_]+")
_COMPARISONS = {
    Operator.LESS_THAN: "lt",
    Operator.LESS_OR_EQUAL: "lte",
    Operator.GREATER_THAN: "gt",
    Operator.GREATER_OR_EQUAL: "gte",
}
C = TypeVar("C")


class Dialect(Protocol[C]):
    """Builds an engine's conditions. Lists are never empty: engines differ in what an empty one means."""

    def one_of(self, key: str, values: Sequence[str]) -> C:
        """The text, or one of the texts, at `key` is one of these."""
        ...

    def within(self, key: str, bound_name: str, bound: float) -> C:
        """The number at `key` compares with the bound; `bound_name` is lt, lte, gt or gte."""
        ...

    def all_of(self, conditions: Sequence[C]) -> C:
        """Every one holds."""
        ...

    def any_of(self, conditions: Sequence[C]) -> C:
        """At least one holds."""
        ...

    def none_of(self, conditions: Sequence[C]) -> C:
        """None holds."""
        ...


@dataclass(frozen=True, slots=True)
class Translation(Generic[C]):
    """Conditions that all hold wherever the filter does; `exact`: nowhere else.

    They are kept flat: a nested filter makes Edge's search twice as slow, an empty one three times (2026-11).
    """

    conditions: tuple[C, ...]
    exact: bool


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


def passes(filter: Filter, terms: Iterable[str]) -> bool:
    """True when a memory with these `terms` truly passes the filter."""
    return matches(filter, decode(terms))


def payload_of(entry: IndexEntry) -> dict[str, object]:
    """What an index keeps beside a point; `shared` is how a scope finds SHARED memories."""
    shared = {"shared": entry.namespace} if entry.pool is Pool.SHARED else {}
    row = {"row": row_text(entry.row)} if entry.row else {}
    return {
        "memory_id": entry.memory_id,
        "version": entry.version,
        "namespace": entry.namespace,
        "fingerprint": fingerprint(entry),
        **shared,
        **row,
        **encode(entry.fields),
    }


def row_text(row: bytes) -> str:
    """A packed row as text, which payloads can hold."""
    return base64.b64encode(row).decode("ascii")


def row_bytes(text: object) -> bytes:
    """The row behind `row_text`; empty for what is none."""
    try:
        return base64.b64decode(text, validate=True) if isinstance(text, str) else b""
    except NotBase64:
        return b""


def rows_in(payloads: Iterable[Mapping[str, Any] | None]) -> dict[str, bytes]:
    """The packed rows in payloads, by memory id; payloads without one are passed over."""
    found = ((payload["memory_id"], row_bytes(payload.get("row"))) for payload in payloads if payload)
    return {memory_id: row for memory_id, row in found if row}


class Translator(Generic[C]):
    """Scopes and filters as conditions of one engine."""

    def __init__(self, dialect: Dialect[C]) -> None:
        self._dialect = dialect

    def scope(self, scope: Scope) -> list[C]:
        """Conditions that hold for the memories of a scope alone; none for the system scope, and for it alone."""
        if scope.system:
            return []
        own = self._one_of("namespace", scope.namespaces)
        return [self._dialect.any_of([own, self._one_of("shared", scope.shared)]) if scope.shared else own]

    def filter(self, filter: Filter) -> Translation[C]:
        """The conditions of a filter."""
        if isinstance(filter, Condition):
            return self._condition(filter)
        if isinstance(filter, Not):
            inner = self.filter(filter.filter)
            # The negation of a wider condition would be narrower: let everything through instead, check afterwards.
            negated = (self._dialect.none_of([self._single(inner)]),) if inner.exact else ()
            return Translation(negated, inner.exact)
        parts = [self.filter(part) for part in filter.filters]
        exact = all(part.exact for part in parts)
        if isinstance(filter, AllOf):
            return Translation(tuple(condition for part in parts for condition in part.conditions), exact)
        return Translation((self._any([self._single(part) for part in parts]),), exact)

    def _condition(self, condition: Condition) -> Translation[C]:
        operator = condition.operator
        if operator is Operator.EXISTS:
            return Translation((self._one_of("terms", [json.dumps([condition.field])]),), exact=True)
        if operator in _COMPARISONS:
            return self._comparison(condition)
        found = self._one_of(
            "terms", [_term(condition.field, value) for value in condition.values if not _is_nan(value)]
        )
        if operator is Operator.NOT_EQUALS:
            return Translation((self._dialect.none_of([found]),), exact=True)
        return Translation((found,), exact=True)

    def _comparison(self, condition: Condition) -> Translation[C]:
        value = condition.values[0]
        if isinstance(value, str | bool) or _is_nan(value):
            return Translation((self._nothing(),), exact=True)
        bound = _double(value)
        name = _COMPARISONS[condition.operator]
        exact = abs(bound) < EXACT_BELOW
        if not exact:
            name = name[0] + "te"
        return Translation((self._dialect.within(f"numbers.{_number_key(condition.field)}", name, bound),), exact)

    def _single(self, translation: Translation[C]) -> C:
        if not translation.conditions:
            return self._dialect.none_of([self._nothing()])
        if len(translation.conditions) == 1:
            return translation.conditions[0]
        return self._dialect.all_of(translation.conditions)

    def _any(self, conditions: Sequence[C]) -> C:
        return self._dialect.any_of(conditions) if conditions else self._nothing()

    def _one_of(self, key: str, values: Sequence[str]) -> C:
        return self._dialect.one_of(key, values) if values else self._nothing()

    def _nothing(self) -> C:
        return self._dialect.one_of("terms", [""])  # a term is JSON, never empty


def _term(field: str, value: Scalar) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return json.dumps([field, value])


def _number_key(field: str) -> str:
    # A payload path cannot hold every character of a metadata key.
    return field if _PLAIN_NAME.fullmatch(field) else "x" + field.encode("utf-8", "surrogatepass").hex()


def _double(value: float) -> float:
    largest = 1.7976931348623157e308
    try:
        return max(-largest, min(largest, float(value)))
    except OverflowError:
        return largest if value > 0 else -largest


def _is_nan(value: Scalar) -> bool:
    return isinstance(value, float) and math.isnan(value)
