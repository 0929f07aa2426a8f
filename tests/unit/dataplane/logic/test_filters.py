import pytest

from dataplane.logic.filters import ENUM_NAMES, FIELDS, check, exactly, matches
from dataplane.model import EVERYTHING, AllOf, AnyOf, Condition, FieldValue, Filter, Not, Operator, Scalar
from memplane.v1 import memory_pb2

FIELDS_OF_ONE: dict[str, FieldValue] = {
    "kind": "FACT",
    "category": "billing",
    "session_id": "",
    "confidence": 0.5,
    "sequence": 0,
    "create_time": 1_700_000_000_000_000,
    "tags": ("a,b", "x|y"),
    "metadata.priority": 3,
    "metadata.open": True,
}


def condition(field: str, operator: Operator, *values: Scalar) -> Condition:
    return Condition(field, operator, values)


def problems(filter: Filter) -> dict[str, str]:
    return dict(check(filter))


@pytest.mark.parametrize(
    ("field", "operator", "values", "passes"),
    [
        ("kind", Operator.EQUALS, ("FACT",), True),
        ("kind", Operator.EQUALS, ("fact",), False),
        ("category", Operator.IN, ("x", "billing"), True),
        ("category", Operator.NOT_EQUALS, ("billing",), False),
        ("session_id", Operator.EXISTS, (), False),
        ("session_id", Operator.EQUALS, ("",), False),
        ("session_id", Operator.NOT_EQUALS, ("s1",), True),
        ("speaker", Operator.EXISTS, (), False),
        ("speaker", Operator.NOT_EQUALS, ("Ann",), True),
        ("speaker", Operator.IN, ("Ann",), False),
        ("sequence", Operator.EXISTS, (), True),
        ("sequence", Operator.EQUALS, (0,), True),
        ("sequence", Operator.EQUALS, (False,), False),
        ("confidence", Operator.EQUALS, (0.5,), True),
        ("confidence", Operator.GREATER_OR_EQUAL, (0.5,), True),
        ("confidence", Operator.GREATER_THAN, (0.5,), False),
        ("confidence", Operator.LESS_OR_EQUAL, (0.5,), True),
        ("create_time", Operator.LESS_THAN, (1_700_000_000_000_001,), True),
        ("event_time", Operator.LESS_THAN, (1_700_000_000_000_001,), False),
        ("tags", Operator.EQUALS, ("a,b",), True),
        ("tags", Operator.EQUALS, ("a",), False),
        ("tags", Operator.NOT_EQUALS, ("x|y",), False),
        ("tags", Operator.IN, ("nope", "x|y"), True),
        ("metadata.priority", Operator.EQUALS, (3.0,), True),
        ("metadata.priority", Operator.EQUALS, ("3",), False),
        ("metadata.priority", Operator.LESS_THAN, (3.5,), True),
        ("metadata.open", Operator.EQUALS, (True,), True),
        ("metadata.open", Operator.EQUALS, (1,), False),
        ("metadata.open", Operator.GREATER_THAN, (0,), False),
    ],
)
def test_a_condition_means_what_the_rules_say(
    field: str, operator: Operator, values: tuple[Scalar, ...], passes: bool
) -> None:
    assert matches(Condition(field, operator, values), FIELDS_OF_ONE) is passes


def test_groups_and_negation_combine() -> None:
    fact, other = condition("kind", Operator.EQUALS, "FACT"), condition("kind", Operator.EQUALS, "EPISODE")
    assert matches(AllOf((fact, Not(other))), FIELDS_OF_ONE)
    assert matches(AnyOf((other, fact)), FIELDS_OF_ONE)
    assert not matches(AllOf((fact, other)), FIELDS_OF_ONE)
    assert not matches(AnyOf(()), FIELDS_OF_ONE)
    assert matches(EVERYTHING, {})


def test_exactly_an_empty_value_asks_for_memories_without_one() -> None:
    assert matches(exactly("subject_id", ""), {"subject_id": ""})
    assert not matches(exactly("subject_id", ""), {"subject_id": "ann"})
    assert matches(exactly("subject_id", "ann"), {"subject_id": "ann"})
    assert check(exactly("subject_id", "")) == []


def test_no_filter_is_right_and_an_empty_group_is_wrong() -> None:
    assert check(EVERYTHING) == []
    assert "1 to 100" in problems(AnyOf(()))["filter.any_of.filters"]
    assert "1 to 100" in problems(AllOf((AllOf(()),)))["filter.all_of.filters[0].all_of.filters"]


def test_an_unknown_field_is_named_with_a_suggestion() -> None:
    path, problem = check(condition("catgory", Operator.EQUALS, "x"))[0]
    assert path == "filter.condition.field"
    assert "did you mean 'category'?" in problem
    assert "metadata.KEY" in problems(condition("user.name;drop", Operator.EXISTS))["filter.condition.field"]
    assert problems(condition("metadata.", Operator.EXISTS))
    assert len(problems(condition("x" * 100_000, Operator.EXISTS))["filter.condition.field"]) < 1000


def test_a_problem_deep_inside_names_its_path() -> None:
    broken = AllOf((AnyOf((Not(condition("kind", Operator.EQUALS, "FACTS")),)),))
    path, problem = check(broken)[0]
    assert path == "filter.all_of.filters[0].any_of.filters[0].negation.condition.values[0]"
    assert "did you mean 'FACT'?" in problem


@pytest.mark.parametrize(
    ("wrong", "path", "said"),
    [
        (condition("confidence", Operator.EQUALS, "high"), "filter.condition.values[0]", "a number, got text"),
        (condition("confidence", Operator.EQUALS, True), "filter.condition.values[0]", "got a truth value"),
        (condition("confidence", Operator.LESS_THAN, float("nan")), "filter.condition.values[0]", "finite"),
        (condition("create_time", Operator.LESS_THAN, 1.5), "filter.condition.values[0]", "an instant"),
        (condition("category", Operator.EQUALS, 1), "filter.condition.values[0]", "text, got a number"),
        (condition("category", Operator.EQUALS, ""), "filter.condition.values[0]", "EXISTS"),
        (condition("tags", Operator.LESS_THAN, "a"), "filter.condition.operator", "numbers and instants"),
        (condition("metadata.k", Operator.LESS_THAN, "a"), "filter.condition.values[0]", "is for numbers"),
        (condition("layer", Operator.EQUALS, "FOREVER"), "filter.condition.values[0]", "LONG_TERM"),
        (condition("kind", Operator.EXISTS, "FACT"), "filter.condition.values", "no value"),
        (condition("kind", Operator.EQUALS), "filter.condition.values", "one value, got 0"),
        (condition("kind", Operator.IN), "filter.condition.values", "1 to 100"),
        (condition("sequence", Operator.IN, *range(101)), "filter.condition.values", "got 101"),
    ],
)
def test_a_wrong_condition_is_refused_with_what_would_be_right(wrong: Condition, path: str, said: str) -> None:
    assert said in problems(wrong)[path]


def test_eight_levels_are_right_and_nine_too_deep() -> None:
    filter: Filter = condition("kind", Operator.EXISTS)
    for _ in range(7):
        filter = Not(filter)
    assert check(filter) == []
    assert "deeper than 8" in check(Not(filter))[0][1]


def test_a_hundred_conditions_are_right_and_one_more_is_not() -> None:
    fifty = AllOf(tuple(condition("kind", Operator.EXISTS) for _ in range(50)))
    assert check(AllOf((fifty, fifty))) == []
    assert "101 conditions" in problems(AllOf((fifty, fifty, condition("kind", Operator.EXISTS))))["filter"]


def test_a_very_deep_filter_is_refused_without_exhausting_the_stack() -> None:
    filter: Filter = condition("kind", Operator.EXISTS)
    for _ in range(100_000):
        filter = Not(filter)
    assert [path for path, _ in check(filter)] == ["filter" + ".negation" * 8]


def test_the_enum_names_are_those_of_the_contract() -> None:
    contract = {
        "layer": memory_pb2.Layer,
        "kind": memory_pb2.Kind,
        "source_type": memory_pb2.SourceType,
        "pool": memory_pb2.Pool,
        "sensitivity": memory_pb2.Sensitivity,
    }
    for field, enum in contract.items():
        prefix = enum.DESCRIPTOR.values_by_number[0].name.removesuffix("UNSPECIFIED")
        names = [value.name.removeprefix(prefix) for value in enum.DESCRIPTOR.values if value.number]
        assert list(ENUM_NAMES[field]) == names
        assert field in FIELDS
