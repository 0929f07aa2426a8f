from controlplane.compile import compile_documents
from controlplane.documents import Document
from controlplane.shrink import shrinks
from memplane.policy.model import PolicySet
from tests.policy_sets import KEY_1


def policy_of(content: str) -> PolicySet:
    result = compile_documents([Document("a.yaml", content.encode())], True)
    assert result.policy is not None, result.diagnostics
    return result.policy


def roles(count: int) -> str:
    grants = "".join(f"{{namespace: n{place}, permissions: [review]}}, " for place in range(count))
    return f"rbac: {{roles: {{a: {{grants: [{grants}]}}}}}}"


def test_losing_up_to_a_fifth_of_the_grants_is_no_shrink() -> None:
    assert shrinks(policy_of(roles(10)), policy_of(roles(8))) == []
    assert shrinks(policy_of(roles(10)), policy_of(roles(7))) == ["removes 3 of 10 grants, over 20%"]


def test_losing_an_override_or_the_last_administrator_is_a_shrink() -> None:
    override = policy_of("namespace_policy: {overrides: {dept.sales: {}}}")
    assert shrinks(override, PolicySet()) == ["removes the overrides of namespace dept.sales"]
    grant = "{namespace: '*', permissions: [policy.reload]}"
    admin = policy_of(f"rbac: {{principals: {{ann: {{api_key_sha256: ['{KEY_1}'], grants: [{grant}]}}}}}}")
    assert "removes the last administrator (ann)" in shrinks(admin, PolicySet())
    assert shrinks(PolicySet(), admin) == []


def test_an_equal_policy_is_no_shrink() -> None:
    policy = policy_of(roles(10))
    assert shrinks(policy, policy) == []


def test_a_grant_that_moves_to_another_holder_counts_as_lost() -> None:
    old = policy_of("rbac: {roles: {a: {grants: [{namespace: x, permissions: [review]}]}, b: {}}}")
    new = policy_of("rbac: {roles: {b: {grants: [{namespace: x, permissions: [review]}]}, a: {}}}")
    assert shrinks(old, new) == ["removes 1 of 1 grants, over 20%"]


ADMIN_BY_GROUP = """
rbac:
  roles: {admin: {grants: [{namespace: '*', permissions: [policy.reload]}]}}
  groups: {operations: {roles: [admin], members: [ann]}}
  principals: {ann: {spiffe_ids: ['spiffe://bank.example/ann']}}
"""


def test_the_last_administrator_may_be_one_by_a_group_and_known_by_a_certificate() -> None:
    with_ann = policy_of(ADMIN_BY_GROUP)
    for change in (
        ADMIN_BY_GROUP.replace("members: [ann]", "members: []"),
        ADMIN_BY_GROUP.replace("roles: [admin]", "roles: []"),
        ADMIN_BY_GROUP.replace("spiffe_ids: ['spiffe://bank.example/ann']", "grants: []"),
    ):
        assert shrinks(with_ann, policy_of(change)) == ["removes the last administrator (ann)"]


def test_a_claim_that_makes_administrators_counts_as_one() -> None:
    by_claim = policy_of(ADMIN_BY_GROUP.replace("members: [ann]", "claims: [ops]"))
    assert shrinks(by_claim, policy_of(ADMIN_BY_GROUP.replace("members: [ann]", ""))) == [
        "removes the last administrator (group operations)"
    ]
    assert shrinks(policy_of(ADMIN_BY_GROUP), by_claim) == []


def test_grants_of_groups_count() -> None:
    def groups(count: int) -> PolicySet:
        return policy_of(roles(count).replace("roles:", "groups:"))

    assert shrinks(groups(10), groups(8)) == []
    assert shrinks(groups(10), groups(7)) == ["removes 3 of 10 grants, over 20%"]
