import pytest

from dataplane.adapters.edge.filters import translate
from dataplane.adapters.payload_filters import decode, encode
from dataplane.model import AllOf, AnyOf, Condition, FieldValue, Filter, Not, Operator

HUGE = Condition("metadata.n", Operator.GREATER_THAN, (2**53,))
SMALL = Condition("metadata.n", Operator.GREATER_THAN, (2**53 - 1,))


@pytest.mark.parametrize(
    ("filter", "exact"),
    [
        (SMALL, True),
        (HUGE, False),
        (Not(SMALL), True),
        (Not(HUGE), False),
        (AllOf((SMALL, HUGE)), False),
        (AnyOf((SMALL, HUGE)), False),
        (AnyOf((SMALL, Not(SMALL))), True),
        (Condition("metadata.n", Operator.EQUALS, (2**60,)), True),
    ],
)
def test_only_comparisons_beyond_exact_doubles_are_inexact(filter: Filter, exact: bool) -> None:
    assert translate(filter).exact is exact


@pytest.mark.parametrize(
    "fields",
    [
        {"tags": ("a", "b"), "kind": ("FACT",)},
        {'metadata.a"b.c': 1, "metadata.中文": True, "metadata.f": 0.1, "metadata.big": 2**60 + 1},
        {},
    ],
)
def test_fields_come_back_from_their_terms(fields: dict[str, FieldValue]) -> None:
    terms = encode(fields)["terms"]
    assert isinstance(terms, list)
    assert decode(terms) == fields


def test_absent_values_leave_no_trace() -> None:
    assert encode({"a": None, "b": "", "c": ()}) == {"terms": [], "numbers": {}}


def test_numbers_beyond_doubles_are_clamped() -> None:
    numbers = encode({"a": 10**400, "b": -(10**400), "c": float("nan"), "d": float("inf")})["numbers"]
    assert numbers == {"a": 1.7976931348623157e308, "b": -1.7976931348623157e308, "d": 1.7976931348623157e308}
