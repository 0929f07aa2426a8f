"""Why somebody may or may not: the grants that cover a question, the ways that lead to them, and near misses. Pure.

The compiled index decides; here is told what it rests on. A deny that covers what is asked comes first, then the allow
of the longest namespace: that is the rule that decided.
"""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from controlplane.diagnose import Path, Position, did_you_mean, shorten, show_path
from memplane.identity import Identity
from memplane.policy.access import EVERY_NAMESPACE, AccessIndex, cells_of, permissions_of
from memplane.policy.effective import lineage
from memplane.policy.rbac import BOOTSTRAP_ADMIN, TOKEN_PRINCIPAL, Grant, Rbac


class Asked(NamedTuple):
    """Who wants to do what, and with memories of which cells; `namespace` None: it is not about one."""

    identity: Identity
    permission: str
    namespace: str | None
    cells: int


@dataclass(frozen=True, slots=True)
class Rule:
    """A grant, the way to it ("group analysts", "role reader"; empty: the principal's own), and where it stands."""

    grant: Grant
    through: tuple[str, ...]
    path: Path
    file: str = ""
    line: int = 0

    @property
    def place(self) -> str:
        """`rbac.yaml:12`; the path where the documents do not tell."""
        return f"{self.file}:{self.line}" if self.file else show_path(self.path)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Whether it is allowed, of a part of what was asked only, in one sentence, and by which rules."""

    allowed: bool
    conditional: bool
    summary: str
    rules: tuple[Rule, ...]


def explain(asked: Asked, rbac: Rbac, index: AccessIndex, positions: Mapping[Path, Position]) -> Explanation:
    """What `index`, which was made of `rbac`, says, and why. `positions` tell where the values of `rbac` stand."""
    identity, permission, namespace, cells = asked
    granted = index.cells(identity, permission, namespace) & cells
    held = [_placed(rule, positions) for rule in held_rules(rbac, identity)]
    covering = [rule for rule in held if _covers(rule.grant, asked)]
    denied = granted == 0 and any(rule.grant.effect == "deny" for rule in covering)
    covering.sort(key=lambda rule: ((rule.grant.effect == "deny") != denied, -_length(rule.grant)))
    question = f"{shorten(identity.principal_id)} {{}} {permission} {_where(namespace)}"
    if granted:
        told = question.format("may") + _by(covering) + ("" if granted == cells else ", for some memories only")
    else:
        told = question.format("may not") + (_by(covering) if denied else f": {_near_miss(asked, rbac, held)}")
    return Explanation(granted != 0, granted not in (0, cells), told, tuple(covering))


def condition_of(grant: Grant) -> str:
    """A grant's conditions in words, such as `kinds FACT, PREFERENCE`; empty: none."""
    named = {"layers": grant.layers, "kinds": grant.kinds, "sensitivities": grant.sensitivities}
    return "; ".join(f"{key} {', '.join(names)}" for key, names in named.items() if names)


def held_rules(rbac: Rbac, identity: Identity) -> Iterator[Rule]:
    """Every grant that somebody holds, once, by a shortest way: his own, then those of groups and roles."""
    own = rbac.principals.get(identity.principal_id)
    pending: list[tuple[str, str, tuple[str, ...]]] = []
    if own is not None:
        yield from _rules(own.grants, ("rbac", "principals", identity.principal_id), ())
        pending += [("roles", name, ()) for name in own.roles]
    pending[:0] = [("groups", name, ()) for name in _groups_of(rbac, identity)]
    seen: set[tuple[str, str]] = set()
    while pending:
        sort, name, way = pending.pop(0)
        holder = rbac.groups.get(name) if sort == "groups" else rbac.roles.get(name)
        if holder is None or (sort, name) in seen:
            continue
        seen.add((sort, name))
        way = (*way, f"{sort[:-1]} {name}")
        yield from _rules(holder.grants, ("rbac", sort, name), way)
        further = rbac.groups[name].roles if sort == "groups" else rbac.roles[name].includes
        pending += [("roles", each, way) for each in further]


def _groups_of(rbac: Rbac, identity: Identity) -> Iterator[str]:
    for name, group in rbac.groups.items():
        if identity.principal_id in group.members or identity.claims & set(group.claims):
            yield name


def _rules(grants: Sequence[Grant], path: Path, way: tuple[str, ...]) -> Iterator[Rule]:
    for place, grant in enumerate(grants):
        yield Rule(grant, way, (*path, "grants", place))


def _placed(rule: Rule, positions: Mapping[Path, Position]) -> Rule:
    place = positions.get(rule.path)
    return rule if place is None else Rule(rule.grant, rule.through, rule.path, place.file, place.line)


def _covers(grant: Grant, asked: Asked) -> bool:
    about = [EVERY_NAMESPACE, *(lineage(asked.namespace) if asked.namespace is not None else ())]
    named = grant.namespace in about and asked.permission in permissions_of(grant)
    return named and cells_of(grant) & asked.cells != 0


def _length(grant: Grant) -> int:
    return 0 if grant.namespace == EVERY_NAMESPACE else len(grant.namespace)


def _where(namespace: str | None) -> str:
    return "on '*'" if namespace is None else f"in {namespace}"


def _by(covering: Sequence[Rule]) -> str:
    """The rule that decided; nothing for the bootstrap administrator, who needs none."""
    if not covering:
        return ", as the bootstrap administrator may everything"
    rule = covering[0]
    way = f" through {', '.join(rule.through)}" if rule.through else ""
    over = ", which overrides every allow" if rule.grant.effect == "deny" else ""
    return f": {rule.grant.effect} on {rule.grant.namespace}{way} at {rule.place}{over}"


def _near_miss(asked: Asked, rbac: Rbac, held: Sequence[Rule]) -> str:
    """Why no grant covers it, and which one comes nearest."""
    name = asked.identity.principal_id
    known = name in rbac.principals or name == BOOTSTRAP_ADMIN or name.startswith(TOKEN_PRINCIPAL)
    if not known:
        return f"principal {shorten(name)!r} is not in the rbac section{did_you_mean(name, rbac.principals)}"
    target = asked.namespace if asked.namespace is not None else EVERY_NAMESPACE
    allows = [rule for rule in held if rule.grant.effect == "allow"]
    of_it = [rule for rule in allows if asked.permission in permissions_of(rule.grant)]
    if not of_it:
        given = sorted({each for rule in allows for each in permissions_of(rule.grant)})
        return f"no grant gives {asked.permission}; there is {', '.join(given) or 'none at all'}"
    nearest = max(of_it, key=lambda rule: _likeness(rule.grant.namespace, target))
    if nearest.grant.namespace in (EVERY_NAMESPACE, *(lineage(target) if asked.namespace else ())):
        return f"the grant at {nearest.place} holds for {condition_of(nearest.grant)} only"
    return f"no grant covers {target}; the nearest is {nearest.grant.namespace} at {nearest.place}"


def _likeness(granted: str, asked: str) -> tuple[bool, int, float]:
    """Covering comes first, then labels in common from the front, then how alike the names are written."""
    if granted == EVERY_NAMESPACE:
        return True, 0, 0.0
    ours, theirs = granted.split("."), asked.split(".")
    common = next((place for place, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]), None)
    shared = min(len(ours), len(theirs)) if common is None else common
    return shared == len(ours), shared, difflib.SequenceMatcher(None, granted, asked).ratio()
