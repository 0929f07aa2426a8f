from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pytest

from memplane.options import check_ranges, options_from
from memplane.settings import BadConfig, Secret


@dataclass(frozen=True, slots=True)
class Options:
    url: str
    password: Secret | None = None
    size: int = 4
    timeout_s: float = 1.0
    verify: bool = True
    hosts: tuple[str, ...] = ()
    ca_file: Path | None = None
    mode: Literal["one", "two"] = "one"

    def __post_init__(self) -> None:
        if self.size < 1:
            raise BadConfig("size: at least 1")


def test_values_take_the_types_of_the_options() -> None:
    table = {"url": "u", "password": "p", "timeout_s": 2, "hosts": ["a", "b"], "ca_file": "/ca", "mode": "two"}
    made = options_from(Options, "store", table)
    assert made == Options("u", Secret("p"), 4, 2.0, True, ("a", "b"), Path("/ca"), "two")
    assert repr(made.password) == "'***'"
    assert isinstance(made.timeout_s, float)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, "store.url: is required"),
        ({"url": "u", "sise": 3}, "store.sise: there is no such key; did you mean size"),
        ({"url": 3}, "store.url: 3 is not a text"),
        ({"url": "u", "size": "4"}, "store.size: '4' is not a whole number"),
        ({"url": "u", "size": True}, "store.size: True is not a whole number"),
        ({"url": "u", "size": 0}, "store.size: at least 1"),
        ({"url": "u", "timeout_s": "fast"}, "store.timeout_s: 'fast' is not a number"),
        ({"url": "u", "verify": 1}, "store.verify: 1 is not true or false"),
        ({"url": "u", "hosts": "a"}, "store.hosts: 'a' is not a list"),
        ({"url": "u", "hosts": ["a", 1]}, "store.hosts: 1 is not a text"),
        ({"url": "u", "mode": "three"}, "store.mode: 'three' is not one of one, two"),
    ],
)
def test_what_is_wrong_is_named(table: dict[str, object], message: str) -> None:
    with pytest.raises(BadConfig, match=message):
        options_from(Options, "store", table)


def test_a_secret_of_the_wrong_type_is_not_shown() -> None:
    with pytest.raises(BadConfig, match=r"store\.password: what is given is not a text") as raised:
        options_from(Options, "store", {"url": "u", "password": 12345})
    assert "12345" not in str(raised.value)


@pytest.mark.parametrize(("size", "timeout_s"), [(5, 1.0), (4, 0.0), (4, float("nan"))])
def test_a_number_out_of_its_range_is_named(size: int, timeout_s: float) -> None:
    ranges = {"size": (1, 4), "timeout_s": (0.01, 600)}
    check_ranges(Options("u"), ranges)
    named = "size: 5 is not from 1 to 4" if size == 5 else f"timeout_s: {timeout_s!r} is not from 0.01 to 600"
    with pytest.raises(BadConfig, match=named):
        check_ranges(Options("u", size=size, timeout_s=timeout_s), ranges)
