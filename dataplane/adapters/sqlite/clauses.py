"""Scopes and filters as SQL conditions with named parameters."""

import json
from collections.abc import Mapping

from dataplane.adapters.sql_filters import where
from dataplane.adapters.sqlite.rows import field_key
from dataplane.model import Condition, Filter, Operator, Scope

Parameters = dict[str, str | int]

NOW_US = "CAST((julianday('now') - 2440587.5) * 86400000000.0 AS INTEGER)"
"""The store's clock: microseconds since 1970-01-01 UTC, to the millisecond."""

_COMPARISONS: Mapping[Operator, str] = {
    Operator.LESS_THAN: "<",
    Operator.LESS_OR_EQUAL: "<=",
    Operator.GREATER_THAN: ">",
    Operator.GREATER_OR_EQUAL: ">=",
}
_AMONG = "{table}.namespace IN (SELECT value FROM json_each(:{name}))"
# json_each over a text or number is that one value, over a list its elements: EQUALS on tags means contains.
_EQUALS = (
    "EXISTS (SELECT 1 FROM json_each(m.fields, :{path}) AS f, json_each(:{values}) AS v WHERE f.value = v.value"
    " AND (f.type IN ('true', 'false')) = (v.type IN ('true', 'false')))"
)
_EXISTS = "json_type(m.fields, :{path}) IS NOT NULL"
_COMPARES = (
    "coalesce(json_type(m.fields, :{path}) IN ('integer', 'real')"
    " AND json_extract(m.fields, :{path}) {comparison} json_extract(:{values}, '$[0]'), 0)"
)


def fill(template: str, **parts: str) -> str:
    """A statement with its fixed parts put in; what comes from a caller is a parameter, never a part."""
    return template.format_map(parts)


def in_scope(scope: Scope, table: str) -> tuple[str, Parameters]:
    """The condition that a row of a table alias (with `namespace` and `pool`) lies in the scope."""
    if scope.system:
        return "1", {}
    condition, parameters = in_namespaces(scope.namespaces, "namespaces", table)
    if scope.shared:
        shared, more = in_namespaces(scope.shared, "shared", table)
        condition, parameters = f"({condition} OR ({table}.pool = 2 AND {shared}))", {**parameters, **more}
    return condition, parameters


def in_namespaces(namespaces: tuple[str, ...], name: str, table: str) -> tuple[str, Parameters]:
    """The condition that a row's namespace is among some. One alone is an equation, so that indexes give order."""
    if len(namespaces) == 1:
        return f"{table}.namespace = :{name}", {name: namespaces[0]}
    return fill(_AMONG, table=table, name=name), {name: json.dumps(namespaces)}


def passes(filter: Filter) -> tuple[str, Parameters]:
    """The condition that a row of the alias `m` (with `fields`) passes a filter; it is never NULL."""
    parameters: Parameters = {}
    condition = where(filter, lambda each, number: _condition(each, parameters, number), "1", "0")
    return condition, parameters


def _condition(condition: Condition, parameters: Parameters, number: int) -> str:
    path, values = f"path{number}", f"values{number}"
    parameters[path] = f'$."{field_key(condition.field)}"'
    if condition.operator is Operator.EXISTS:
        return fill(_EXISTS, path=path)
    comparison = _COMPARISONS.get(condition.operator)
    if comparison and isinstance(condition.values[0], str | bool):
        return "0"
    # Values go through JSON as the fields do: both sides then round a number in the same way.
    parameters[values] = json.dumps(condition.values)
    if comparison:
        return fill(_COMPARES, path=path, values=values, comparison=comparison)
    equals = fill(_EQUALS, path=path, values=values)
    return f"NOT {equals}" if condition.operator is Operator.NOT_EQUALS else equals
