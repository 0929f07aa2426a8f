import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dataplane.adapters.qdrant.names import CollectionNames
from memplane.policy.names import NAMESPACE

NAMES = CollectionNames("memplane", "endpoint:bge-m3@1024+3f9a1c20", 1024)
LONGEST = ".".join(["x" * 63] * 9)


@given(st.sets(st.from_regex(NAMESPACE, fullmatch=True), min_size=2, max_size=20))
def test_no_two_namespaces_share_a_collection(namespaces: set[str]) -> None:
    assert len({NAMES.of(namespace) for namespace in namespaces}) == len(namespaces)


@pytest.mark.parametrize(
    ("one", "other"),
    [("a.b", "a_b"), ("a.b", "a-b"), ("a--b", "a.b"), (LONGEST, LONGEST[:-1] + "y"), ("dept.sales", "dept.sales_")],
)
def test_near_misses_have_collections_of_their_own(one: str, other: str) -> None:
    assert NAMES.of(one) != NAMES.of(other)


@pytest.mark.parametrize("model", ["m", "模型", "a/b:c?d*e", "x" * 500])
def test_names_are_what_qdrant_takes(model: str) -> None:
    names = CollectionNames("p" * 40, model, 65_536)
    for name in (names.common, names.of("dept.sales"), names.of(LONGEST)):
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,255}", name)


def test_models_and_dimensions_are_kept_apart() -> None:
    models = [("bge-m3", 1024), ("bge_m3", 1024), ("BGE-M3", 1024), ("bge-m3", 512), ("bge-m3-1024", 102)]
    names = [CollectionNames("p", model, dimension) for model, dimension in models]
    assert len({each.common for each in names}) == len(models)
    assert not any(
        one.is_dedicated(other.of(part)) for one in names for other in names for part in ("", "a") if one is not other
    )


def test_the_common_collection_is_not_a_dedicated_one() -> None:
    assert not NAMES.is_dedicated(NAMES.of(""))
    assert NAMES.is_dedicated(NAMES.of("a"))
    assert NAMES.alias not in (NAMES.of(""), NAMES.of("a"))
