"""The shrink guard: what a new policy takes away that somebody may miss."""

from collections.abc import Iterator
from itertools import chain

from controlplane.rbac_checks import administrators
from memplane.policy.model import PolicySet
from memplane.policy.rbac import Grant, Rbac

MAX_GRANTS_LOST = 0.2
"""Share of the grants that a reload may take away without being asked to."""


def shrinks(old: PolicySet, new: PolicySet) -> list[str]:
    """Each reason, as a sentence, why replacing `old` by `new` needs `allow_shrink`; none: it does not.

    Reasons: an override's namespace goes, the last administrator of the `rbac` section goes, or over 20 % of the grants
    of roles, groups and principals.
    """
    return [*_lost_namespaces(old, new), *_lost_administrators(old, new), *_lost_grants(old, new)]


def _lost_namespaces(old: PolicySet, new: PolicySet) -> Iterator[str]:
    for namespace in sorted(old.namespace_policy.overrides.keys() - new.namespace_policy.overrides.keys()):
        yield f"removes the overrides of namespace {namespace}"


def _lost_administrators(old: PolicySet, new: PolicySet) -> Iterator[str]:
    before = administrators(old.rbac) if old.rbac else []
    after = administrators(new.rbac) if new.rbac else []
    if before and not after:
        yield f"removes the last administrator ({', '.join(before)})"


def _lost_grants(old: PolicySet, new: PolicySet) -> Iterator[str]:
    before, after = _grants(old.rbac), _grants(new.rbac)
    lost = len(before - after)
    if lost > MAX_GRANTS_LOST * len(before):
        yield f"removes {lost} of {len(before)} grants, over {MAX_GRANTS_LOST:.0%}"


def _grants(rbac: Rbac | None) -> set[tuple[str, str, Grant]]:
    """Every grant with its holder."""
    if rbac is None:
        return set()
    roles = (("role", name, grant) for name, role in rbac.roles.items() for grant in role.grants)
    groups = (("group", name, grant) for name, group in rbac.groups.items() for grant in group.grants)
    principals = (("principal", name, grant) for name, who in rbac.principals.items() for grant in who.grants)
    return set(chain(roles, groups, principals))
