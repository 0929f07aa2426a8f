"""Takes a filter of the contract apart."""

from collections.abc import Sequence

from dataplane.logic import filters as rules
from dataplane.model import AllOf, AnyOf, Condition, Filter, Not, Operator, Scalar
from dataplane.server.checks import Notes
from memplane.v1 import memory_pb2

_OPERATORS = tuple(operator.name for operator in Operator)


def read_filter(notes: Notes, message: memory_pb2.Filter) -> Filter:
    """The request's `filter` as a value; everything wrong with it is noted."""
    tree = _read(notes, "filter", message, depth=1)
    for path, problem in rules.check(tree):
        notes.add(path, problem)
    return tree


def _read(notes: Notes, path: str, message: memory_pb2.Filter, depth: int) -> Filter:
    node = message.WhichOneof("node")
    if node is None:
        notes.add(path, "is empty; set all_of, any_of, negation or condition")
        return AllOf()
    if node == "condition":
        return _condition(notes, f"{path}.condition", message.condition)
    if depth > rules.MAX_DEPTH:
        notes.add(path, f"is nested deeper than {rules.MAX_DEPTH} levels")
        return AllOf()
    if node == "negation":
        return Not(_read(notes, f"{path}.negation", message.negation, depth + 1))
    group = message.all_of if node == "all_of" else message.any_of
    if not group.filters:
        notes.add(f"{path}.{node}.filters", f"is empty; a group has 1 to {rules.MAX_GROUP} filters")
        return AllOf()
    parts = tuple(
        _read(notes, f"{path}.{node}.filters[{index}]", part, depth + 1)
        for index, part in enumerate(group.filters[: rules.MAX_GROUP + 1])
    )
    return AllOf(parts) if node == "all_of" else AnyOf(parts)


def _condition(notes: Notes, path: str, message: memory_pb2.FilterCondition) -> Filter:
    number = notes.enum(f"{path}.operator", message.operator, _OPERATORS)
    if number == 0:
        notes.add(f"{path}.operator", f"is required; one of {', '.join(_OPERATORS)}")
        number = Operator.EXISTS.value
    values: list[Scalar] = []
    for index, value in enumerate(message.values):
        which = value.WhichOneof("value")
        if which is None:
            notes.add(f"{path}.values[{index}]", "is empty; set one of its values")
        elif which == "timestamp_value":
            values.append(notes.time_us(f"{path}.values[{index}]", value.timestamp_value))
        else:
            values.append(getattr(value, which))
    return Condition(message.field, Operator(number), tuple(values))


def read_selection(
    notes: Notes, subject_id: str, layers: Sequence[int], kinds: Sequence[int], more: Filter | None
) -> Filter:
    """One filter of a request's subject, layers, kinds and filter tree; EVERYTHING when it names none."""
    parts: list[Filter] = []
    if subject_id:
        parts.append(Condition("subject_id", Operator.EQUALS, (notes.label("subject_id", subject_id),)))
    if layers:
        parts.append(Condition("layer", Operator.IN, _names(notes, "layers", layers, rules.ENUM_NAMES["layer"])))
    if kinds:
        parts.append(Condition("kind", Operator.IN, _names(notes, "kinds", kinds, rules.ENUM_NAMES["kind"])))
    if more is not None:
        parts.append(more)
    return AllOf(tuple(parts))


def _names(notes: Notes, field: str, numbers: Sequence[int], names: Sequence[str]) -> tuple[Scalar, ...]:
    known = []
    for index, number in enumerate(numbers):
        if 1 <= number <= len(names):
            known.append(names[number - 1])
        else:
            notes.add(f"{field}[{index}]", f"is {number}; one of {', '.join(names)}")
    return tuple(dict.fromkeys(known))
