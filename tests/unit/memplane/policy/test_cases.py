from typing import Any

import pytest
from pydantic import ValidationError

from memplane.policy.cases import AccessGiven, OrderCase, WriteExpect, difference


@pytest.mark.parametrize(
    ("expected", "came"),
    [
        ("deny", "deny"),
        (["a", "b"], ["a", "b"]),
        ({"score": 0.7}, {"score": 0.7049, "layer": "LONG_TERM"}),
        ({"score": 1}, {"score": 0.998}),
        ({"reasons": ["SUSPECT"]}, {"reasons": ["DIRECT_RULE", "SUSPECT"]}),
        ({"sensitive": ["PHONE_CN", "EMAIL"]}, {"sensitive": ["EMAIL", "PHONE_CN"]}),
    ],
)
def test_what_is_expected_and_came_is_no_difference(expected: Any, came: Any) -> None:
    assert difference(expected, came) == {}


@pytest.mark.parametrize(
    ("expected", "came", "keys"),
    [
        ("deny", "partly", [""]),
        (["a", "b"], ["b", "a"], [""]),
        ({"score": 0.7, "layer": "LONG_TERM"}, {"score": 0.71, "layer": "LONG_TERM"}, ["score"]),
        ({"reasons": ["SUSPECT"]}, {"reasons": []}, ["reasons"]),
        ({"sensitive": ["EMAIL"]}, {"sensitive": ["EMAIL", "PHONE_CN"]}, ["sensitive"]),
        ({"layer": "WORKING", "action": "REJECTED"}, {"layer": None, "action": "REJECTED"}, ["layer"]),
        ({"score": 0}, {"score": None}, ["score"]),
    ],
)
def test_a_difference_names_the_key_and_both_sides(expected: Any, came: Any, keys: list[str]) -> None:
    found = difference(expected, came)
    assert list(found) == keys
    if isinstance(expected, dict):
        assert found == {key: (expected[key], came[key]) for key in keys}


def test_a_case_says_exactly_who_asks_for_one_thing() -> None:
    for given in ({}, {"principal": "a", "spiffe_id": "spiffe://x/a"}):
        with pytest.raises(ValidationError, match="exactly one of principal, token and spiffe_id"):
            AccessGiven.model_validate({**given, "permission": "review"})
    with pytest.raises(ValidationError, match="one permission"):
        AccessGiven.model_validate({"principal": "a", "permission": "*"})


def test_a_case_expects_something_of_what_is_given() -> None:
    with pytest.raises(ValidationError, match="expect at least one of action"):
        WriteExpect()
    with pytest.raises(ValidationError, match="'b' is none of the hits given"):
        OrderCase.model_validate_json('{"name": "n", "given": {"hits": {"a": {}}}, "expect": ["b"]}')
