import re
from typing import Any

import pytest
from pydantic import ValidationError

from memplane.identity import Identity, Method
from memplane.policy.access import AccessIndex, KnownApiKey, hash_api_key, new_api_key
from memplane.policy.cells import ALL_CELLS, mask
from memplane.policy.codec import InvalidPolicy
from memplane.policy.rbac import BOOTSTRAP_ADMIN, PERMISSIONS, CallLimits, Grant, Group, Principal, Rbac, Role

KEY = new_api_key(bytes(range(36)))


def grant(namespace: str, *permissions: str, effect: Any = "allow") -> Grant:
    return Grant(namespace=namespace, permissions=permissions, effect=effect)


def index(*grants: Grant, roles: dict[str, Role] | None = None, held: tuple[str, ...] = ()) -> AccessIndex:
    ann = Principal(api_key_sha256=(hash_api_key(KEY),), grants=grants, roles=held)
    return AccessIndex(Rbac(roles=roles or {}, principals={"ann": ann}), None)


def test_an_api_key_has_its_id_and_secret_and_only_random_bytes() -> None:
    assert re.fullmatch(r"mpk_[0-9a-f]{8}_[A-Za-z0-9_-]{43}", KEY)
    assert KEY.startswith("mpk_00010203_")
    with pytest.raises(ValueError, match="35 random bytes"):
        new_api_key(bytes(35))


def test_a_key_names_its_principal_and_any_other_nobody() -> None:
    access = index()
    assert access.by_api_key(KEY, 0) == Identity("ann")
    for other in ("", KEY[:-1], f"{KEY} ", KEY.upper(), hash_api_key(KEY), "\ud800", "x" * 1_000_000):
        assert access.by_api_key(other, 0) is None


def test_nothing_is_allowed_without_a_grant() -> None:
    for access in (AccessIndex(None, None), AccessIndex(Rbac(), None), index()):
        for who in ("ann", BOOTSTRAP_ADMIN, "", "*"):
            asked = [(permission, space) for permission in PERMISSIONS for space in (None, "a")]
            assert not any(access.allows(Identity(who), *question) for question in asked)


def test_a_grant_covers_its_subtree_and_no_namesake() -> None:
    access = index(grant("dept.sales", "memory.read"))
    assert access.allows(Identity("ann"), "memory.read", "dept.sales")
    assert access.allows(Identity("ann"), "memory.read", "dept.sales.agent_a.x")
    for namespace in ("dept.salesforce", "dept.sale", "dept", "sales", "dept.sales-x", "x.dept.sales", None):
        assert not access.allows(Identity("ann"), "memory.read", namespace)


def test_a_malformed_namespace_or_unknown_permission_is_refused_to_everybody() -> None:
    access = AccessIndex(Rbac(principals={"ann": Principal(grants=(grant("*", "*"),))}), "0" * 64)
    for who in ("ann", BOOTSTRAP_ADMIN):
        assert access.allows(Identity(who), "memory.read", "dept.sales")
        for namespace in ("", ".", "dept.", ".dept", "dept..sales", "DEPT", "*", "dept.*", "dept sales", "dept\n"):
            assert not access.allows(Identity(who), "memory.read", namespace)
        for permission in ("", "*", "memory.raed", "MEMORY.READ"):
            assert not access.allows(Identity(who), permission, "dept")


def test_only_a_grant_on_every_namespace_covers_what_is_about_none() -> None:
    assert index(grant("*", "policy.reload")).allows(Identity("ann"), "policy.reload", None)
    assert not index(grant("dept", "policy.reload")).allows(Identity("ann"), "policy.reload", None)


def test_a_deny_beats_every_allow_whichever_is_longer() -> None:
    above = index(grant("dept.sales", "*"), grant("dept", "memory.read", effect="deny"))
    assert not above.allows(Identity("ann"), "memory.read", "dept.sales")
    assert above.allows(Identity("ann"), "memory.write", "dept.sales")
    below = index(grant("dept", "*"), grant("dept.board", "*", effect="deny"))
    assert below.allows(Identity("ann"), "memory.read", "dept")
    assert not below.allows(Identity("ann"), "memory.read", "dept.board.minutes")


def test_roles_give_what_they_include_also_denials() -> None:
    roles = {
        "top": Role(includes=("middle",)),
        "middle": Role(includes=("low",), grants=(grant("a", "memory.write"),)),
        "low": Role(grants=(grant("a", "memory.read"), grant("a.secret", "*", effect="deny"))),
    }
    access = index(roles=roles, held=("top",))
    assert access.allows(Identity("ann"), "memory.read", "a")
    assert access.allows(Identity("ann"), "memory.write", "a.b")
    assert not access.allows(Identity("ann"), "memory.read", "a.secret")


def test_roles_that_include_each_other_end() -> None:
    roles = {"a": Role(includes=("b",)), "b": Role(includes=("a",), grants=(grant("x", "review"),))}
    assert index(roles=roles, held=("a",)).allows(Identity("ann"), "review", "x")


def test_a_role_that_does_not_exist_refuses_the_whole() -> None:
    with pytest.raises(InvalidPolicy, match="'gone' does not exist"):
        index(held=("gone",))


@pytest.mark.parametrize(
    "rbac", [None, Rbac(), Rbac(principals={"ann": Principal(grants=(grant("*", "*", effect="deny"),))})]
)
def test_the_bootstrap_administrator_may_do_everything_while_configured(rbac: Rbac | None) -> None:
    access = AccessIndex(rbac, hash_api_key(KEY))
    assert access.by_api_key(KEY, 0) == Identity(BOOTSTRAP_ADMIN)
    assert all(
        access.allows(Identity(BOOTSTRAP_ADMIN), permission, space)
        for permission in PERMISSIONS
        for space in (None, "a")
    )
    assert not access.allows(Identity("ann"), "memory.read", "a")


def test_a_condition_narrows_to_its_cells_and_a_deny_takes_its_own_away() -> None:
    facts = Grant(namespace="a", permissions=("memory.read",), kinds=("FACT", "DOCUMENT"))
    secrets = Grant(namespace="a.b", permissions=("*",), effect="deny", sensitivities=("RESTRICTED",))
    access, ann = index(facts, secrets), Identity("ann")
    assert access.cells(ann, "memory.read", "a") == mask(kinds=["FACT", "DOCUMENT"])
    assert access.cells(ann, "memory.read", "a.b.c") == (
        mask(kinds=["FACT", "DOCUMENT"]) & ~mask(sensitivities=["RESTRICTED"])
    )
    assert access.allows(ann, "memory.read", "a.b")
    assert access.cells(ann, "memory.write", "a") == 0


def test_everything_under_conditions_means_what_is_about_memories() -> None:
    access = index(grant("*", "*"), Grant(namespace="*", permissions=("*",), effect="deny", kinds=("FACT",)))
    assert access.cells(Identity("ann"), "policy.reload", None) == ALL_CELLS
    assert access.cells(Identity("ann"), "review", "a") == ALL_CELLS & ~mask(kinds=["FACT"])
    with pytest.raises(ValidationError, match=r"say nothing of policy\.read"):
        Grant(namespace="*", permissions=("policy.read",), kinds=("FACT",))


def test_groups_give_their_members_and_claims_what_they_hold() -> None:
    rbac = Rbac(
        roles={"reader": Role(grants=(grant("a", "memory.read"),))},
        groups={"staff": Group(members=("ann",), claims=("all",), roles=("reader",), grants=(grant("b", "review"),))},
        principals={"ann": Principal(), "bob": Principal(token_subjects=("b0b",), spiffe_ids=("spiffe://x/bob",))},
    )
    access = AccessIndex(rbac, None)
    claims = frozenset({"all"})
    for who in (Identity("ann"), Identity("bob", claims=claims), access.by_token("zoe", claims, 9)):
        assert who is not None
        assert access.allows(who, "memory.read", "a.x")
        assert access.allows(who, "review", "b")
    assert not access.allows(Identity("bob", claims=frozenset({"other"})), "memory.read", "a")
    assert access.by_spiffe_id("spiffe://x/bob") == Identity("bob", Method.CERTIFICATE)
    assert access.by_token("b0b", frozenset(), 9) == Identity("bob", Method.TOKEN, frozenset(), 9)
    assert access.by_token("zoe", frozenset({"other"}), 9) is None


def test_a_created_key_ends_and_is_nobodys_without_its_principal() -> None:
    rbac = Rbac(principals={"ann": Principal()})
    keys = [KnownApiKey(hash_api_key("mpk_a"), "ann", 100, "a"), KnownApiKey(hash_api_key("mpk_b"), "gone")]
    access = AccessIndex(rbac, None, keys)
    assert access.by_api_key("mpk_a", 99) == Identity("ann", expire_time_us=100)
    assert access.by_api_key("mpk_a", 100) is None
    assert access.by_api_key("mpk_b", 0) is None


def test_limits_are_ones_own_or_everybodys_and_the_bootstrap_administrator_has_none() -> None:
    common, own = CallLimits(concurrency=9), CallLimits(calls_per_s=1.0)
    access = AccessIndex(Rbac(limits=common, principals={"ann": Principal(limits=own)}), hash_api_key(KEY))
    assert access.limits_of(Identity("ann")) == own
    assert access.limits_of(Identity("token:zoe")) == common
    assert access.limits_of(Identity(BOOTSTRAP_ADMIN)) == CallLimits()
