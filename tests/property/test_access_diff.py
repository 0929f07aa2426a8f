"""The access changes that are told, with what they say of everything below, are exactly those of both indexes."""

from hypothesis import given, settings
from hypothesis import strategies as st

from controlplane.access_diff import CLAIM, AccessDifference, access_differences
from memplane.identity import Identity, Method
from memplane.policy.access import EVERY_NAMESPACE, AccessIndex
from memplane.policy.effective import lineage
from memplane.policy.rbac import PERMISSIONS, TOKEN_PRINCIPAL, Grant, Group, Principal, Rbac, Role

NAMESPACES = ("*", "a", "a.b", "a.b.c", "a.bb", "b", "b.a", "ab")
ASKED = (*NAMESPACES, "a.b.c.d", "a.x", "b.a.b", "c", "a.b-", "abb")
PRINCIPALS = ("ann", "bob", "cy")
CLAIMS = ("one", "two")
USED = ("memory.read", "memory.write", "policy.read", "*")

conditions = st.sampled_from([{}, {"kinds": ("FACT",)}, {"layers": ("WORKING",)}, {"sensitivities": ("PUBLIC",)}])
grants = st.builds(
    lambda namespace, permission, effect, condition: Grant(
        namespace=namespace,
        permissions=(permission,),
        effect=effect,
        **({} if permission == "policy.read" else condition),
    ),
    st.sampled_from(NAMESPACES),
    st.sampled_from(USED),
    st.sampled_from(["allow", "allow", "deny"]),
    conditions,
)
some_grants = st.lists(grants, max_size=3).map(tuple)
roles = st.fixed_dictionaries(
    {
        "reader": st.builds(Role, grants=some_grants),
        "writer": st.builds(Role, grants=some_grants, includes=st.sampled_from([(), ("reader",)])),
    }
)
some_roles = st.lists(st.sampled_from(["reader", "writer"]), max_size=2, unique=True).map(tuple)
principals = st.dictionaries(
    st.sampled_from(PRINCIPALS), st.builds(Principal, grants=some_grants, roles=some_roles), max_size=3
)
groups = st.dictionaries(
    st.sampled_from(["g", "h"]),
    st.builds(
        Group,
        members=st.lists(st.sampled_from(PRINCIPALS), max_size=2, unique=True).map(tuple),
        claims=st.lists(st.sampled_from(CLAIMS), max_size=2, unique=True).map(tuple),
        roles=some_roles,
        grants=some_grants,
    ),
    max_size=2,
)
sections = st.one_of(st.none(), st.builds(Rbac, roles=roles, groups=groups, principals=principals))


def identity_of(shown: str) -> Identity:
    if shown.startswith(CLAIM):
        return Identity(TOKEN_PRINCIPAL, Method.TOKEN, frozenset((shown.removeprefix(CLAIM),)))
    return Identity(shown)


def told_of(entries: dict[str, AccessDifference], namespace: str) -> AccessDifference | None:
    covering = [EVERY_NAMESPACE] if namespace == EVERY_NAMESPACE else [*lineage(namespace), EVERY_NAMESPACE]
    return next((entries[name] for name in covering if name in entries), None)


@settings(max_examples=200)
@given(sections, sections)
def test_what_is_told_is_what_both_indexes_answer(before: Rbac | None, after: Rbac | None) -> None:
    found = access_differences(before, after, most=100_000)
    assert found.total == len(found.first)
    assert found.first == sorted(found.first, key=lambda each: (each.principal, each.namespace, each.permission))
    old, new = AccessIndex(before, None), AccessIndex(after, None)
    for shown in (*PRINCIPALS, *(CLAIM + claim for claim in CLAIMS)):
        who = identity_of(shown)
        for permission in PERMISSIONS:
            entries = {
                each.namespace: each for each in found.first if (each.principal, each.permission) == (shown, permission)
            }
            for namespace in ASKED:
                asked = None if namespace == EVERY_NAMESPACE else namespace
                cells = (old.cells(who, permission, asked), new.cells(who, permission, asked))
                told = told_of(entries, namespace)
                if told is not None and told.before != told.after:
                    assert (told.before, told.after) == cells, (shown, permission, namespace)
                else:
                    assert cells[0] == cells[1], (shown, permission, namespace)


@settings(max_examples=50)
@given(sections)
def test_nothing_differs_from_itself(section: Rbac | None) -> None:
    assert access_differences(section, section, most=10).total == 0


@settings(max_examples=50)
@given(sections, sections)
def test_what_is_not_listed_is_counted(before: Rbac | None, after: Rbac | None) -> None:
    whole, cut = access_differences(before, after, most=100_000), access_differences(before, after, most=2)
    assert cut.total == whole.total
    assert cut.first == whole.first[:2]
