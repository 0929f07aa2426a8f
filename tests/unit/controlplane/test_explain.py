import random

import pytest

from controlplane.compile import Compiled, compile_documents
from controlplane.documents import Document
from controlplane.explain import Asked, Explanation, condition_of, explain, held_rules
from memplane.identity import Identity
from memplane.policy.access import AccessIndex, cells_of, hash_api_key, permissions_of
from memplane.policy.cells import ALL_CELLS, mask
from memplane.policy.rbac import BOOTSTRAP_ADMIN, Grant
from tests.access_rules import random_question, random_rbac

RBAC = """\
rbac:
  roles:
    reader:
      grants:
        - {namespace: dept.sales, permissions: [memory.read]}
    lead:
      includes: [reader]
      grants:
        - {namespace: dept.sales, permissions: [memory.write], kinds: [FACT]}
  groups:
    analysts:
      members: [ann]
      claims: [sales-staff]
      roles: [lead]
  principals:
    ann:
      grants:
        - namespace: dept.sales.board
          permissions: ["*"]
          effect: deny
    bob:
      grants:
        - {namespace: "*", permissions: [policy.read]}
"""
FACTS = mask(kinds=["FACT"])


@pytest.fixture(scope="module")
def compiled() -> Compiled:
    made = compile_documents([Document("rbac.yaml", RBAC.encode())], bootstrap_admin=True)
    assert made.policy is not None, made.diagnostics
    return made


def ask(
    compiled: Compiled,
    principal: str,
    permission: str,
    namespace: str | None,
    cells: int = ALL_CELLS,
    claims: frozenset[str] = frozenset(),
) -> Explanation:
    assert compiled.policy is not None
    assert compiled.policy.rbac is not None
    rbac = compiled.policy.rbac
    asked = Asked(Identity(principal, claims=claims), permission, namespace, cells)
    return explain(asked, rbac, AccessIndex(rbac, hash_api_key("key")), compiled.positions)


def test_an_allow_is_told_with_the_way_and_the_line(compiled: Compiled) -> None:
    told = ask(compiled, "ann", "memory.read", "dept.sales.x")
    assert (told.allowed, told.conditional) == (True, False)
    assert told.summary == (
        "ann may memory.read in dept.sales.x: allow on dept.sales through group analysts, role lead, role reader "
        "at rbac.yaml:5"
    )
    (rule,) = told.rules
    assert rule.through == ("group analysts", "role lead", "role reader")
    assert rule.path == ("rbac", "roles", "reader", "grants", 0)


def test_a_deny_comes_first_and_overrides(compiled: Compiled) -> None:
    told = ask(compiled, "ann", "memory.read", "dept.sales.board.x")
    assert not told.allowed
    assert told.summary == (
        "ann may not memory.read in dept.sales.board.x: deny on dept.sales.board at rbac.yaml:18, "
        "which overrides every allow"
    )
    assert [rule.grant.effect for rule in told.rules] == ["deny", "allow"]


def test_a_condition_is_told_and_asked_for(compiled: Compiled) -> None:
    told = ask(compiled, "ann", "memory.write", "dept.sales")
    assert (told.allowed, told.conditional) == (True, True)
    assert told.summary.endswith("at rbac.yaml:9, for some memories only")
    assert condition_of(told.rules[0].grant) == "kinds FACT"
    assert not ask(compiled, "ann", "memory.write", "dept.sales", FACTS).conditional
    refused = ask(compiled, "ann", "memory.write", "dept.sales", ALL_CELLS & ~FACTS)
    assert not refused.allowed
    assert refused.summary.endswith("the grant at rbac.yaml:9 holds for kinds FACT only")


@pytest.mark.parametrize(
    ("principal", "permission", "namespace", "why"),
    [
        ("ann", "memory.read", "dept.salesforce", "covers dept.salesforce; the nearest is dept.sales at rbac.yaml:5"),
        ("ann", "memory.read", "dept", "no grant covers dept; the nearest is dept.sales at rbac.yaml:5"),
        ("ann", "maintenance", None, "no grant gives maintenance; there is memory.read, memory.write"),
        ("ann", "memory.forget", "dept.sales", "no grant gives memory.forget; there is memory.read, memory.write"),
        ("anna", "memory.read", "dept", "principal 'anna' is not in the rbac section; did you mean 'ann'?"),
        ("token:zoe", "memory.read", "dept", "no grant gives memory.read; there is none at all"),
    ],
)  # fmt: skip
def test_a_near_miss_is_told(
    compiled: Compiled, principal: str, permission: str, namespace: str | None, why: str
) -> None:
    told = ask(compiled, principal, permission, namespace)
    assert not told.allowed
    assert told.summary.endswith(why)
    assert not told.rules


def test_a_claim_brings_its_group(compiled: Compiled) -> None:
    told = ask(compiled, "token:zoe", "memory.read", "dept.sales", claims=frozenset({"sales-staff"}))
    assert told.allowed
    assert told.rules[0].through[0] == "group analysts"


def test_the_bootstrap_administrator_needs_no_rule(compiled: Compiled) -> None:
    told = ask(compiled, BOOTSTRAP_ADMIN, "maintenance", None)
    assert told.summary == ("bootstrap-admin may maintenance on '*', as the bootstrap administrator may everything")


def test_the_rules_told_are_those_that_the_index_decides_by() -> None:
    dice = random.Random(7)
    for _ in range(30):
        rbac = random_rbac(dice)
        index = AccessIndex(rbac, None)
        for _ in range(20):
            question = random_question(dice)
            asked = Asked(question.identity, question.permission, question.namespace, ALL_CELLS)
            granted = index.cells(*asked[:3])
            told = explain(asked, rbac, index, {})
            assert told.allowed == (granted != 0)
            if granted:
                assert granted == _together([rule.grant for rule in told.rules], question.permission)


def _together(grants: list[Grant], permission: str) -> int:
    allowed = denied = 0
    for grant in grants:
        assert permission in permissions_of(grant)
        if grant.effect == "allow":
            allowed |= cells_of(grant)
        else:
            denied |= cells_of(grant)
    return allowed & ~denied


def test_every_grant_is_told_once_though_roles_meet_again() -> None:
    rbac = random_rbac(random.Random(3))
    rules = list(held_rules(rbac, Identity("ann", claims=frozenset({"sales", "staff", "ann"}))))
    assert len({rule.path for rule in rules}) == len(rules)
