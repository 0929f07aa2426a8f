"""Filters over memories: their vocabulary, what is wrong with one, and what one means.

Rules. An absent field is `None`, an empty text or an empty tuple. EQUALS, IN and the comparisons are false of an absent
field, NOT_EQUALS is true of it, EXISTS is false. On tags EQUALS means "contains", NOT_EQUALS "does not contain", IN
"contains one of". Enums are compared by name (`"FACT"`), times as whole microseconds. Numbers compare by value whether
whole or not; a truth value is never a number. `matches` is the reference that every index is tested against.
"""

import difflib
from collections.abc import Iterator, Mapping
from enum import StrEnum
from math import isfinite
from types import MappingProxyType

from dataplane.model import (
    AllOf,
    Condition,
    FieldValue,
    Filter,
    Kind,
    Layer,
    Not,
    Operator,
    Pool,
    Scalar,
    SourceType,
)

MAX_DEPTH = 8
MAX_CONDITIONS = 100
MAX_GROUP = 100
MAX_VALUES = 100
METADATA_PREFIX = "metadata."
COMPARISONS = frozenset({Operator.LESS_THAN, Operator.LESS_OR_EQUAL, Operator.GREATER_THAN, Operator.GREATER_OR_EQUAL})

Problem = tuple[str, str]
"""Where in the filter (a path in the words of the contract), and what is wrong there and what would be right."""


class FieldType(StrEnum):
    """What the values of a field are."""

    TEXT = "text"
    NUMBER = "a number"
    TIME = "an instant"
    ENUM = "the name of an enum value"
    TAGS = "text"
    ANY = "text, a number or a truth value"


FIELDS: Mapping[str, FieldType] = MappingProxyType(
    {
        "agent_id": FieldType.TEXT,
        "session_id": FieldType.TEXT,
        "speaker": FieldType.TEXT,
        "sequence": FieldType.NUMBER,
        "layer": FieldType.ENUM,
        "kind": FieldType.ENUM,
        "entity_type": FieldType.TEXT,
        "category": FieldType.TEXT,
        "fact_key": FieldType.TEXT,
        "source_type": FieldType.ENUM,
        "confidence": FieldType.NUMBER,
        "sensitivity": FieldType.ENUM,
        "create_time": FieldType.TIME,
        "update_time": FieldType.TIME,
        "event_time": FieldType.TIME,
        "valid_from": FieldType.TIME,
        "valid_to": FieldType.TIME,
        "expire_time": FieldType.TIME,
        "version": FieldType.NUMBER,
        "tags": FieldType.TAGS,
        "subject_id": FieldType.TEXT,
        "pool": FieldType.ENUM,
    }
)
"""Every field of the contract's FilterCondition."""

ENUM_NAMES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "layer": tuple(layer.name for layer in Layer),
        "kind": tuple(kind.name for kind in Kind),
        "source_type": tuple(source.name for source in SourceType),
        "pool": tuple(pool.name for pool in Pool),
        "sensitivity": ("PUBLIC", "INTERNAL", "CONFIDENTIAL", "RESTRICTED"),
    }
)


def exactly(field: str, value: str) -> Filter:
    """A filter for one value of a text field, where an empty value asks for memories without one."""
    return Condition(field, Operator.EQUALS, (value,)) if value else Not(Condition(field, Operator.EXISTS))


def check(filter: Filter) -> list[Problem]:
    """Everything wrong with a filter that a client sent; empty when it may be used.

    A lone `AllOf(())` is no filter and right; any other empty group is wrong.
    """
    problems = [] if filter == AllOf(()) else list(_check(filter, "filter", 1))
    conditions = _count(filter, MAX_DEPTH)
    if conditions > MAX_CONDITIONS:
        problems.append(("filter", f"has {conditions} conditions; at most {MAX_CONDITIONS} are allowed"))
    return problems


def _count(filter: Filter, levels: int) -> int:
    if isinstance(filter, Condition):
        return 1
    if levels <= 1:
        return 0
    if isinstance(filter, Not):
        return _count(filter.filter, levels - 1)
    return sum(_count(part, levels - 1) for part in filter.filters)


def _check(filter: Filter, path: str, depth: int) -> Iterator[Problem]:
    if depth > MAX_DEPTH:
        yield path, f"is nested deeper than {MAX_DEPTH} levels"
    elif isinstance(filter, Condition):
        yield from _check_condition(filter, f"{path}.condition")
    elif isinstance(filter, Not):
        yield from _check(filter.filter, f"{path}.negation", depth + 1)
    else:
        group = f"{path}.{'all_of' if isinstance(filter, AllOf) else 'any_of'}.filters"
        if not 1 <= len(filter.filters) <= MAX_GROUP:
            yield group, f"has {len(filter.filters)} filters; a group has 1 to {MAX_GROUP}"
        for number, part in enumerate(filter.filters):
            yield from _check(part, f"{group}[{number}]", depth + 1)


def _check_condition(condition: Condition, path: str) -> Iterator[Problem]:
    field_type = type_of(condition.field)
    if field_type is None:
        yield f"{path}.field", _unknown_field(condition.field)
        return
    ordered = field_type in {FieldType.NUMBER, FieldType.TIME, FieldType.ANY}
    if condition.operator in COMPARISONS and not ordered:
        yield f"{path}.operator", f"{condition.operator.name} is for numbers and instants; {condition.field} is neither"
    yield from _check_count(condition, path)
    for number, value in enumerate(condition.values):
        problem = _value_problem(condition, field_type, value)
        if problem:
            yield f"{path}.values[{number}]", problem


def type_of(field: str) -> FieldType | None:
    """What the values of a field are; None for a field that is not there."""
    if field.startswith(METADATA_PREFIX) and len(field) > len(METADATA_PREFIX):
        return FieldType.ANY
    return FIELDS.get(field)


def _unknown_field(field: str) -> str:
    shown = field[:64]
    close = difflib.get_close_matches(shown, FIELDS, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(FIELDS)}, metadata.KEY"
    return f"{shown!r} is not a field; {hint}"


def _check_count(condition: Condition, path: str) -> Iterator[Problem]:
    count = len(condition.values)
    if condition.operator is Operator.EXISTS:
        if count:
            yield f"{path}.values", f"EXISTS takes no value, got {count}"
    elif condition.operator is Operator.IN:
        if not 1 <= count <= MAX_VALUES:
            yield f"{path}.values", f"IN takes 1 to {MAX_VALUES} values, got {count}"
    elif count != 1:
        yield f"{path}.values", f"{condition.operator.name} takes one value, got {count}"


def _value_problem(condition: Condition, field_type: FieldType, value: Scalar) -> str:
    field = condition.field
    if not _fits(field_type, value):
        return f"{field} is compared with {field_type.value}, got {_describe(value)}"
    if isinstance(value, float) and not isfinite(value):
        return f"{field} is compared with a finite number, got {value}"
    if value == "":
        return f"is empty; ask with EXISTS whether {field} is there"
    if field_type is FieldType.ENUM and value not in ENUM_NAMES[field]:
        return _unknown_name(field, str(value))
    if field_type is FieldType.ANY and condition.operator in COMPARISONS and not _is_number(value):
        return f"{condition.operator.name} is for numbers, got {_describe(value)}"
    return ""


def _fits(field_type: FieldType, value: Scalar) -> bool:
    if field_type is FieldType.ANY:
        return True
    if field_type is FieldType.NUMBER:
        return _is_number(value)
    if field_type is FieldType.TIME:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, str)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _describe(value: Scalar) -> str:
    if isinstance(value, bool):
        return "a truth value"
    return "text" if isinstance(value, str) else "a number"


def _unknown_name(field: str, name: str) -> str:
    names = ENUM_NAMES[field]
    close = difflib.get_close_matches(name[:64].upper(), names, n=1)
    hint = f"did you mean {close[0]!r}?" if close else f"known: {', '.join(names)}"
    return f"{name[:64]!r} is not a {field}; {hint}"


def matches(filter: Filter, fields: Mapping[str, FieldValue]) -> bool:
    """True when a memory with these fields passes. `filter` is one that `check` found nothing wrong with."""
    if isinstance(filter, Condition):
        return _holds(filter, fields.get(filter.field))
    if isinstance(filter, Not):
        return not matches(filter.filter, fields)
    if isinstance(filter, AllOf):
        return all(matches(part, fields) for part in filter.filters)
    return any(matches(part, fields) for part in filter.filters)


def _holds(condition: Condition, found: FieldValue) -> bool:
    operator = condition.operator
    present = found is not None and found not in ("", ())
    if operator is Operator.EXISTS:
        return present
    if not present or found is None:
        return operator is Operator.NOT_EQUALS
    if operator in COMPARISONS:
        return _compares(operator, found, condition.values[0])
    equal = any(_equal(found, value) for value in condition.values)
    return not equal if operator is Operator.NOT_EQUALS else equal


def _equal(found: Scalar | tuple[str, ...], value: Scalar) -> bool:
    if isinstance(found, tuple):
        return value in found
    return isinstance(found, bool) == isinstance(value, bool) and found == value


def _compares(operator: Operator, found: Scalar | tuple[str, ...], value: Scalar) -> bool:
    if isinstance(found, str | bool | tuple) or isinstance(value, str | bool):
        return False
    if operator is Operator.LESS_THAN:
        return found < value
    if operator is Operator.LESS_OR_EQUAL:
        return found <= value
    if operator is Operator.GREATER_THAN:
        return found > value
    return found >= value
