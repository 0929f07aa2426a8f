from controlplane.compile import compile_documents
from controlplane.compiled import Compiled
from controlplane.diff import ABSENT, MAX_TOLD, Difference, ValueDifference, difference
from controlplane.documents import Document
from memplane.policy.cells import ALL_CELLS, mask


def compiled(**files: str) -> Compiled:
    documents = [Document(f"{name}.yaml", text.encode()) for name, text in files.items()]
    made = compile_documents(documents, bootstrap_admin=True)
    assert made.policy is not None, made.errors
    return made


def values(before: Compiled | None, after: Compiled) -> list[ValueDifference]:
    return list(difference(before, after).values)


def rbac(grants: str) -> str:
    return f"rbac:\n  principals:\n    ann:\n      grants:\n{grants}"


def grant(namespace: str, rest: str = "permissions: [memory.read]") -> str:
    return f"      - {{namespace: {namespace}, {rest}}}\n"


READS_A = rbac(grant("a"))


def test_a_value_is_told_before_and_after_with_its_new_place() -> None:
    before = compiled(a="retrieve_policy:\n  top_k: 5\n")
    after = compiled(b="write_policy: {}\nretrieve_policy:\n  top_k: 6\n")
    assert values(before, after) == [ValueDifference("retrieve_policy.top_k", 5, 6, "b.yaml", 3)]


def test_a_default_written_out_or_a_value_moved_to_another_file_is_no_difference() -> None:
    plain = compiled(a="write_policy: {}\n")
    top_k = plain.policy.retrieve_policy.top_k if plain.policy else 0
    assert difference(plain, compiled(b=f"retrieve_policy: {{top_k: {top_k}}}\n")) == Difference((), 0, (), 0, ())


def test_a_value_that_falls_back_to_its_default_has_no_place() -> None:
    before = compiled(a="retrieve_policy:\n  top_k: 7\n")
    after = compiled(a="write_policy: {}\n")
    (found,) = values(before, after)
    assert (found.before, found.file, found.line) == (7, "", 0)


def test_an_override_that_came_and_one_that_went_are_told_leaf_by_leaf() -> None:
    text = "namespace_policy:\n  overrides:\n    dept.{}:\n      write_policy:\n        threshold: 0.8\n"
    before, after = compiled(a=text.format("hr")), compiled(a="write_policy: {}\n", b=text.format("it"))
    path = 'namespace_policy.overrides["dept.{}"].write_policy.threshold'
    assert values(before, after) == [
        ValueDifference(path.format("hr"), 0.8, ABSENT, "a.yaml", 5),
        ValueDifference(path.format("it"), ABSENT, 0.8, "b.yaml", 5),
    ]
    assert difference(before, after).shrinks == ("removes the overrides of namespace dept.hr",)


def test_of_a_list_of_grants_the_items_that_came_and_went_are_told_and_their_order_is_one_value() -> None:
    before = compiled(a=rbac(grant("a") + grant("b") + grant("c")))
    after = compiled(a=rbac(grant("a") + grant("c") + grant("d")))
    path = "rbac.principals.ann.grants"
    found = values(before, after)
    assert [(each.path, each.line) for each in found] == [(f"{path}[1]", 6), (f"{path}[2]", 7)]
    assert (found[0].before["namespace"], found[0].after) == ("b", ABSENT)
    assert (found[1].before, found[1].after["namespace"]) == (ABSENT, "d")
    turned = compiled(a=rbac(grant("c") + grant("b") + grant("a")))
    assert [each.path for each in values(before, turned)] == [path]


def test_without_a_policy_in_force_everything_is_compared_with_the_defaults() -> None:
    found = difference(None, compiled(a=READS_A))
    assert [(each.namespace, each.before, each.after) for each in found.accesses] == [("a", 0, ALL_CELLS)]
    assert found.shrinks == ()


def test_a_condition_that_changes_is_a_difference_of_access() -> None:
    before = compiled(a=rbac(grant("a", "permissions: [memory.read], kinds: [FACT]")))
    after = compiled(a=rbac(grant("a", "permissions: [memory.read], kinds: [EPISODE]")))
    (found,) = difference(before, after).accesses
    assert (found.before, found.after) == (mask(kinds=["FACT"]), mask(kinds=["EPISODE"]))


def test_a_denied_subtree_below_a_gain_is_told_as_an_exception() -> None:
    denied = grant("a.secret", "permissions: [memory.read], effect: deny")
    found = difference(compiled(a=rbac(denied)), compiled(a=rbac(denied + grant("a")))).accesses
    assert [(each.namespace, each.before, each.after) for each in found] == [("a", 0, ALL_CELLS), ("a.secret", 0, 0)]


def test_a_change_is_told_of_its_topmost_namespace_alone() -> None:
    before = compiled(a=rbac(grant("a.x", "permissions: [review]")))
    after = compiled(a=rbac(grant("a") + grant("a.x") + grant("a.x.y") + grant("a.x", "permissions: [review]")))
    assert [each.namespace for each in difference(before, after).accesses] == ["a"]


def test_what_groups_and_claims_bring_is_told_of_members_and_bearers() -> None:
    group = "  groups:\n    g: {members: [ann], claims: [staff], grants: [{namespace: b, permissions: [review]}]}\n"
    found = difference(compiled(a=READS_A), compiled(a=READS_A + group)).accesses
    assert [(each.principal, each.namespace, each.permission) for each in found] == [
        ("ann", "b", "review"),
        ("claim:staff", "b", "review"),
    ]


def test_more_than_a_thousand_are_counted_and_the_first_thousand_told() -> None:
    many = "".join(grant(f"n{number:05d}") for number in range(MAX_TOLD + 500))
    found = difference(compiled(a=rbac(grant("a"))), compiled(a=rbac(grant("a") + many)))
    assert (len(found.values), found.total_values) == (MAX_TOLD, MAX_TOLD + 500)
    assert (len(found.accesses), found.total_accesses) == (MAX_TOLD, MAX_TOLD + 500)
