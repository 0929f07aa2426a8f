from controlplane.rbac_checks import MAX_INCLUDES, administrators, rbac_problems
from memplane.policy.rbac import Grant, Group, Principal, Rbac, Role

RELOAD = Grant(namespace="*", permissions=("policy.reload",))
NOT_RELOAD = Grant(namespace="*", permissions=("policy.reload",), effect="deny")
KEYS = ("0" * 64,)


def including(**includes: tuple[str, ...]) -> Rbac:
    return Rbac(roles={name: Role(includes=names) for name, names in includes.items()})


def codes(rbac: Rbac) -> list[str]:
    return [problem.code for problem in rbac_problems(rbac, bootstrap_admin=True)]


def test_roles_that_share_an_included_role_are_no_cycle() -> None:
    assert codes(including(top=("left", "right"), left=("base",), right=("base",), base=())) == []


def test_each_cycle_is_told_once() -> None:
    assert codes(including(a=("b",), b=("a",), c=("d",), d=("c",), e=("a",))) == ["ROLE_CYCLE", "ROLE_CYCLE"]


def test_a_cycle_and_an_unknown_role_are_both_told() -> None:
    assert codes(including(a=("b", "gone"), b=("a",))) == ["UNKNOWN_ROLE", "ROLE_CYCLE"]


def test_a_very_long_chain_is_one_problem_and_no_stack_overflow() -> None:
    rbac = Rbac(roles={f"r{place}": Role(includes=(f"r{place + 1}",)) for place in range(2000)} | {"r2000": Role()})
    [problem] = rbac_problems(rbac, bootstrap_admin=True)
    assert problem.code == "ROLE_CHAIN_TOO_LONG"
    assert problem.path == ("rbac", "roles", f"r{2000 - MAX_INCLUDES - 1}", "includes")


def test_an_administrator_is_recognised_by_something_and_may_reload_everywhere() -> None:
    rbac = Rbac(
        roles={"admin": Role(grants=(RELOAD,)), "fired": Role(grants=(NOT_RELOAD,))},
        groups={
            "insiders": Group(members=("by_group", "out_of_group"), roles=("admin",)),
            "bearers": Group(claims=("ops",), grants=(RELOAD,)),
            "outsiders": Group(claims=("sales",), roles=("fired",)),
        },
        principals={
            "by_role": Principal(api_key_sha256=KEYS, roles=("admin",)),
            "by_grant": Principal(api_key_sha256=KEYS, grants=(RELOAD,)),
            "by_certificate": Principal(spiffe_ids=("spiffe://bank/a",), grants=(RELOAD,)),
            "by_token": Principal(token_subjects=("ann",), grants=(RELOAD,)),
            "by_group": Principal(api_key_sha256=KEYS),
            "out_of_group": Principal(api_key_sha256=KEYS, grants=(NOT_RELOAD,)),
            "denied": Principal(api_key_sha256=KEYS, roles=("admin", "fired")),
            "keyless": Principal(roles=("admin",)),
        },
    )
    expected = ["by_certificate", "by_grant", "by_group", "by_role", "by_token", "group bearers"]
    assert administrators(rbac) == expected


def test_one_key_twice_with_one_principal_is_harmless() -> None:
    assert codes(Rbac(principals={"a": Principal(api_key_sha256=KEYS * 2)})) == []
