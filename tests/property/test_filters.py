from hypothesis import given, settings
from hypothesis import strategies as st

from dataplane.logic.filters import COMPARISONS, ENUM_NAMES, FIELDS, FieldType, check, matches
from dataplane.model import AllOf, AnyOf, Condition, FieldValue, Filter, Not, Operator, Scalar

TEXTS = st.sampled_from(["a", "b", "a,b", "X", "中"])
NUMBERS = st.sampled_from([-1, 0, 1, 0.5, 2.0])
TIMES = st.integers(min_value=0, max_value=4)
ANY_FIELD = st.sampled_from([*FIELDS, "metadata.k"])


def values_of(field: str) -> st.SearchStrategy[Scalar]:
    field_type = FIELDS.get(field, FieldType.ANY)
    if field_type is FieldType.ENUM:
        return st.sampled_from(ENUM_NAMES[field])
    by_type: dict[FieldType, st.SearchStrategy[Scalar]] = {FieldType.NUMBER: NUMBERS, FieldType.TIME: TIMES}
    return by_type.get(field_type, TEXTS)


@st.composite
def conditions(draw: st.DrawFn) -> Condition:
    field = draw(ANY_FIELD)
    ordered = FIELDS.get(field) in {FieldType.NUMBER, FieldType.TIME}
    operator = draw(st.sampled_from([one for one in Operator if ordered or one not in COMPARISONS]))
    sizes = {Operator.EXISTS: (0, 0), Operator.IN: (1, 3)}
    low, high = sizes.get(operator, (1, 1))
    return Condition(field, operator, tuple(draw(st.lists(values_of(field), min_size=low, max_size=high))))


def groups(inner: st.SearchStrategy[Filter]) -> st.SearchStrategy[Filter]:
    several = st.lists(inner, min_size=1, max_size=3).map(tuple)
    return st.one_of(several.map(AllOf), several.map(AnyOf), inner.map(Not))


FILTERS: st.SearchStrategy[Filter] = st.recursive(conditions(), groups, max_leaves=8)


@st.composite
def field_values(draw: st.DrawFn) -> dict[str, FieldValue]:
    found: dict[str, FieldValue] = {}
    for field in draw(st.sets(ANY_FIELD)):
        if field == "tags":
            found[field] = tuple(draw(st.lists(TEXTS, max_size=3)))
        else:
            found[field] = draw(st.one_of(st.none(), values_of(field)))
    return found


@given(FILTERS, field_values())
@settings(max_examples=200)
def test_exactly_one_of_a_filter_and_its_negation_holds(filter: Filter, fields: dict[str, FieldValue]) -> None:
    assert matches(filter, fields) != matches(Not(filter), fields)


@given(st.lists(FILTERS, min_size=1, max_size=3), field_values())
@settings(max_examples=100)
def test_groups_follow_de_morgan(filters: list[Filter], fields: dict[str, FieldValue]) -> None:
    none_of = AllOf(tuple(Not(one) for one in filters))
    assert matches(Not(AnyOf(tuple(filters))), fields) == matches(none_of, fields)


@given(conditions(), field_values())
@settings(max_examples=200)
def test_not_equals_is_the_opposite_of_equals(condition: Condition, fields: dict[str, FieldValue]) -> None:
    if condition.operator is Operator.EQUALS:
        opposite = Condition(condition.field, Operator.NOT_EQUALS, condition.values)
        assert matches(condition, fields) != matches(opposite, fields)


@given(conditions(), field_values())
@settings(max_examples=200)
def test_in_is_any_of_equals(condition: Condition, fields: dict[str, FieldValue]) -> None:
    if condition.operator is Operator.IN:
        equals = AnyOf(tuple(Condition(condition.field, Operator.EQUALS, (value,)) for value in condition.values))
        assert matches(condition, fields) == matches(equals, fields)


@given(FILTERS)
@settings(max_examples=100)
def test_nothing_is_wrong_with_a_right_filter(filter: Filter) -> None:
    shallow = [problem for problem in check(filter) if "deeper than" not in problem[1]]
    assert shallow == []


SCALARS = st.one_of(st.text(max_size=5), st.integers(), st.floats(), st.booleans())
WILD: st.SearchStrategy[Filter] = st.recursive(
    st.builds(Condition, st.text(max_size=12) | ANY_FIELD, st.sampled_from(Operator), st.lists(SCALARS).map(tuple)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda parts: AllOf(tuple(parts))),
        st.lists(inner, max_size=3).map(lambda parts: AnyOf(tuple(parts))),
        inner.map(Not),
    ),
    max_leaves=10,
)


@given(WILD, field_values())
@settings(max_examples=200)
def test_any_filter_is_refused_or_can_be_used(filter: Filter, fields: dict[str, FieldValue]) -> None:
    if not check(filter):
        assert isinstance(matches(filter, fields), bool)
