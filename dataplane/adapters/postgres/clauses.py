"""Scopes and filters as SQL conditions with named parameters."""

import json
from collections.abc import Mapping
from math import isfinite
from typing import Any

from dataplane.adapters.sql_filters import where
from dataplane.model import Condition, FieldValue, Filter, Operator, Scalar, Scope

Parameters = dict[str, Any]

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode
_COMPARISONS: Mapping[Operator, str] = {
    Operator.LESS_THAN: "<",
    Operator.LESS_OR_EQUAL: "<=",
    Operator.GREATER_THAN: ">",
    Operator.GREATER_OR_EQUAL: ">=",
}
_FIELD = "(m.fields -> %({key})s::text)"
# A value contains one equal to it, and a list of texts each of its elements: EQUALS on tags means contains.
_EQUALS = "coalesce({field} @> ANY (%({values})s::text[]::jsonb[]), false)"
_EXISTS = "(m.fields ? %({key})s::text)"
_COMPARES = (
    "coalesce(jsonb_typeof({field}) = 'number' AND {field} {comparison} (%({values})s::text[])[1]::jsonb, false)"
)


def fill(template: str, **parts: str) -> str:
    """A statement with its fixed parts put in; what comes from a caller is a parameter, never a part."""
    return template.format_map(parts)


def opaque(condition: str) -> str:
    """The condition, so that the planner makes no index condition of it and takes half of all rows to pass.

    Else it believes that few rows pass several conditions that go together, and sorts all that do instead of reading
    the newest by their index.
    """
    return f"CASE WHEN {condition} THEN true ELSE false END"


def in_scope(scope: Scope, table: str) -> tuple[str, Parameters]:
    """The condition that a row of a table alias (with `namespace` and `pool`) lies in the scope."""
    if scope.system:
        return "true", {}
    condition, parameters = in_namespaces(scope.namespaces, "namespaces", table)
    if scope.shared:
        shared, more = in_namespaces(scope.shared, "shared", table)
        condition, parameters = f"({condition} OR ({table}.pool = 2 AND {shared}))", {**parameters, **more}
    return condition, parameters


def in_namespaces(namespaces: tuple[str, ...], name: str, table: str) -> tuple[str, Parameters]:
    """The condition that a row's namespace is among some. One alone is an equation, so that indexes give order."""
    if len(namespaces) == 1:
        return f"{table}.namespace = %({name})s", {name: namespaces[0]}
    return f"{table}.namespace = ANY (%({name})s::text[])", {name: list(namespaces)}


def passes(filter: Filter) -> tuple[str, Parameters]:
    """The condition that a row of the alias `m` (with `fields`) passes a filter; it is never NULL."""
    parameters: Parameters = {}
    condition = where(filter, lambda each, number: _condition(each, parameters, number), "true", "false")
    return condition, parameters


def _condition(condition: Condition, parameters: Parameters, number: int) -> str:
    key, values = f"key{number}", f"values{number}"
    comparison = _COMPARISONS.get(condition.operator)
    if comparison and isinstance(condition.values[0], str | bool):
        return "false"
    parameters[key] = _storable(condition.field)
    if condition.operator is Operator.EXISTS:
        return fill(_EXISTS, key=key)
    parameters[values] = [_encode(_plain(value)) for value in condition.values]
    field = fill(_FIELD, key=key)
    if comparison:
        return fill(_COMPARES, field=field, values=values, comparison=comparison)
    equals = fill(_EQUALS, field=field, values=values)
    return f"NOT {equals}" if condition.operator is Operator.NOT_EQUALS else equals


def fields_to_json(values: Mapping[str, FieldValue]) -> str:
    """The fields that are present (filters take None, "" and () for absent), as `passes` compares them."""
    present = {_storable(name): _plain(value) for name, value in values.items() if _is_present(value)}
    return _encode(present)


def _is_present(value: FieldValue) -> bool:
    if isinstance(value, float):
        return isfinite(value)
    return value is not None and value not in ("", ())


def _plain(value: Scalar | tuple[str, ...] | None) -> object:
    """A value as JSON keeps it exactly: jsonb has decimal numbers, so a whole float goes as all of its digits."""
    if isinstance(value, str):
        return _storable(value)
    if isinstance(value, tuple):
        return [_storable(text) for text in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _storable(text: str) -> str:
    """The text without what jsonb refuses (NUL, lone surrogates); different texts stay different."""
    if text.isprintable() and "\\" not in text:
        return text
    return text.replace("\\", "\\\\").replace("\0", "\\0").encode("utf-8", "backslashreplace").decode()
