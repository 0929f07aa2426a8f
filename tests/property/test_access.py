"""The compiled access index says what the rules say, read naively, also for names that nearly match."""

from collections.abc import Iterator

from hypothesis import given, settings
from hypothesis import strategies as st

from memplane.identity import Identity
from memplane.policy.access import AccessIndex
from memplane.policy.rbac import Grant, Principal, Rbac, Role

LABELS = ("a", "ab", "a-b", "a_", "sales", "salesforce", "sale")
PERMISSIONS = ("memory.read", "memory.write", "policy.reload")
ROLES = ("r0", "r1", "r2", "r3")
PRINCIPALS = ("ann", "bob")

namespaces = st.lists(st.sampled_from(LABELS), min_size=1, max_size=4).map(".".join)
grants = st.builds(
    Grant,
    namespace=namespaces | st.just("*"),
    permissions=st.lists(st.sampled_from((*PERMISSIONS, "*")), min_size=1, max_size=2).map(tuple),
    effect=st.sampled_from(("allow", "allow", "deny")),
)
some_grants = st.lists(grants, max_size=4).map(tuple)
some_roles = st.lists(st.sampled_from(ROLES), max_size=3).map(tuple)
rules = st.builds(
    Rbac,
    roles=st.fixed_dictionaries({name: st.builds(Role, grants=some_grants, includes=some_roles) for name in ROLES}),
    principals=st.fixed_dictionaries(
        {name: st.builds(Principal, roles=some_roles, grants=some_grants) for name in PRINCIPALS}
    ),
)


def held_roles(rbac: Rbac, principal: str) -> set[str]:
    held = set(rbac.principals[principal].roles)
    for _ in rbac.roles:
        held |= {included for role in held for included in rbac.roles[role].includes}
    return held


def applicable(rbac: Rbac, principal: str, permission: str, namespace: str | None) -> Iterator[Grant]:
    held = [grant for role in held_roles(rbac, principal) for grant in rbac.roles[role].grants]
    for grant in (*held, *rbac.principals[principal].grants):
        covers = grant.namespace == "*" or (namespace is not None and f"{namespace}.".startswith(f"{grant.namespace}."))
        if covers and ("*" in grant.permissions or permission in grant.permissions):
            yield grant


def naively_allowed(rbac: Rbac, principal: str, permission: str, namespace: str | None) -> bool:
    effects = {grant.effect for grant in applicable(rbac, principal, permission, namespace)}
    return effects == {"allow"}


@settings(max_examples=300)
@given(rbac=rules, asked=st.lists(namespaces | st.none(), min_size=1, max_size=8))
def test_the_index_decides_as_the_rules_do(rbac: Rbac, asked: list[str | None]) -> None:
    index = AccessIndex(rbac, None)
    for namespace in asked:
        for principal in PRINCIPALS:
            for permission in PERMISSIONS:
                assert index.allows(Identity(principal), permission, namespace) == naively_allowed(
                    rbac, principal, permission, namespace
                )


@settings(max_examples=100)
@given(
    rbac=rules,
    namespace=st.text(max_size=20) | namespaces,
    principal=st.text(max_size=5),
    permission=st.text(max_size=12),
)
def test_a_stranger_may_nothing(rbac: Rbac, namespace: str, principal: str, permission: str) -> None:
    index = AccessIndex(rbac, None)
    if principal not in PRINCIPALS:
        assert not index.allows(Identity(principal), "memory.read", namespace)
    assert not index.allows(Identity("ann"), f"{permission}?", namespace)
