import struct

from hypothesis import given
from hypothesis import strategies as st

from dataplane.adapters.elasticsearch.filters import filterable, short, translate
from dataplane.model import Condition, Operator

doubles = st.floats(allow_nan=False)


def ranges_of(value: float) -> str:
    made = filterable([], {"metadata": value})["ranges"]
    assert isinstance(made, list)
    return str(made[0])


@given(st.lists(doubles, min_size=2, max_size=20))
def test_numbers_of_metadata_sort_as_texts(values: list[float]) -> None:
    assert sorted(values) == sorted(values, key=ranges_of)
    assert ranges_of(-0.0) == ranges_of(0.0)


@given(doubles, doubles)
def test_a_range_over_metadata_holds_for_the_same_numbers(bound: float, value: float) -> None:
    for operator, holds in ((Operator.LESS_THAN, value < bound), (Operator.GREATER_OR_EQUAL, value >= bound)):
        (query,) = translate(Condition("metadata", operator, (bound,))).conditions
        limits = query["range"]["ranges"]
        text = ranges_of(value)
        inside = text >= limits.get("gte", "") and ("lt" not in limits or text < limits["lt"])
        inside = inside and ("lte" not in limits or text <= limits["lte"])
        wider = abs(bound) >= 2**53 and value == bound
        assert inside == holds or wider, struct.pack(">d", value)


def test_numbers_of_the_contract_have_columns_and_others_do_not() -> None:
    made = filterable([], {"create_time": 5.0, "x6b": 1.0})
    assert made["numbers"] == {"create_time": 5.0}
    assert isinstance(made["ranges"], list)
    assert len(made["ranges"]) == 1


def test_long_terms_are_hashed() -> None:
    assert short("x" * 1024) == "x" * 1024
    assert short("x" * 1025) != short("x" * 1026)
    assert len(short("\ud83d" * 40_000)) == 65
