import json
import pickle
from functools import reduce
from typing import Any

import pytest

from controlplane.compile import compile_documents, effective_values
from controlplane.compiled import Compiled
from controlplane.diagnose import Severity
from controlplane.documents import Document
from controlplane.files import read_folder
from memplane.builtin import policies_folder
from memplane.policy.codec import from_json, to_json
from memplane.policy.effective import SECTIONS, EffectivePolicies
from memplane.policy.model import PolicySet
from tests.policy_sets import BROKEN_SETS, KEY_1, BrokenSet


def compiled(*contents: str, bootstrap_admin: bool = True) -> Compiled:
    documents = [Document(f"{place}.yaml", content.encode()) for place, content in enumerate(contents)]
    return compile_documents(documents, bootstrap_admin)


def policy_of(content: str) -> PolicySet:
    result = compiled(content)
    assert result.policy is not None, result.diagnostics
    return result.policy


@pytest.mark.parametrize("broken", BROKEN_SETS, ids=str)
def test_a_broken_set_is_refused_with_exactly_its_diagnostic(broken: BrokenSet) -> None:
    result = compile_documents([Document(*document) for document in broken.documents], broken.bootstrap_admin)
    assert result.policy is None
    found = [(error.code, error.file, error.line, error.column) for error in result.errors]
    assert found == [(broken.code, broken.file, broken.line, broken.column)], result.errors
    assert result.errors[0].message


PROFILES = ["examples/profiles/balanced", "examples/profiles/orchestrated", "examples/profiles/companion"]


@pytest.mark.parametrize("name", ["default", "examples/minimal", "examples/rbac", "examples/evaluation", *PROFILES])
def test_a_shipped_folder_compiles_without_a_word(name: str) -> None:
    result = compile_documents(read_folder(policies_folder(name)), bootstrap_admin=name != "examples/rbac")
    assert result.diagnostics == ()
    assert result.policy is not None


def test_the_default_folder_holds_every_default_and_lets_nobody_in() -> None:
    result = compile_documents(read_folder(policies_folder("default")), True)
    assert result.policy is not None
    assert result.policy.model_copy(update={"rbac": None}) == PolicySet()
    assert result.policy.rbac is not None
    assert result.policy.rbac.principals == {}
    assert {value.layer for value in effective_values(result, "dept.sales")} == {"base"}


def test_the_minimal_example_governs() -> None:
    policy = compile_documents(read_folder(policies_folder("examples/minimal")), True).policy
    assert policy is not None
    assert policy.rbac is None
    assert (policy.write_policy.threshold, policy.retrieve_policy.top_k) == (0.7, 6)
    assert (policy.decay_policy.max_strength, policy.namespace_policy.default_isolation) == (2.0, True)


def test_the_limits_of_data_planes_are_a_section_and_no_override() -> None:
    result = compiled("degradation_policy:\n  admission: {concurrency: 8}\n")
    assert result.policy is not None
    assert result.policy.degradation_policy.admission.concurrency == 8
    overridden = "namespace_policy:\n  overrides:\n    a:\n      degradation_policy: {}\n"
    assert [error.code for error in compiled(overridden).errors] == ["UNKNOWN_KEY"]


def test_all_problems_are_told_at_once_in_the_order_of_the_files() -> None:
    result = compiled("write_policy:\n  treshold: 1\n  threshold: 2\ndecay_policy: 5\n", "rbac:\n  rolse: {}\nx: 1\n")
    found = [(error.code, error.file, error.line) for error in result.errors]
    assert found == [
        ("UNKNOWN_KEY", "0.yaml", 2),
        ("OUT_OF_RANGE", "0.yaml", 3),
        ("WRONG_TYPE", "0.yaml", 4),
        ("UNKNOWN_KEY", "1.yaml", 2),
        ("UNKNOWN_KEY", "1.yaml", 3),
    ]


def test_a_thousand_violations_are_a_thousand_diagnostics() -> None:
    grants = "".join("      - {namespace: A, permissions: [review]}\n" for _ in range(1000))
    result = compiled(f"rbac:\n  roles:\n    a:\n      grants:\n{grants}")
    assert [error.line for error in result.errors] == list(range(5, 1005))


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        ("write_policy: {treshold: 1}", "did you mean 'threshold'?"),
        ("retreive_policy: {}", "did you mean 'retrieve_policy'?"),
        ("retrieve_policy: {weights: {vectr: 1}}", "did you mean 'vector'?"),
        ("retrieve_policy: {profile: compannion}", "did you mean 'companion'?"),
        ("retrieve_policy: {profile: Balanced}", "did you mean 'balanced'?"),
        ("retrieve_policy: {companion: {keep_abov: 0.5}}", "did you mean 'keep_above'?"),
        ("namespace_policy: {overrides: {a: {decay_polcy: {}}}}", "did you mean 'decay_policy'?"),
        ("conflict_policy: {source_priority: [human]}", "did you mean 'HUMAN'?"),
        ("conflict_policy: {source_priority: [HUMMAN]}", "did you mean 'HUMAN'?"),
        ("write_policy: {threshold: '0.7'}", "a number such as 0.5, without quotes"),
        ("write_policy: {dedup: off}", "write false"),
        ("rbac: {roles: {reader: {}}, principals: {a: {roles: [raeder]}}}", "did you mean 'reader'?"),
        ("rbac: {roles: {a: {includes: [b]}, b: {includes: [a]}}}", "a → b → a"),
    ],
)
def test_a_diagnostic_says_what_would_be_right(content: str, hint: str) -> None:
    assert hint in compiled(content).errors[0].message


def test_a_value_in_two_files_names_both_places() -> None:
    [error] = compiled("write_policy:\n  threshold: 0.7\n", "\nwrite_policy:\n  threshold: 0.8\n").errors
    assert (error.file, error.line, error.path) == ("1.yaml", 3, "write_policy.threshold")
    assert "0.yaml:2:3" in error.message


def test_a_very_long_key_makes_a_short_diagnostic() -> None:
    [error] = compiled(f"write_policy: {{? {'x' * 50_000} : 1}}").errors
    assert error.code == "UNKNOWN_KEY"
    assert len(error.message) + len(error.path) < 1000


def test_a_section_may_be_spread_over_files() -> None:
    result = compiled("write_policy:\n  threshold: 0.8\n", "write_policy:\n  dedup: false\n")
    assert result.policy is not None
    assert (result.policy.write_policy.threshold, result.policy.write_policy.dedup) == (0.8, False)


def test_scientific_notation_is_a_number() -> None:
    assert policy_of("decay_policy: {monthly_decay: 1e-3}").decay_policy.monthly_decay == 0.001


def test_weights_that_do_not_sum_to_one_are_accepted_with_a_warning() -> None:
    base = "retrieve_policy:\n  weights: {vector: 0.5}\n"
    over = "namespace_policy:\n  overrides:\n    a:\n      retrieve_policy:\n        weights: {text: 0.5}\n"
    result = compiled(base, over)
    assert result.policy is not None
    assert [(found.severity, found.code, found.file, found.line) for found in result.diagnostics] == [
        (Severity.WARNING, "WEIGHTS_NORMALISED", "0.yaml", 2),
        (Severity.WARNING, "WEIGHTS_NORMALISED", "1.yaml", 5),
    ]


def test_the_weights_of_a_profile_get_the_same_warning() -> None:
    result = compiled("retrieve_policy:\n  profile: orchestrated\n  orchestrated:\n    weights: {recency: 0.5}\n")
    assert [(found.code, found.line) for found in result.diagnostics] == [("WEIGHTS_NORMALISED", 4)]
    assert "sum to 1.2, not 1" in result.diagnostics[0].message


def test_an_override_is_judged_as_merged_over_the_nearest_valid_one() -> None:
    content = """namespace_policy:
  overrides:
    a: {write_policy: {threshold: 5}}
    a.b: {write_policy: {dedup: false}}
    a.b.c: {write_policy: {short_term_threshold: 0.8}}
"""
    assert [(error.code, error.line) for error in compiled(content).errors] == [
        ("OUT_OF_RANGE", 3),
        ("THRESHOLDS_NOT_ORDERED", 5),
    ]


def test_what_compiles_also_resolves_in_a_data_plane() -> None:
    content = """namespace_policy:
  overrides:
    a.b: {retrieve_policy: {weights: {text: 0.2}}, namespace_policy: {subject_required: true}}
    a: {retrieve_policy: {weights: {vector: 0.4}}}
"""
    view = EffectivePolicies(from_json(to_json(policy_of(content)))).for_namespace("a.b.c")
    assert (view.retrieve.weights.text, view.retrieve.weights.vector, view.subject_required) == (0.2, 0.4, True)


def test_nine_includes_in_a_row_are_accepted() -> None:
    links = "".join(f"    r{place}: {{includes: [r{place + 1}]}}\n" for place in range(9))
    assert compiled(f"rbac:\n  roles:\n{links}    r9: {{}}\n").errors == ()


def test_a_file_that_cannot_be_read_does_not_make_its_roles_unknown() -> None:
    result = compiled("rbac: {principals: {a: {roles: [reader]}}}", "rbac:\n  roles: &x\n    reader: {}\n")
    assert [error.code for error in result.errors] == ["ANCHOR"]


def test_an_administrator_needs_a_key_and_the_whole_of_the_namespaces() -> None:
    grant = "{namespace: NAMESPACE, permissions: [policy.reload]}"
    admin = f"rbac: {{principals: {{ann: {{api_key_sha256: ['{KEY_1}'], grants: [{grant}]}}}}}}"
    assert compiled(admin.replace("NAMESPACE", "'*'"), bootstrap_admin=False).errors == ()
    for content in (admin.replace("NAMESPACE", "dept"), "rbac: {principals: {ann: {}}}"):
        assert [error.code for error in compiled(content, bootstrap_admin=False).errors] == ["NO_ADMINISTRATOR"]


def test_the_version_names_content_and_not_the_order_of_documents() -> None:
    first, second = Document("a.yaml", b"write_policy: {}"), Document("b.yaml", b"decay_policy: {}")
    version = compile_documents([first, second], True).version
    assert version == compile_documents([second, first], True).version
    assert version != compile_documents([first], True).version
    assert version.startswith("sha256:")
    assert len(version) == 71


def test_the_result_crosses_a_process_boundary() -> None:
    result = compiled("write_policy:\n  threshold: 0.8\nretrieve_policy: {weights: {text: 1}}\n")
    assert pickle.loads(pickle.dumps(result)) == result


def test_diagnostics_are_the_same_for_equal_documents() -> None:
    broken = "write_policy: {a: 1, b: 2}\nrbac: {c: 3}\n"
    assert compiled(broken) == compiled(broken)


def test_an_api_key_in_place_of_its_hash_is_not_repeated_in_the_diagnostic() -> None:
    [error] = compiled("rbac: {principals: {a: {api_key_sha256: [mpk_0011_secret]}}}").errors
    assert "secret" not in error.message


def test_a_policy_of_another_shape_is_told_by_its_first_lines() -> None:
    result = compiled("apiVersion: v1\nkind: ConfigMap\ndata: {}\n")
    assert [(error.code, error.line) for error in result.errors] == [("UNKNOWN_KEY", line) for line in (1, 2, 3)]


def test_what_holds_for_the_whole_process_is_shown_for_every_namespace() -> None:
    result = compiled("degradation_policy: {cache: {timeout_s: 0.25}}")
    shown = {value.path: value.value for value in effective_values(result, "any.where")}
    assert shown["degradation_policy.cache.timeout_s"] == 0.25
    assert shown["degradation_policy.queue.min_failures"] == 5


OVERRIDDEN = {
    "write_policy.threshold": 0.55,
    "retrieve_policy.weights.text": 0.25,
    "retrieve_policy.freshness.by_kind.FACT": 5,
    "decay_policy.monthly_decay": 0.01,
    "namespace_policy.subject_required": True,
    "conflict_policy.source_priority": ["API", "HUMAN"],
    "credibility.LLM": 0.2,
    "cache_policy.working_memory_ttl_s": 60,
    "context_policy.token_budget": 300,
    "sensitive_policy.actions.EMAIL": "reject",
    "guard_policy.signals.link": 0.5,
    "guard_policy.burst.statements": 9,
}


def test_every_section_may_be_overridden_and_each_value_says_where_it_comes_from() -> None:
    assert {path.split(".")[0] for path in OVERRIDDEN} == set(SECTIONS)
    values: dict[str, Any] = {}
    for path, value in OVERRIDDEN.items():
        *outer, last = path.split(".")
        reduce(lambda inner, key: inner.setdefault(key, {}), outer, values)[last] = value
    far = json.dumps({"namespace_policy": {"overrides": {"a.b": values}}}, indent=1)
    near = json.dumps({"namespace_policy": {"overrides": {"a": {"write_policy": {"threshold": 0.6, "dedup": False}}}}})
    result = compiled(far, near, "write_policy:\n  batch_size: 7\n")
    assert result.errors == ()
    found = {value.path: value for value in effective_values(result, "a.b.c")}
    lines = far.splitlines()
    for path, value in OVERRIDDEN.items():
        assert (found[path].value, found[path].file, found[path].layer) == (value, "0.yaml", "a.b"), path
        assert f'"{path.rpartition(".")[2]}"' in lines[found[path].line - 1]
    assert found["write_policy.dedup"][1:] == (False, "1.yaml", 1, "a")
    assert found["write_policy.batch_size"][1:] == (7, "2.yaml", 2, "base")
    assert found["guard_policy.action"][2:] == ("", 0, "default")
    assert {value.layer for value in effective_values(result, "a.bc")} == {"a", "base", "default"}


def test_an_empty_mapping_is_a_value_with_a_place() -> None:
    shown = {value.path: value for value in effective_values(compiled("guard_policy:\n  signals: {}\n"), "a")}
    assert shown["guard_policy.signals"][1:] == ({}, "0.yaml", 2, "base")
    assert shown["retrieve_policy.freshness.by_kind"][1:] == ({}, "", 0, "default")
