import json
from typing import Any

import pytest

from memplane.policy.codec import InvalidPolicy, from_json
from memplane.policy.effective import EffectivePolicies, merge
from memplane.policy.model import DecayPolicy, PolicySet


def policies(overrides: dict[str, Any], **sections: Any) -> EffectivePolicies:
    return EffectivePolicies(from_json(json.dumps({"namespace_policy": {"overrides": overrides}, **sections}).encode()))


def test_without_overrides_every_namespace_has_the_base() -> None:
    found = EffectivePolicies(PolicySet())
    assert found.for_namespace("dept.sales") is found.for_namespace("x")
    assert found.for_namespace("x").decay == DecayPolicy()


def test_an_override_covers_its_subtree_and_no_namesake() -> None:
    found = policies({"dept.sales": {"write_policy": {"threshold": 0.9}}})
    thresholds = {
        name: found.for_namespace(name).write.threshold
        for name in ("dept.sales", "dept.sales.a.b", "dept.salesforce", "dept", "sales", "x.dept.sales", "dept.sale")
    }
    assert thresholds == {
        "dept.sales": 0.9,
        "dept.sales.a.b": 0.9,
        "dept.salesforce": 0.7,
        "dept": 0.7,
        "sales": 0.7,
        "x.dept.sales": 0.7,
        "dept.sale": 0.7,
    }


def test_overrides_merge_key_by_key_and_the_longest_wins() -> None:
    found = policies(
        {
            "a.b.c": {"retrieve_policy": {"weights": {"text": 0.3}}},
            "a": {"retrieve_policy": {"top_k": 9, "weights": {"text": 0.1, "vector": 0.2}}},
        }
    )
    retrieve = found.for_namespace("a.b.c.d").retrieve
    assert (retrieve.top_k, retrieve.weights.text, retrieve.weights.vector) == (9, 0.3, 0.2)
    assert retrieve.weights.freshness == 0.2
    assert found.for_namespace("a.b").retrieve.weights.text == 0.1


def test_a_list_replaces_and_a_mapping_merges() -> None:
    found = policies(
        {
            "a": {
                "retrieve_policy": {"recency_words": ["neu"], "freshness": {"by_category": {"news": 1}}},
                "write_policy": {"rules": [{"pattern": "wichtig", "direct": True}]},
            }
        }
    )
    view = found.for_namespace("a")
    assert view.retrieve.recency_words == ("neu",)
    assert set(view.retrieve.freshness.by_category) == {"sales_data", "news"}
    assert [(rule.pattern.pattern, rule.direct) for rule in view.rules] == [("wichtig", True)]


def test_namespace_settings_can_be_overridden() -> None:
    found = policies({"a": {"namespace_policy": {"subject_required": True, "default_isolation": False}}})
    view = found.for_namespace("a")
    assert (view.subject_required, view.default_isolation, view.shared_pool_approval) == (True, False, True)


def test_rules_are_compiled_once_and_shared() -> None:
    found = policies({"a": {"write_policy": {"threshold": 0.8}}})
    shared = zip(found.for_namespace("a").rules, found.for_namespace("b").rules, strict=True)
    assert all(one is other for one, other in shared)


@pytest.mark.parametrize(
    "override",
    [
        {"write_policy": {"threshold": 0.1}},
        {"write_policy": {"treshold": 0.9}},
        {"namespace_policy": {"overrides": {}}},
        {"retrieve_policy": {"weights": 1}},
    ],
)
def test_an_override_that_makes_no_valid_section_is_refused(override: dict[str, Any]) -> None:
    with pytest.raises(InvalidPolicy, match=r"override dept\.sales"):
        policies({"dept.sales": override})


def test_merging_changes_neither_side() -> None:
    base, override = {"a": {"b": 1}}, {"a": {"c": 2}}
    assert merge(base, override) == {"a": {"b": 1, "c": 2}}
    assert (base, override) == ({"a": {"b": 1}}, {"a": {"c": 2}})


def test_an_override_that_is_no_number_is_refused() -> None:
    data = b'{"namespace_policy": {"overrides": {"a": {"write_policy": {"threshold": NaN}}}}}'
    with pytest.raises(InvalidPolicy):
        EffectivePolicies(from_json(data))


def test_a_partition_is_the_nearest_subtree_that_says_dedicated() -> None:
    dedicated, shared = {"namespace_policy": {"isolation": "dedicated"}}, {"namespace_policy": {"isolation": "shared"}}
    found = policies(
        {
            "dept.sales": dedicated,
            "dept.sales.a": {"write_policy": {"dedup": False}},
            "dept.sales.b": shared,
            "dept.sales.c": dedicated,
        }
    )
    partitions = {
        "dept": "",
        "dept.salesforce": "",
        "dept.sales": "dept.sales",
        "dept.sales.x": "dept.sales",
        "dept.sales.a.y": "dept.sales",
        "dept.sales.b": "",
        "dept.sales.b.z": "",
        "dept.sales.c.z": "dept.sales.c",
    }
    assert {namespace: found.for_namespace(namespace).partition for namespace in partitions} == partitions


def test_an_override_without_isolation_keeps_the_one_above() -> None:
    found = policies({"a": {"namespace_policy": {"isolation": "dedicated"}}, "a.b": {"namespace_policy": {}}})
    assert found.for_namespace("a.b").partition == "a"
