import pytest

from controlplane.diagnose import Path, Position, did_you_mean, error_at, keys_at, show_path, warning_at
from memplane.policy.model import PolicySet

POSITIONS: dict[Path, Position] = {
    ("a",): Position("f.yaml", 1, 1, 1, 4),
    ("a", "b"): Position("f.yaml", 2, 3, 2, 6),
}


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ((), ""),
        (("write_policy", "rules", 3, "pattern"), "write_policy.rules[3].pattern"),
        (
            ("namespace_policy", "overrides", "dept.sales", "decay_policy"),
            'namespace_policy.overrides["dept.sales"].decay_policy',
        ),
        (("x", ""), 'x[""]'),
    ],
)
def test_a_path_reads_as_one_writes_it(path: Path, shown: str) -> None:
    assert show_path(path) == shown


def test_an_error_stands_at_its_value_or_key_or_at_what_is_around_it() -> None:
    at = [
        error_at("X", "x", ("a", "b"), POSITIONS),
        error_at("X", "x", ("a", "b"), POSITIONS, key=True),
        error_at("X", "x", ("a", "c", 0), POSITIONS),
        error_at("X", "x", ("z",), POSITIONS),
        warning_at("X", "x", ("a", "b"), POSITIONS),
    ]
    assert [(found.file, found.line, found.column) for found in at] == [
        ("f.yaml", 2, 6),
        ("f.yaml", 2, 3),
        ("f.yaml", 1, 1),
        ("", 0, 0),
        ("f.yaml", 2, 3),
    ]


@pytest.mark.parametrize(
    ("path", "key"),
    [
        ((), "rbac"),
        (("retrieve_policy", "freshness"), "by_kind"),
        (("write_policy", "rules", 0), "direct"),
        (("rbac", "roles", "any", "grants", 5), "effect"),
        (("namespace_policy", "overrides", "a.b"), "write_policy"),
    ],
)
def test_the_known_keys_of_a_place_are_those_of_its_model(path: Path, key: str) -> None:
    assert key in keys_at(PolicySet, path)


@pytest.mark.parametrize(
    "path", [("rbac", "roles"), ("write_policy", "threshold"), ("gone", "x"), ("write_policy", "rules")]
)
def test_where_any_key_or_none_goes_no_key_is_known(path: Path) -> None:
    assert keys_at(PolicySet, path) == ()


def test_a_suggestion_is_the_nearest_word_or_what_is_known() -> None:
    assert did_you_mean("Treshold", ["threshold", "dedup"]) == "; did you mean 'threshold'?"
    assert did_you_mean("xyz", ["b", "a"]) == "; known here: a, b"
    assert did_you_mean("xyz", []) == ""
    assert did_you_mean("role7", [f"role{number}" for number in range(1000)]) == ""
