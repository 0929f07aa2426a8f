import math
from typing import Any

import pytest

from controlplane.documents import Document
from controlplane.yaml_tree import Tree, read_tree, resolve_plain


def tree_of(content: str) -> Tree:
    return read_tree(Document("a.yaml", content.encode()))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-3", 0.001),
        ("12", 12),
        ("-0", 0),
        ("+7", 7),
        ("010", 10),
        ("0o17", 15),
        ("0xFf", 255),
        (".5", 0.5),
        ("5.", 5.0),
        ("6.02E23", 6.02e23),
        ("true", True),
        ("FALSE", False),
        ("Null", None),
        ("~", None),
        ("", None),
    ],
)
def test_plain_scalars_follow_the_core_schema(text: str, value: Any) -> None:
    resolved = resolve_plain(text)
    assert resolved == value
    assert type(resolved) is type(value)


@pytest.mark.parametrize(
    "text", ["yes", "no", "on", "Off", "y", "1_000", "0b1", "1:30", "2026-01-01", "tRue", "-", ".", "1e", "+.e1"]
)
def test_what_only_older_yaml_converts_stays_text(text: str) -> None:
    assert resolve_plain(text) == text


@pytest.mark.parametrize("text", [".inf", "-.INF", "1e999", "9" * 5000])
def test_numbers_without_end_are_infinite(text: str) -> None:
    assert math.isinf(resolve_plain(text))


def test_quoted_scalars_and_keys_are_always_text() -> None:
    assert tree_of("1: '1'\ntrue: \"yes\"\nnull: |\n  2\n").values == {"1": "1", "true": "yes", "null": "2\n"}


def test_every_value_has_its_place() -> None:
    tree = tree_of("write_policy:\n  threshold: 0.7\n  rules:\n    - pattern: a\n")
    assert tree.positions["write_policy",] == ("a.yaml", 1, 1, 1, 1)
    assert tree.positions["write_policy", "threshold"] == ("a.yaml", 2, 3, 2, 14)
    assert tree.positions["write_policy", "rules", 0] == ("a.yaml", 4, 7, 4, 7)
    assert tree.positions["write_policy", "rules", 0, "pattern"] == ("a.yaml", 4, 7, 4, 16)


def test_a_byte_order_mark_and_windows_line_ends_are_read() -> None:
    tree = tree_of("\ufeffa: 1\r\nb: 2\r\n")
    assert tree.values == {"a": 1, "b": 2}
    assert tree.positions["b",].line == 2


def test_tabs_after_the_indentation_are_harmless() -> None:
    assert tree_of("a: 1\t# one\n").values == {"a": 1}


def test_what_is_wrong_in_a_repeated_keys_value_is_told_too() -> None:
    assert [found.code for found in tree_of("a: 1\na: {b: .nan, b: 1}\n").diagnostics] == [
        "DUPLICATE_KEY",
        "NOT_FINITE",
        "DUPLICATE_KEY",
    ]


def test_a_value_that_is_told_about_is_left_out_and_noted() -> None:
    tree = tree_of("a: .nan\nb: 1\n")
    assert (tree.values, tree.unread, tree.whole) == ({"b": 1}, {("a",)}, True)


def test_a_document_refused_halfway_is_not_whole() -> None:
    assert not tree_of("a: 1\nb: &x 2\n").whole
