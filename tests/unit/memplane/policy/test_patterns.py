import re

import pytest

from memplane.policy.model import PolicySet
from memplane.policy.patterns import pattern_problem


@pytest.mark.parametrize(
    "pattern",
    [
        "记住|以后都",
        r"\bremember\b(?! when)",
        "(?:abc)+",
        r"(?:\d{3}-)+",
        "(a+)?",
        "[(a+)]+",
        r"\(a+\)",
        "(?i)always",
        r"\d{1,9}\s{0,3}元",
        "a{2,3}?b",
        "(?P<x>a)(?P=x)",
        "(?#a+b+)a",
        "[]+*]+",
        "a{",
        "colou?r.*",
    ],
)
def test_a_harmless_pattern_is_accepted(pattern: str) -> None:
    assert pattern_problem(pattern) is None


@pytest.mark.parametrize(
    "pattern",
    [
        "(a+)+",
        "(a*)*$",
        "(?:a+)+",
        "(?P<x>a+)*",
        "(?i:a+)+",
        "((a+)b)+",
        "(a|b)*",
        "(a|aa)+$",
        "(a?){9}",
        "(.{0,5}){0,5}",
        "(?>a+)+",
        "([a-z]+)*",
        r"(\w+\s?)*",
        "(a+)(?#why)+",
    ],
)
def test_a_repeat_within_a_repeated_group_is_refused(pattern: str) -> None:
    assert "repeated group" in str(pattern_problem(pattern))


@pytest.mark.parametrize("pattern", [r"\w+\s*y", ".*.*", "a{0,200}b{0,200}", "a{0,}b+", "a{0,40}b{0,40}c{0,40}"])
def test_too_many_ways_are_refused(pattern: str) -> None:
    assert "too many repeats" in str(pattern_problem(pattern))


@pytest.mark.parametrize("pattern", ["(", "[", "a**", "(?P<x", "\\"])
def test_what_does_not_compile_is_refused(pattern: str) -> None:
    assert "not a regular expression" in str(pattern_problem(pattern))


@pytest.mark.parametrize("pattern", ["[[a]]", "[^[]", "[a--b]", "[a&&b]", "[a||b]"])
def test_a_set_that_python_warns_about_is_refused(pattern: str) -> None:
    assert "two ways" in str(pattern_problem(pattern))


def test_the_verbose_flag_is_refused() -> None:
    assert "x flag" in str(pattern_problem("(?ix)(a+) +"))
    assert "x flag" in str(pattern_problem("(?x:(a+) +)"))


def test_the_default_rules_match_what_they_are_meant_for() -> None:
    rules = PolicySet().write_policy.rules

    def direct(text: str) -> bool:
        return any(re.search(rule.pattern, text) for rule in rules if rule.direct)

    assert direct("请记住我对花生过敏")
    assert direct("From now on send invoices on Monday")
    assert not direct("Do you remember when we met?")
