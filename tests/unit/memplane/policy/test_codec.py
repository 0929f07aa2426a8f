import pytest

from memplane.policy.codec import InvalidPolicy, from_json, to_json, version_of
from memplane.policy.model import PolicySet

OVERRIDDEN = b"""{"namespace_policy": {"overrides": {"dept.sales": {"write_policy": {"threshold": 0.8}}}},
 "rbac": {"roles": {"r": {"grants": [{"namespace": "*", "permissions": ["review"]}]}}},
 "retrieve_policy": {"recency_words": ["\xe7\x8e\xb0\xe5\x9c\xa8"]}}"""


@pytest.mark.parametrize("data", [b"{}", OVERRIDDEN])
def test_a_policy_survives_the_round_trip(data: bytes) -> None:
    policy = from_json(data)
    assert from_json(to_json(policy)) == policy


def test_equal_policies_have_equal_bytes() -> None:
    one = from_json(b'{"write_policy": {"threshold": 0.7, "dedup": true}, "decay_policy": {}}')
    assert to_json(one) == to_json(PolicySet())


def test_the_bytes_are_compact_sorted_utf8_with_every_default() -> None:
    data = to_json(from_json(OVERRIDDEN))
    assert "现在".encode() in data
    assert b'"threshold":0.7' in data
    assert b'"overrides":{"dept.sales":{"write_policy":{"threshold":0.8}}}' in data
    assert data.index(b'"cache_policy"') < data.index(b'"conflict_policy"') < data.index(b'"write_policy"')


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "Invalid JSON"),
        (b"[]", "policy: "),
        (b'{"write_policy": {"threshold": "0.7"}}', "write_policy.threshold: "),
        (b'{"write_policy": {"threshold": NaN}}', "write_policy.threshold: "),
        (b'{"x": 1, "y": 2}', r"\(and 1 more\)"),
        (b'{"rbac": {"roles": {"r": {"grants": [{"namespace": "*", "permissions": ["al"]}]}}}}', "unknown permission"),
    ],
)
def test_anything_else_is_an_invalid_policy(data: bytes, said: str) -> None:
    with pytest.raises(InvalidPolicy, match=said):
        from_json(data)


def test_the_version_depends_on_names_and_contents_alone() -> None:
    documents = [("a", b"1"), ("b", b"2")]
    assert version_of(documents) == version_of(documents[::-1])
    assert version_of(documents) != version_of([("a", b"12"), ("b", b"")])
    assert version_of([("a", b"b1")]) != version_of([("ab", b"1")])
    assert version_of([]) == version_of([])
